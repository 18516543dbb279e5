//! Kinds of descriptors in the event loop.

pub(super) const CONTROL: u64 = 0;
pub(super) const NOTICE: u64 = 1;
pub(super) const FLOWS: u64 = 2;
/// Belongs to no session.
pub(super) const POOL: u64 = 3;
