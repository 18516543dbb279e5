//! Kinds of descriptors in the event loop, and the name of the dialect.

/// Name of the dialect.
pub(super) const NAME: &str = "native";

pub(super) const CONTROL: u64 = 0;
pub(super) const NOTICE: u64 = 1;
pub(super) const REQUEST: u64 = 2;
/// Belongs to no session.
pub(super) const POOL: u64 = 3;
