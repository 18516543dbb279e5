//! Nouns of the HTTP lab: what a run of the load generator found, what it cost both ends, what was
//! checked before, and its verdict.
//!
//! The generator and the sampler write the statistics, the lab judges them, reports show them. All
//! of it is also the form in which runs are kept on disk, so every type is read back as it was
//! written.

mod cell;
mod check;
mod endpoint;
mod environment;
mod errors;
mod facts;
mod load;
mod protocol;
mod study;
pub mod units;
mod verdict;

pub use cell::{Cell, CellKey, CellRun, Medians, Phase, RunState};
pub use check::{Check, CheckStatus, Side};
pub use endpoint::{Counters, EndpointSecond, EndpointStats, NicStats, Peak, Reading, Share};
pub use environment::{Environment, Ports};
pub use errors::{ErrorClass, ErrorCount, ErrorCounts};
pub use facts::{CellFacts, EndpointFacts, Network, Position};
pub use load::{Arrivals, Connections, Flag, Latency, LoadResult, Mode, Quantile, Second};
pub use protocol::{HttpVersion, NegotiatedProtocol, NegotiatedTls, Trust};
pub use study::{
    Baseline, CeilingPoint, HTTP_SCHEMA, Idle, IdleStep, LossWithoutLoad, MemoryLine, Pass, Row,
    Study,
};
pub use verdict::{CellVerdict, Judgement, VerdictClass};
