//! Hosts of a fleet and options of its runs.

mod hosts;
pub mod inventory;
mod run;
mod topology;

pub(crate) use hosts::CONTROL_PATH;
pub use hosts::{BusOptions, FleetHosts, SITE_DEFAULT};
pub use run::{RunSpec, TestOptions};
pub use topology::Topology;
