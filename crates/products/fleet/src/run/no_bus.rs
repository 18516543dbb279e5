//! Control connections over NATS in a build without the feature `bus`: there are none.

use std::net::IpAddr;

use crate::run::carrier::Carrier;
use crate::spec::{BusOptions, FleetHosts};
use linerate_model::record::RunId;
use linerate_sys::signal::Signals;

use super::control::Lease;
use linerate_model::outcome::Error;

pub(super) fn acquire_lease(
    _: &BusOptions,
    _: &FleetHosts,
    _: (RunId, Option<String>),
    _: &Signals,
    _: &mut dyn FnMut(&str),
) -> Result<Lease, Error> {
    Err(absent())
}

pub(super) fn agents(_: &BusOptions, _: &str, _: &[String]) -> Result<Box<dyn Carrier>, Error> {
    Err(absent())
}

pub(super) fn broker_ip(_: &BusOptions) -> Option<IpAddr> {
    None
}

fn absent() -> Error {
    Error::usage("--bus is not in this build; `cargo build --features bus` has it")
}
