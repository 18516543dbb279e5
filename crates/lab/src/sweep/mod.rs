//! Sweeps: experiments over the settings of network tests.
//!
//! [`grammar`] reads the factors and levels of the command line, [`Space`] turns settings into tests and back into words,
//! [`metrics`] reads the figures of one run, [`reasons`] explains why a setting is worse, and [`sweep`] joins them into the
//! result that is reported.

mod analysis;
pub mod grammar;
pub mod metrics;
pub mod reasons;
mod result;
mod space;
mod spec;

pub use analysis::{Log, sweep};
pub use reasons::Hosts;
pub use result::{Answer, Cost, FactorReport, Fall, Level, Method, Planned, Run, RunFigures, Side, Sweep};
pub use space::{Choice, HostChoices, Space};
pub use spec::{Held, Objective, SweepSpec};
