//! Upper bounds that this host sets on a path, for both directions.

use std::net::SocketAddr;

use linerate_doctor::arithmetic::{shaper_payload, tcp_ceiling};
use linerate_doctor::derive;
use linerate_host::{Request, collect};
use linerate_model::path::PathSpec;
use linerate_model::snapshot::{Quality, Snapshot};

use crate::conclude::CeilingFacts;

/// Ceilings from server to client and from client to server.
pub(super) fn ceilings(remote: SocketAddr, spec: &PathSpec) -> (CeilingFacts, CeilingFacts) {
    let request = Request {
        peer: Some(remote.ip()),
        ..Request::default()
    };
    let snapshot = derive(collect(&request));
    let device = snapshot
        .text("route.peer.dev")
        .unwrap_or_default()
        .to_owned();
    let mtu_bytes = number(&snapshot, &format!("nic.{device}.net.mtu")).unwrap_or(1500.0);
    let common = CeilingFacts {
        link_bps: link_bps(&snapshot, &device),
        link_payload_share: tcp_ceiling(1.0, mtu_bytes),
        shaper_payload_share: shaper_payload(1.0, mtu_bytes),
        rate_bps: spec.rate_bps.map(|bps| bps as f64),
        ..CeilingFacts::default()
    };

    // tcp(7): half of the largest buffer is the largest window.
    let receive_window_bytes =
        largest(&snapshot, "sysctl.net.ipv4.tcp_rmem").map(|bytes| bytes / 2);
    let send_buffer_bytes = largest(&snapshot, "sysctl.net.ipv4.tcp_wmem");
    (
        CeilingFacts {
            receive_window_bytes,
            ..common
        },
        CeilingFacts {
            send_buffer_bytes,
            ..common
        },
    )
}

/// Rate of the link. The one of a virtual interface is a constant and no limit.
fn link_bps(snapshot: &Snapshot, device: &str) -> Option<f64> {
    let key = format!("nic.{device}.link.speed_mbps");
    let is_limit = snapshot.quality(&key) != Some(Quality::Nominal);
    number(snapshot, &key)
        .filter(|_| is_limit)
        .map(|mbps| mbps * 1e6)
}

fn number(snapshot: &Snapshot, key: &str) -> Option<f64> {
    snapshot
        .value(key)
        .and_then(|value| value.to_string().parse().ok())
}

/// The last of the three numbers of `tcp_rmem` and `tcp_wmem`.
fn largest(snapshot: &Snapshot, key: &str) -> Option<u64> {
    snapshot.text(key)?.split_whitespace().last()?.parse().ok()
}
