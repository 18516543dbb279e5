//! Longest waits for answers of hosts.

use crate::SECOND_NS;

/// Longest wait for PLANNED.
pub const PLANNED_TIMEOUT_NS: u64 = 2 * SECOND_NS;
/// Longest wait for PREFLIGHTED.
pub const PREFLIGHTED_TIMEOUT_NS: u64 = 10 * SECOND_NS;
/// Longest wait for one CLOCKED.
pub const CLOCKED_TIMEOUT_NS: u64 = SECOND_NS;
/// Longest wait for ARMED.
pub const ARMED_TIMEOUT_NS: u64 = 2 * SECOND_NS;
/// Longest wait for DONE.
pub const DONE_TIMEOUT_NS: u64 = 2 * SECOND_NS;
/// Longest wait for a RESULT after the hard deadline of its task.
pub const RESULT_TIMEOUT_NS: u64 = 2 * SECOND_NS;
