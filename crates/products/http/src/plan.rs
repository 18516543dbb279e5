//! The plan of an experiment: a TOML file with a default for every key.

pub mod cells;
pub mod estimate;
mod form;
mod protocol;
mod text;
mod validity;
mod values;

pub use form::{
    ActivePhase, C10kPhase, Close, Defaults, IdlePhase, LowRatePhase, MatrixPhase, Objective,
    PayloadPhase, Plan, PlanError, Source, TcpPhase,
};
pub use linerate_model::http::{Ports, Trust};
pub use protocol::{Protocol, TrustError};
pub use text::TEXT_BYTES_MAX;
pub use validity::RUNS_MAX;
pub use values::{fingerprint, line_rate};

#[cfg(test)]
mod tests;
