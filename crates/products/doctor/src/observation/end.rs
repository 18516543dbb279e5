//! One end of a test as input of the rules.

use linerate_model::snapshot::{Snapshot, Value};

use super::endpoint::EndpointObservation;
use crate::observed::Observed;
use crate::runs;
use crate::timeline::{RunFacts, insert};

const SRC: &str = "test";

/// One end: named by its role, with every run and its part in it.
pub(super) fn end(
    name: &str,
    observation: EndpointObservation,
    runs: &[Option<RunFacts>; 2],
    parts: [&str; 2],
    same_host: Option<bool>,
) -> Observed {
    let EndpointObservation {
        mut snapshot,
        period,
        ..
    } = observation;
    snapshot.host = name.to_owned();

    for (run, part) in runs.iter().zip(parts) {
        let Some(run) = run else { continue };
        let mut facts = run.clone();
        insert(&mut facts, "end", Some(part));
        insert(&mut facts, "same_host", same_host);

        if part == "sender" {
            send_buffer(&snapshot, &mut facts);
            black_hole(&mut snapshot, &facts);
        }

        runs::add(&mut snapshot, SRC, facts);
    }

    Observed { snapshot, period }
}

/// Half of a send buffer holds payload. A configured size is fixed, otherwise it grows to the
/// kernel's maximum.
fn send_buffer(snapshot: &Snapshot, facts: &mut RunFacts) {
    let fixed = facts.get("window_bytes").and_then(Value::number);
    let grown = || {
        let triple = snapshot.text("sysctl.net.ipv4.tcp_wmem")?;
        Some(triple.split_whitespace().nth(2)?.parse::<f64>().ok()? / 2.0)
    };
    insert(facts, "sndbuf_bytes", fixed.or_else(grown));
}

/// A test that was negotiated and whose data never arrived shows that small packets pass and large
/// ones do not.
fn black_hole(snapshot: &mut Snapshot, facts: &RunFacts) {
    const TRIES: f64 = 3.0;

    let number = |name: &str| facts.get(name).and_then(Value::number);
    let (Some(received), Some(sent)) = (number("received_bytes"), number("sent_bytes")) else {
        return;
    };
    snapshot.set("path.small_passes", true, SRC);
    snapshot.set("path.large_passes", received > 0.0, SRC);

    let repeated = number("retransmits").is_some_and(|times| times >= TRIES);
    if received > 0.0 || sent <= 0.0 || !repeated {
        return;
    }

    let device = snapshot
        .text("route.peer.dev")
        .map(|name| format!("nic.{name}.net.mtu"));
    let mtu = device.and_then(|key| snapshot.number(&key));
    if let Some(mtu) = mtu
        && let Some(path) = number("pmtu_bytes")
    {
        // A router reported a path MTU below that of the interface (RFC 1191, RFC 8201).
        snapshot.set("path.told_mtu", path < mtu, SRC);
    }
}
