//! Counters of this host over a round, and the load of its CPUs.

use std::net::IpAddr;

use crate::protocol::message::JsonText;
use linerate_host::{Depth, Growth, Sampler, Tested, Ticks, Watched};
use linerate_model::snapshot::Snapshot;
use serde_json::{Map, Value, json};

/// Longest window as JSON in bytes; a host with many CPUs and queues has more, of which none is
/// sent.
const WINDOW_MAX_BYTES: usize = 32 << 10;

/// Reads the host before and after a round.
pub(super) struct HostWindow {
    sampler: Sampler,
    before: Option<Snapshot>,
    /// Last reading of the load.
    load: Snapshot,
}

impl HostWindow {
    pub(super) fn open() -> Self {
        let mut sampler = Sampler::open(Watched {
            pids: vec![std::process::id()],
            tested: Tested::Nothing,
        });
        Self {
            load: sampler.sample(Depth::Quick),
            sampler,
            before: None,
        }
    }

    /// The device of the route to this peer is read, too.
    pub(super) fn set_peer(&mut self, peer: Option<IpAddr>) {
        if let Some(peer) = peer {
            self.sampler.set_peer(peer);
        }
    }

    /// A round begins.
    pub(super) fn begin(&mut self) {
        let sample = self.sampler.sample(Depth::Quick);
        self.load = sample.clone();
        self.before = Some(sample);
    }

    /// A round ended: what the counters grew by; `None` without a begin.
    pub(super) fn end(&mut self) -> Option<JsonText> {
        let before = self.before.take()?;
        window(&before, &self.sampler.sample(Depth::Quick))
    }

    /// Load of the CPUs since the last call or the begin of the round, in tenths of a percent.
    pub(super) fn cpu_permille(&mut self) -> u16 {
        let now = self.sampler.sample(Depth::Quick);
        let load = permille(&Growth::between(&self.load, &now).all_cpus);
        self.load = now;
        load
    }
}

fn window(before: &Snapshot, after: &Snapshot) -> Option<JsonText> {
    let length_ns = after.monotonic_ns?.saturating_sub(before.monotonic_ns?);
    let growth = after.counters.iter().filter_map(|(key, counter)| {
        // A counter that fell was reset: its growth is not known.
        let grown = counter.v.checked_sub(before.counters.get(key)?.v)?;
        // Counters that did not move are left out, and most of a host do not move during a test.
        (grown > 0).then(|| (key.clone(), Value::from(grown)))
    });
    let counters: Map<String, Value> = growth.collect();
    let cpu_permille = permille(&Growth::between(before, after).all_cpus);
    let text =
        json!({ "length_ns": length_ns, "cpu_permille": cpu_permille, "counters": counters })
            .to_string();

    JsonText::new(text).filter(|window| window.as_str().len() <= WINDOW_MAX_BYTES)
}

/// Busy share of the ticks in tenths of a percent.
fn permille(ticks: &Ticks) -> u16 {
    // Two readings within one tick have no total to divide by.
    let permille = ticks.busy().saturating_mul(1000).checked_div(ticks.total);
    u16::try_from(permille.unwrap_or(0).min(1000)).unwrap_or(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_has_its_length_and_what_grew() {
        let mut host = HostWindow::open();
        assert_eq!(host.end(), None, "no round has begun");
        host.set_peer(Some([127, 0, 0, 1].into()));
        host.begin();

        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket
            .send_to(&[0; 1000], socket.local_addr().expect("an address"))
            .expect("sent");
        let window: Value =
            serde_json::from_str(host.end().expect("a window").as_str()).expect("JSON");
        assert!(window["length_ns"].as_u64() > Some(0));
        assert!(
            window["counters"]["nic.lo.stats64.tx_bytes"].as_u64() >= Some(1000),
            "{window}"
        );
    }

    #[test]
    fn load_is_the_share_of_busy_ticks() {
        let ticks = |idle, total| Ticks {
            idle,
            total,
            ..Ticks::default()
        };
        assert_eq!(permille(&ticks(50, 100)), 500);
        assert_eq!(permille(&ticks(0, 0)), 0);
    }
}
