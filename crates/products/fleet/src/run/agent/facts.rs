//! Facts of this host for a coordinator.

use std::collections::BTreeSet;
use std::net::IpAddr;

use linerate_host::{Request, collect};
use linerate_model::snapshot::Snapshot;
use linerate_sys::interfaces::device_of;

/// A snapshot of this host and the interfaces that have these addresses.
pub(super) fn facts(addresses: impl Iterator<Item = IpAddr>) -> Box<Snapshot> {
    let devices: BTreeSet<String> = addresses.filter_map(device_of).collect();
    Box::new(collect(&Request {
        interfaces: devices.into_iter().collect(),
        ..Request::default()
    }))
}
