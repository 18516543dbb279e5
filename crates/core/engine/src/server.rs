//! A server of any dialects: one control thread, any number of sessions.
//!
//! This module holds what all dialects share: listeners, the first bytes of a connection, pending
//! limits, access, admission, quotas, liveness, statistics. A [`dialect::ServerDialect`] owns its
//! sessions and the sockets they use. Nothing blocks: every wait is a deadline of the one loop,
//! [`event_loop::Server`].

pub(crate) mod access;
pub(crate) mod admission;
pub(crate) mod blocking_pool;
pub(crate) mod context;
pub(crate) mod dialect;
pub(crate) mod event_loop;
pub(crate) mod intake;
pub(crate) mod limits;
pub(crate) mod listeners;
pub(crate) mod liveness;
pub(crate) mod login_check;
pub(crate) mod server_stats;
pub(crate) mod timers;
mod tokens;
