//! Moves the data of a test: streams, workers, pacing, end conditions.

pub(crate) mod budget;
pub(crate) mod duplex;
pub(crate) mod files;
pub(crate) mod idle_timeout;
pub(crate) mod pacing;
pub(crate) mod payload;
pub(crate) mod plan;
pub(crate) mod quota;
pub(crate) mod run;
pub(crate) mod socket;
pub(crate) mod worker;
