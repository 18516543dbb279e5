//! Control connections over NATS in a build without the feature `bus`: there are none.

use std::net::IpAddr;

use crate::run::carrier::Carrier;
use linerate_model::record::RunId;
use linerate_sys::signal::Signals;

use super::connect::{FleetHosts, Lease};
use linerate_model::outcome::Error;

/// A broker and the credentials for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BusOptions {}

pub(super) fn acquire_lease(
    options: &BusOptions,
    _: &FleetHosts,
    _: (RunId, Option<String>),
    _: &Signals,
    _: &mut dyn FnMut(&str),
) -> Result<Lease, Error> {
    match *options {}
}

pub(super) fn agents(
    options: &BusOptions,
    _: &str,
    _: &[String],
) -> Result<Box<dyn Carrier>, Error> {
    match *options {}
}

pub(super) fn broker_ip(options: &BusOptions) -> Option<IpAddr> {
    match *options {}
}
