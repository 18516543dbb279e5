//! Control connections over NATS in a build without the feature `bus`: there are none.

use std::net::IpAddr;

use linerate_fleet::run::carrier::Carrier;
use linerate_model::record::RunId;
use linerate_sys::signal::Signals;

use super::connect::{Charge, FleetHosts};
use crate::Error;

/// A broker and the credentials for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BusOptions {}

pub(super) fn take_charge(
    options: &BusOptions,
    _: &FleetHosts,
    _: (RunId, Option<String>),
    _: &Signals,
    _: &mut dyn FnMut(&str),
) -> Result<Charge, Error> {
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
