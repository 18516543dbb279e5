//! `linerate fleet`: many hosts measured as one system.

pub use linerate_fleet::report;
pub use linerate_fleet::run::{
    agent, cancel, check, coordinate as run, hosts, inventory, leftovers, worker,
};
pub use linerate_fleet::spec::{
    BusOptions, FleetHosts, RunSpec, SITE_DEFAULT, TestOptions, Topology,
};
