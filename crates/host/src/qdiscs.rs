//! Queueing disciplines and their counters (RTM_GETQDISC).

use linerate_model::snapshot::Snapshot;

use crate::links::dump;
use crate::netlink::{attribute, text, u32_at, u64_at};

const GET_QDISC: u16 = 38;
const SRC: &str = "rtnetlink:GETQDISC";
const ROOT: u32 = 0xffff_ffff;
const INGRESS: u32 = 0xffff_fff1;

/// Records the disciplines of the given interfaces: index and name.
pub(crate) fn record(snapshot: &mut Snapshot, links: &[(u32, &str)]) {
    for payload in dump(GET_QDISC, &[0; 20]) {
        let Some(index) = u32_at(&payload, 4) else { continue };
        if let Some((_, name)) = links.iter().find(|(known, _)| *known == index) {
            qdisc(snapshot, name, &payload);
        }
    }
}

pub(crate) fn qdisc(snapshot: &mut Snapshot, name: &str, payload: &[u8]) -> Option<()> {
    let handle = u32_at(payload, 8)?;
    let parent = u32_at(payload, 12)?;
    let body = payload.get(20..)?;
    let kind = text(attribute(body, 1)?);
    let place = match parent {
        ROOT => "root".to_owned(),
        INGRESS => "ingress".to_owned(),
        parent => format!("{:x}_{:x}", parent >> 16, parent & 0xffff),
    };
    let key = format!("nic.{name}.qdisc.{place}");
    snapshot.set(format!("{key}.handle"), format!("{:x}:", handle >> 16), SRC);
    if let Some(bucket) = bucket(&kind, body) {
        snapshot.set_in(format!("{key}.rate_bps"), bucket.rate_bps, "bit/s", SRC);
        if place == "root" {
            snapshot.set(format!("{key}.command"), bucket.command(name), SRC);
        }
    }
    snapshot.set(format!("{key}.kind"), kind, SRC);
    if let Some(statistics) = attribute(body, 7) {
        let basic = attribute(statistics, 1).unwrap_or_default();
        let queue = attribute(statistics, 3).unwrap_or_default();
        let counters = [
            ("bytes", u64_at(basic, 0)),
            ("drops", u32_at(queue, 8).map(u64::from)),
            ("requeues", u32_at(queue, 12).map(u64::from)),
            ("overlimits", u32_at(queue, 16).map(u64::from)),
        ];
        for (counter, value) in counters {
            if let Some(value) = value {
                snapshot.count(format!("{key}.{counter}"), value, (counter != "bytes").then_some(32));
            }
        }
        if let Some(backlog) = u32_at(queue, 4) {
            snapshot.set_in(format!("{key}.backlog"), backlog, "bytes", SRC);
        }
    }
    Some(())
}

/// A token bucket (`struct tc_tbf_qopt`).
struct Bucket {
    rate_bps: f64,
    limit_bytes: Option<u32>,
    burst_bytes: Option<f64>,
}

impl Bucket {
    /// What makes it again.
    fn command(&self, name: &str) -> String {
        let part =
            |word: &str, bytes: Option<f64>| bytes.map_or_else(String::new, |bytes| format!(" {word} {bytes:.0}"));
        format!(
            "tc qdisc replace dev {name} root tbf rate {:.0}bit{}{}",
            self.rate_bps,
            part("burst", self.burst_bytes),
            part("limit", self.limit_bytes.map(f64::from))
        )
    }
}

/// The rate stands in bytes per second, in 64 bits where 32 are not enough.
fn bucket(kind: &str, body: &[u8]) -> Option<Bucket> {
    const PARAMETERS: u16 = 1;
    const RATE64: u16 = 4;
    // The burst stands there as the time it takes, in the kernel's ticks of 64 ns.
    const TICK_S: f64 = 64e-9;
    if kind != "tbf" {
        return None;
    }
    let options = attribute(body, 2)?;
    let parameters = attribute(options, PARAMETERS)?;
    let wide = attribute(options, RATE64).and_then(|bytes| u64_at(bytes, 0));
    #[expect(clippy::cast_precision_loss, reason = "rates are far below 2^53")]
    let rate = match wide {
        Some(rate) => rate as f64,
        None => f64::from(u32_at(parameters, 8)?),
    };
    Some(Bucket {
        rate_bps: rate * 8.0,
        limit_bytes: u32_at(parameters, 24),
        burst_bytes: u32_at(parameters, 28).map(|ticks| (f64::from(ticks) * TICK_S * rate).ceil()),
    })
}
