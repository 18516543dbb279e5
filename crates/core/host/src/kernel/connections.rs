//! The busiest TCP connections of this host over a period, whichever program has them
//! (sock_diag(7)).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use linerate_model::measure::retransmit_share;
use linerate_model::runs;
use linerate_sys::clock;
use linerate_sys::tcp_info::TcpInfo;

use crate::kernel::sockets::Sockets;
use crate::nic::{links, route};
use crate::prelude::*;

/// Connections that are kept.
const CONNECTIONS_MAX: usize = 65_536;
/// The busiest of these first; the first over the wanted interface is a run.
const CANDIDATES: usize = 16;
/// Connections of the same peer that move less than this part of the busiest are not counted as
/// streams.
const STREAM_SHARE_MIN: f64 = 0.01;
/// A slower connection is no load, unless it has data to send for most of the time.
const LOAD_BPS_MIN: f64 = 1e6;
const LOAD_BUSY_MIN: f64 = 0.5;

/// State of all established TCP connections at one instant.
#[derive(Debug, Clone, Default)]
pub struct Connections {
    monotonic_ns: u64,
    established: BTreeMap<Addresses, State>,
}

/// Local and remote.
pub(crate) type Addresses = (SocketAddr, SocketAddr);
/// With the congestion control.
pub(crate) type State = (TcpInfo, Option<String>);

impl Connections {
    /// Reads those of this network namespace.
    ///
    /// # Errors
    /// When the kernel refuses or has no `sock_diag`.
    pub fn read() -> Result<Self, ReadError> {
        let mut established = BTreeMap::new();
        Sockets::open()?.established(|socket| {
            // Bounded: a proxy may have a million connections.
            if let Some(info) = socket.info.filter(|_| established.len() < CONNECTIONS_MAX) {
                established.insert(
                    (socket.local, socket.remote),
                    (info, socket.congestion.clone()),
                );
            }
        })?;
        Ok(Self {
            monotonic_ns: clock::monotonic_ns(),
            established,
        })
    }

    /// Adds the busiest connection since `earlier` to the snapshot as a run, with others to the
    /// same peer as its streams. It uses an interface of the snapshot, and leads to `peer` if there
    /// is one.
    pub fn record_since(&self, earlier: &Self, snapshot: &mut Snapshot, peer: Option<IpAddr>) {
        let links = links::all();
        let is_wanted = |remote: IpAddr| {
            let index = route::device_index(remote);
            let link = links.iter().find(|link| Some(link.index) == index);
            link.is_some_and(|link| snapshot.interfaces().contains(link.name.as_str()))
        };
        let facts = self
            .busiest_since(earlier, peer, is_wanted)
            .and_then(|streams| run(&streams));
        if let Some(facts) = facts {
            runs::add(snapshot, "sock_diag:INET_DIAG_INFO", facts);
        }
    }

    /// The busiest connection and those to the same peer in the same direction.
    fn busiest_since(
        &self,
        earlier: &Self,
        peer: Option<IpAddr>,
        is_wanted: impl Fn(IpAddr) -> bool,
    ) -> Option<Vec<Growth<'_>>> {
        let seconds = self.monotonic_ns.saturating_sub(earlier.monotonic_ns) as f64 / 1e9;
        let all = self
            .established
            .iter()
            .filter(|((_, remote), _)| peer.is_none_or(|peer| remote.ip() == peer));
        let mut all: Vec<Growth<'_>> = all
            .map(|(ends, (info, congestion))| {
                let before = earlier.established.get(ends).map(|(info, _)| info);
                Growth::since(before, info, *ends, congestion.as_deref(), seconds)
            })
            .collect();
        all.sort_by_key(|growth| std::cmp::Reverse(growth.bytes));

        let candidates = all
            .iter()
            .take(CANDIDATES)
            .filter(|growth| growth.is_load());
        let busiest = candidates
            .into_iter()
            .find(|growth| is_wanted(growth.remote.ip()))?
            .clone();
        Some(streams_of(&busiest, all))
    }
}

/// The connections to the peer of the busiest, in its direction.
fn streams_of<'a>(busiest: &Growth<'a>, mut all: Vec<Growth<'a>>) -> Vec<Growth<'a>> {
    let least = busiest.bytes as f64 * STREAM_SHARE_MIN;
    all.retain(|growth| {
        let same_peer = growth.remote.ip() == busiest.remote.ip();
        same_peer && growth.sends == busiest.sends && growth.bytes as f64 >= least
    });
    all
}

/// The busiest of these connections with the facts of its run, over their life, whose length is not
/// known. One that moved little is no run.
pub(crate) fn printed(
    connections: &[(Addresses, State)],
) -> Option<(Addresses, Vec<(String, Value)>)> {
    const BYTES_MIN: u64 = 1_000_000;

    let all = connections.iter();
    let mut all: Vec<_> = all
        .map(|(ends, (info, congestion))| {
            Growth::since(None, info, *ends, congestion.as_deref(), 0.0)
        })
        .collect();
    all.sort_by_key(|growth| std::cmp::Reverse(growth.bytes));

    let busiest = all
        .first()
        .filter(|growth| growth.bytes >= BYTES_MIN)?
        .clone();
    Some((
        (busiest.local, busiest.remote),
        run(&streams_of(&busiest, all))?,
    ))
}

/// Activity of one connection in a period.
#[derive(Debug, Clone)]
struct Growth<'a> {
    local: SocketAddr,
    remote: SocketAddr,
    seconds: f64,
    sends: bool,
    /// Payload the peer acknowledged, or payload received.
    bytes: u64,
    retransmits: u64,
    dsack_segments: Option<u64>,
    reordered: Option<u64>,
    busy_us: Option<u64>,
    rwnd_limited_us: u64,
    sndbuf_limited_us: u64,
    now: &'a TcpInfo,
    congestion: Option<&'a str>,
}

impl<'a> Growth<'a> {
    /// A connection that did not exist before grew from 0.
    fn since(
        before: Option<&TcpInfo>,
        now: &'a TcpInfo,
        (local, remote): Addresses,
        congestion: Option<&'a str>,
        seconds: f64,
    ) -> Self {
        let optional = |field: fn(&TcpInfo) -> Option<u64>| {
            Some(field(now)?.saturating_sub(before.and_then(field).unwrap_or(0)))
        };
        let grown = |field| optional(field).unwrap_or(0);
        let acked = grown(|info| info.bytes_acked);
        let received = grown(|info| info.bytes_received);

        Self {
            local,
            remote,
            seconds,
            // `tcpi_bytes_acked` and `tcpi_bytes_received` exist since Linux 4.1; without them both
            // are 0 and the connection is no candidate.
            sends: acked >= received,
            bytes: acked.max(received),
            retransmits: grown(|info| Some(info.retransmits_total.into())),
            dsack_segments: optional(|info| info.dsack_segments.map(u64::from)),
            reordered: optional(|info| info.reorder_seen.map(u64::from)),
            busy_us: optional(|info| info.busy_us),
            rwnd_limited_us: grown(|info| info.rwnd_limited_us),
            sndbuf_limited_us: grown(|info| info.sndbuf_limited_us),
            now,
            congestion,
        }
    }

    fn is_load(&self) -> bool {
        let is_busy = self
            .busy_us
            .is_some_and(|us| us as f64 / 1e6 >= LOAD_BUSY_MIN * self.seconds);
        self.seconds > 0.0
            && (self.sends && is_busy || self.bytes as f64 * 8.0 / self.seconds >= LOAD_BPS_MIN)
    }
}

/// Facts of a run from its streams, the busiest first; see [`runs`]. How long the test lasts is not
/// known.
fn run(streams: &[Growth<'_>]) -> Option<Vec<(String, Value)>> {
    let first = streams.first()?;
    let bytes: u64 = streams.iter().map(|stream| stream.bytes).sum();

    let delivered = || {
        streams
            .iter()
            .map(|stream| stream.now.delivery_rate_bps)
            .sum::<Option<u64>>()
    };
    let bps = match first.seconds {
        seconds if seconds > 0.0 => Some(bytes as f64 * 8.0 / seconds),
        // Without the length of a period the kernel's delivery rate is all that is known.
        _ => delivered().filter(|_| first.sends).map(|bps| bps as f64),
    };
    let mut ends = [first.local.ip().to_string(), first.remote.ip().to_string()];

    let (end, verb) = if first.sends {
        ("sender", "to")
    } else {
        ("receiver", "from")
    };
    let label = format!("connection {verb} {}", first.remote);
    // Both ends of a connection have the same `path`.
    ends.sort_unstable();

    let mut facts: Vec<(&str, Value)> = vec![
        ("tool", "other".into()),
        ("label", label.as_str().into()),
        ("transport", "tcp".into()),
        (
            "family",
            if first.remote.is_ipv4() {
                "ipv4"
            } else {
                "ipv6"
            }
            .into(),
        ),
        ("path", ends.join(" ").into()),
        ("end", end.into()),
        (
            "streams",
            i64::try_from(streams.len()).unwrap_or(i64::MAX).into(),
        ),
        // What was acknowledged, the peer has received.
        ("received_bytes", bytes.into()),
    ];
    facts.extend(bps.map(|bps| ("received_bps", bps.into())));

    if first.sends {
        facts.push(("sent_bytes", bytes.into()));
        facts.extend(bps.map(|bps| ("sent_bps", bps.into())));
        facts.extend(sender(streams, bytes));
        facts.extend(limits(streams));
    }

    Some(
        facts
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

/// The path as the sender sees it.
fn sender(streams: &[Growth<'_>], bytes: u64) -> Vec<(&'static str, Value)> {
    let now = || streams.iter().map(|stream| stream.now);
    let retransmits: u64 = streams.iter().map(|stream| stream.retransmits).sum();
    let mss_bytes = now().map(|info| info.snd_mss_bytes).max().unwrap_or(0);
    let rtt_us = now().map(|info| info.rtt_us).max();
    let min_rtt_us = now().filter_map(|info| info.min_rtt_us).min();
    let inflation = rtt_us
        .zip(min_rtt_us.filter(|us| *us > 0))
        .map(|(now, least)| f64::from(now) / f64::from(least));

    let sum = |field: fn(&Growth<'_>) -> Option<u64>| {
        streams
            .iter()
            .map(field)
            .sum::<Option<u64>>()
            .map(Value::from)
    };
    let facts: [(&str, Option<Value>); 12] = [
        ("retransmits", Some(retransmits.into())),
        (
            "retransmit_share",
            retransmit_share(retransmits, bytes, mss_bytes).map(Value::from),
        ),
        ("reordered_segments", sum(|stream| stream.reordered)),
        ("dsack_segments", sum(|stream| stream.dsack_segments)),
        (
            "reordering",
            now()
                .map(|info| info.reordering_segments)
                .max()
                .map(Value::from),
        ),
        ("rtt_us", rtt_us.map(Value::from)),
        ("min_rtt_us", min_rtt_us.map(Value::from)),
        ("rtt_inflation", inflation.map(Value::from)),
        ("mss_bytes", Some(mss_bytes.into())),
        (
            "pmtu_bytes",
            now().map(|info| info.pmtu_bytes).max().map(Value::from),
        ),
        (
            "snd_wnd_bytes",
            now()
                .filter_map(|info| info.snd_wnd_bytes)
                .max()
                .map(Value::from),
        ),
        (
            "congestion",
            streams
                .first()
                .and_then(|stream| stream.congestion)
                .map(Value::from),
        ),
    ];
    facts
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

/// Causes of the senders' waits, of the time they had data to send; and how much of the period that
/// was.
fn limits(streams: &[Growth<'_>]) -> Vec<(&'static str, Value)> {
    let Some(busy_us) = streams
        .iter()
        .map(|stream| stream.busy_us)
        .sum::<Option<u64>>()
        .filter(|us| *us > 0)
    else {
        return Vec::new();
    };
    let share = |field: fn(&Growth<'_>) -> u64| {
        streams.iter().map(field).sum::<u64>() as f64 / busy_us as f64
    };
    let seconds: f64 = streams.iter().map(|stream| stream.seconds).sum();

    let mut facts: Vec<(&str, Value)> = vec![
        (
            "rwnd_limited_share",
            share(|stream| stream.rwnd_limited_us).into(),
        ),
        (
            "sndbuf_limited_share",
            share(|stream| stream.sndbuf_limited_us).into(),
        ),
    ];
    if seconds > 0.0 {
        let busy = (busy_us as f64 / 1e6 / seconds).min(1.0);
        facts.extend([
            ("busy_share", busy.into()),
            ("idle_share", (1.0 - busy).into()),
        ]);
    }

    facts
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use linerate_model::snapshot::Source;
    use linerate_sys::tcp_info::decode;

    use super::*;

    /// A connection from port to port after these numbers of acknowledged and received bytes.
    fn connection(ports: (u16, u16), acked: u64, received: u64) -> (Addresses, State) {
        let info = TcpInfo {
            bytes_acked: Some(acked),
            bytes_received: Some(received),
            busy_us: Some(acked / 10),
            rwnd_limited_us: Some(acked / 40),
            sndbuf_limited_us: Some(0),
            retransmits_total: u32::try_from(acked / 100_000).expect("few"),
            snd_mss_bytes: 1000,
            rtt_us: 400,
            min_rtt_us: Some(100),
            ..decode(&[0; 240]).expect("complete")
        };
        let at = |octet, port| SocketAddr::from(([192, 0, 2, octet], port));
        (
            (at(1, ports.0), at(2, ports.1)),
            (info, Some("bbr".to_owned())),
        )
    }

    fn at(seconds: u64, all: &[(Addresses, State)]) -> Connections {
        Connections {
            monotonic_ns: seconds * 1_000_000_000,
            established: all.iter().cloned().collect(),
        }
    }

    fn run_of(before: &Connections, after: &Connections) -> BTreeMap<String, Value> {
        let streams = after
            .busiest_since(before, None, |_| true)
            .unwrap_or_default();
        run(&streams).into_iter().flatten().collect()
    }

    #[test]
    fn streams_to_the_busiest_peer_are_one_run() {
        let before = at(
            10,
            &[
                connection((1, 5201), 500_000, 0),
                connection((2, 5201), 700_000, 0),
            ],
        );
        let after = at(
            12,
            &[
                connection((1, 5201), 10_500_000, 0),
                connection((2, 5201), 5_700_000, 0),
                connection((3, 5201), 4000, 9000),
                connection((4, 80), 0, 8_000_000),
            ],
        );
        let facts = run_of(&before, &after);
        let number = |name: &str| facts[name].number().expect("a number");

        for (name, expected) in [
            ("streams", 2.0),
            ("sent_bps", 6e7),
            ("retransmits", 150.0),
            ("retransmit_share", 0.01),
            ("rtt_inflation", 4.0),
            ("min_rtt_us", 100.0),
            ("busy_share", 0.375),
            ("rwnd_limited_share", 0.25),
            ("sndbuf_limited_share", 0.0),
        ] {
            assert_eq!(number(name), expected, "{name}");
        }

        for (name, expected) in [
            ("tool", "other"),
            ("end", "sender"),
            ("congestion", "bbr"),
            ("path", "192.0.2.1 192.0.2.2"),
        ] {
            assert_eq!(facts[name], expected.into(), "{name}");
        }
    }

    #[test]
    fn receiver_has_its_rate_and_an_idle_connection_is_no_run() {
        let before = at(10, &[connection((4, 80), 0, 0)]);
        let facts = run_of(&before, &at(12, &[connection((4, 80), 0, 8_000_000)]));
        assert_eq!(
            (&facts["end"], &facts["received_bps"]),
            (&"receiver".into(), &3.2e7.into())
        );
        assert!(!facts.contains_key("busy_share") && !facts.contains_key("retransmits"));
        assert!(run_of(&before, &at(12, &[connection((4, 80), 1000, 90_000)])).is_empty());

        let other = at(12, &[connection((4, 80), 0, 8_000_000)]);
        assert!(
            other
                .busiest_since(&before, Some([192, 0, 2, 9].into()), |_| true)
                .is_none(),
            "another peer"
        );
        assert!(
            other.busiest_since(&before, None, |_| false).is_none(),
            "another interface"
        );
    }

    #[test]
    fn connection_of_this_host_is_found_on_its_interface() {
        const BYTES: usize = 20 << 20;

        let peer = IpAddr::from([127, 77, 1, 2]);
        let listener = TcpListener::bind((peer, 0)).expect("a port");
        let mut client =
            TcpStream::connect(listener.local_addr().expect("an address")).expect("connect");
        let (mut server, _) = listener.accept().expect("accept");
        let before = Connections::read().expect("sock_diag");

        let reader = thread::spawn(move || {
            let mut received = vec![0; BYTES];
            server.read_exact(&mut received).expect("all of it");
            server
        });
        client.write_all(&vec![0; BYTES]).expect("send");
        let _server = reader.join().expect("no panic");
        let after = Connections::read().expect("sock_diag");
        let run_on = |interface: &str| {
            let mut snapshot = Snapshot::new("a", Source::Live);
            snapshot.set(format!("nic.{interface}.link.up"), true, "test");
            after.record_since(&before, &mut snapshot, Some(peer));
            snapshot
        };
        let snapshot = run_on("lo");
        assert_eq!(snapshot.text("run.0.end"), Some("sender"), "{snapshot:?}");
        assert!(
            snapshot.number("run.0.sent_bytes") > Some(BYTES as f64 / 2.0),
            "{snapshot:?}"
        );
        assert!(snapshot.text("run.0.congestion").is_some(), "{snapshot:?}");
        assert_eq!(runs::count(&run_on("eth77")), 0);
    }
}
