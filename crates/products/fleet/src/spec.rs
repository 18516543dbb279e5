//! Hosts of a fleet and options of its runs.

mod hosts;
pub mod inventory;
mod run;

pub(crate) use hosts::CONTROL_PATH;
pub use hosts::{BusOptions, FleetHosts, SITE_DEFAULT};
pub use run::{RunSpec, TestOptions, Topology};
