//! The load generator.
//!
//! A run has one coordinator and several workers, threads of this process or of worker processes. A
//! worker owns its connections and statistics: it opens its share of the connections, waits for the
//! other workers, sends at its pace and drains outstanding responses. The coordinator starts the
//! load, merges seconds and statistics and enforces limits.

mod breaker;
mod by_hyper;
pub(crate) mod distribution;
mod event_loop;
pub(crate) mod failure;
pub(crate) mod opener;
mod pace;
pub mod ports;
mod ramp;
mod recorder;
pub(crate) mod response;
mod run;
mod run_state;
mod spec;
mod stats;
mod worker;
mod workers;

pub use breaker::Breaker;
pub use ports::Local;
pub use run::{Observer, run};
pub use spec::LoadSpec;
pub use stats::SecondPart;
pub use workers::{Processes, WorkerPool, work};
