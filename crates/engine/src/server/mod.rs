//! What the servers of all dialects share: listening, access, pending limits, quotas, liveness and statistics.

pub(crate) mod accept_pause;
pub(crate) mod access;
pub(crate) mod admission;
pub(crate) mod closing;
pub(crate) mod listen;
pub(crate) mod liveness;
pub(crate) mod login_guard;
pub(crate) mod pending_limit;
pub(crate) mod queue;
pub(crate) mod quotas;
pub(crate) mod rate_guard;
pub(crate) mod resource_quota;
pub(crate) mod server_stats;
pub(crate) mod shared_state;
