//! Tokens of the event loop: three descriptors of a session, and one of the server.

use linerate_sys::poll::Interest;

pub(super) const CONTROL: u64 = 0;
pub(super) const NOTICE: u64 = 1;
pub(super) const FLOWS: u64 = 2;
pub(super) const KINDS: u64 = 4;
pub(super) const POOL: u64 = 3;

pub(super) const READ: Interest = Interest::READ;
