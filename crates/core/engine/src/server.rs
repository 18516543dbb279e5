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
pub(crate) mod logins;
pub(crate) mod server_stats;
pub(crate) mod sessions;
pub(crate) mod timers;
mod tokens;

pub(crate) use admission::{Admission, Decision};
pub(crate) use context::ServerContext;
pub(crate) use dialect::{Recognised, ServerDialect, Stopped};
pub(crate) use event_loop::Server;
pub(crate) use intake::Intake;
pub(crate) use limits::quotas::QuotaRequest;
pub(crate) use limits::requirements::Requirements;
pub(crate) use listeners::accepted::Accepted;
pub(crate) use listeners::open_bound_with;
pub(crate) use listeners::udp::FirstDatagram;
pub(crate) use liveness::Liveness;
pub(crate) use logins::{Logins, Verdict};
pub(crate) use server_stats::ByteTotals;
pub(crate) use sessions::{Session, SessionTable, Sessions};
pub(crate) use tokens::token;
