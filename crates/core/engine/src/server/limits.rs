//! Resources of a server that clients may use: places, rates, bytes, time, resources of the host,
//! attempts to log in.

pub(crate) mod address_counts;
pub(crate) mod address_queue;
#[cfg(feature = "native")]
pub(crate) mod allotment;
pub(crate) mod fair_turns;
pub(crate) mod login_guard;
pub(crate) mod pending_limit;
pub(crate) mod queue;
pub(crate) mod quotas;
pub(crate) mod rate_guard;
pub(crate) mod requirements;
pub(crate) mod resource_quota;
