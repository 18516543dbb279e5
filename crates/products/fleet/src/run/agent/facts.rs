//! Facts of this host for a coordinator.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::protocol::message::JsonText;
use linerate_host::{Request, collect};
use linerate_sys::interfaces::device_of;

/// A snapshot of this host and the interfaces that have these addresses.
pub(super) fn facts(addresses: impl Iterator<Item = IpAddr>) -> Option<JsonText> {
    let devices: BTreeSet<String> = addresses.filter_map(device_of).collect();
    let snapshot = collect(&Request {
        interfaces: devices.into_iter().collect(),
        ..Request::default()
    });
    JsonText::new(serde_json::to_string(&snapshot).ok()?)
}
