//! The protocol of `linerate fleet` without I/O: inventories, messages in lines of JSON, and the
//! machines of both ends.
//!
//! Nothing here opens a socket, reads a clock or starts a thread. The machines of [`agent`] and
//! [`coordinator`] take lines of the control path, local inputs and the current time, and are
//! polled for actions. Input from the peer is bounded before it is stored and never leads to a
//! panic.
//!
//! Times are ns of the monotonic clock of the host that runs the machine, unless the name of a
//! value states another one.

#![forbid(unsafe_code)]

pub mod agent;
pub mod clock;
pub mod coordinator;
pub mod inventory;
pub mod lease;
pub mod line;
pub mod message;

pub use linerate_model::fleet::{HostId, TaskId};

/// One second in ns.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;
/// One millisecond in ns.
pub(crate) const MS_NS: u64 = 1_000_000;
