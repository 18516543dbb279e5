//! The HTTP lab: a server of payloads, a load generator, and experiments with both.

pub mod agent;
mod control_channel;
mod embedding;
pub mod lab;
pub mod load;
pub mod serve;

pub use linerate_doctor::http::too_many_connections;
pub use linerate_http::load::LoadSpec;
pub use linerate_http::plan::Plan;
pub use linerate_http::plan::cells::Phases;
pub use linerate_http::protocol::Protocol;
pub use linerate_http::run::{ControlPath, Opening, Output, Resolved};
pub use linerate_http::safety_limits::TargetOwnership;
pub use linerate_http::server::ServerSpec;
pub use linerate_http::target::Target;
