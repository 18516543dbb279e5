//! A test observed by both ends: what one end sends to the other, and the diagnosis of both
//! observations together.

mod loss;

use std::collections::BTreeMap;

use linerate_model::finding::{Diagnosis, LossSplit};
use linerate_model::printable::acts;
use linerate_model::snapshot::{Snapshot, Value};
use serde::{Deserialize, Serialize};

use crate::judge::diagnose_with;
use crate::observed::Observed;
use crate::period::Period;
use crate::runs;
use crate::slices::slices;
use crate::timeline::{RunFacts, TestInterval, insert};
use loss::loss;

/// Observation of a test by one end. Sent as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndpointObservation {
    /// The host at the end of the test.
    pub snapshot: Snapshot,
    /// Its counters over the test.
    #[serde(default)]
    pub period: Option<Period>,
    /// Client to server, as this end saw it.
    #[serde(default)]
    pub forward: Option<RunFacts>,
    /// Server to client, as this end saw it.
    #[serde(default)]
    pub reverse: Option<RunFacts>,
    /// The intervals of [`Self::forward`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forward_intervals: Vec<TestInterval>,
    /// The intervals of [`Self::reverse`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reverse_intervals: Vec<TestInterval>,
}

impl EndpointObservation {
    /// Parses the observation of a peer. Only [`Self::forward`] and [`Self::reverse`] hold runs.
    ///
    /// # Errors
    /// When the text is no observation.
    pub fn from_peer(text: &str) -> Result<Self, serde_json::Error> {
        let mut observation: Self = serde_json::from_str(text)?;
        // Reports print keys: control characters of a peer must not reach a terminal.
        let is_plain = |key: &str| !key.contains(acts);
        // Runs of a peer are `forward` and `reverse`; other facts of runs would mix with them.
        observation
            .snapshot
            .facts
            .retain(|key, _| is_plain(key) && !key.starts_with("run."));
        observation.snapshot.counters.retain(|key, _| is_plain(key));

        Ok(observation)
    }
}

/// Diagnoses a test by the observations of its client and, if it sent one, its server.
pub fn diagnose_test(
    client: EndpointObservation,
    server: Option<EndpointObservation>,
) -> Diagnosis {
    let runs = [
        joined(&client, server.as_ref(), |observation| {
            observation.forward.as_ref()
        }),
        joined(&client, server.as_ref(), |observation| {
            observation.reverse.as_ref()
        }),
    ];
    let timelines: Vec<Vec<TestInterval>> = [
        timeline(
            &client,
            server.as_ref(),
            |observation| &observation.forward_intervals,
            runs[0].is_some(),
        ),
        timeline(
            &client,
            server.as_ref(),
            |observation| &observation.reverse_intervals,
            runs[1].is_some(),
        ),
    ]
    .into_iter()
    .flatten()
    .collect();

    let same_host = is_same_host(
        &client.snapshot,
        server.as_ref().map(|server| &server.snapshot),
    );
    let mut observed = vec![end(
        "client",
        client,
        &runs,
        ["sender", "receiver"],
        same_host,
    )];
    observed.extend(
        server.map(|server| end("server", server, &runs, ["receiver", "sender"], same_host)),
    );

    let loss = loss(&observed, &runs);
    // Before the diagnosis: rules read the parts as facts of the run.
    observed
        .iter_mut()
        .for_each(|one| record_loss(&mut one.snapshot, &loss));
    let loss = loss.into_iter().map(|(_, split)| split).collect();
    let mut diagnosis = diagnose_with(&observed, &[], &slices(&observed, &timelines));
    diagnosis.loss = loss;

    diagnosis
}

/// The fact that the peer runs on this machine, maybe in another network namespace.
pub const PEER_IS_HERE: &str = "route.peer.is_here";

/// True if both ends run on one host; `None` where a server that was not observed may be anywhere.
fn is_same_host(client: &Snapshot, server: Option<&Snapshot>) -> Option<bool> {
    match server {
        // Network namespaces of one machine share its boot id, and its CPUs.
        Some(server) => Some(client.boot_id.is_some() && client.boot_id == server.boot_id),
        None => {
            let is_loopback = client.text("route.peer.dev") == Some("lo");
            // Otherwise the server is one of the other programs that the advice would end.
            let is_known = is_loopback || client.flag(PEER_IS_HERE).is_some_and(|is_here| is_here);
            is_known.then_some(true)
        }
    }
}

/// Records the parts of the lost datagrams with every run; a part whose counters were not read is
/// absent.
fn record_loss(snapshot: &mut Snapshot, loss: &[(usize, LossSplit)]) {
    for (run, split) in loss {
        for (place, lost) in [
            ("network", Some(split.network)),
            ("sender", split.sender),
            ("nic", split.nic),
            ("backlog", split.backlog),
            ("firewall", split.firewall),
            ("socket", split.socket),
            ("kernel", split.kernel),
        ] {
            if let Some(lost) = lost {
                snapshot.set(format!("run.{run}.lost_in_{place}"), lost, "test");
            }
        }
    }
}

/// One direction as observed by both ends. Each end contributes what it measured itself.
fn joined(
    client: &EndpointObservation,
    server: Option<&EndpointObservation>,
    direction: impl Fn(&EndpointObservation) -> Option<&RunFacts>,
) -> Option<RunFacts> {
    let mut facts = direction(client)?.clone();
    let peers = server.and_then(&direction).into_iter().flatten();
    for (name, value) in peers.filter(|(name, _)| is_reported_by_peer(name)) {
        // The client's loss is that of what it sent, once it has the server's count.
        let is_known = name == "loss_share" && facts.contains_key(name);
        if !is_known {
            facts.insert(name.clone(), value.clone());
        }
    }

    Some(facts)
}

/// The intervals of an existing run, each with the server's facts about its midpoint.
fn timeline(
    client: &EndpointObservation,
    server: Option<&EndpointObservation>,
    direction: impl Fn(&EndpointObservation) -> &Vec<TestInterval>,
    exists: bool,
) -> Option<Vec<TestInterval>> {
    let mut intervals = exists.then(|| direction(client).clone())?;
    let reported = server.map_or(&[][..], |server| direction(server).as_slice());

    for interval in &mut intervals {
        let middle = f64::midpoint(interval.start_s, interval.end_s);
        let covers = |other: &&TestInterval| other.start_s <= middle && middle < other.end_s;

        for (name, value) in reported
            .iter()
            .find(covers)
            .into_iter()
            .flat_map(|other| &other.facts)
        {
            let receives = name == "received_bps" && !interval.facts.contains_key(name);
            if receives || is_reported_by_peer(name) {
                interval.facts.insert(name.clone(), value.clone());
            }
        }

        vanished(&mut interval.facts);
    }

    Some(intervals)
}

/// Corrects the loss of an interval in which most datagrams did not arrive: a receiver does not
/// miss what follows the last one that it saw. The intervals of both ends begin at different times,
/// so that smaller differences have no meaning.
fn vanished(facts: &mut RunFacts) {
    const PART: f64 = 0.5;

    let number = |name: &str| facts.get(name).and_then(Value::number);
    if let (Some(sent), Some(received)) = (number("sent_packets"), number("received_packets"))
        && received < PART * sent
    {
        insert(facts, "loss_share", Some(1.0 - received / sent));
    }
}

/// Facts of a run that only the server has: about its threads and what it sent.
const REPORTED_BY_PEER: &str = "\
    server_cpus receiver_thread_cpu sender_thread_cpu rwnd_limited_share sndbuf_limited_share \
    busy_share idle_share snd_wnd_bytes min_rtt_us mss_bytes pmtu_bytes rtt_us rtt_inflation \
    congestion reordered_segments reordering dsack_segments retransmits retransmit_share \
    sndbuf_bytes notsent_bytes sent_packets received_packets loss_share";

fn is_reported_by_peer(name: &str) -> bool {
    REPORTED_BY_PEER.split(' ').any(|known| known == name)
}

/// One end as input of the rules: named by its role, with every run and its part in it.
fn end(
    name: &str,
    observation: EndpointObservation,
    runs: &[Option<RunFacts>; 2],
    parts: [&str; 2],
    same_host: Option<bool>,
) -> Observed {
    const SRC: &str = "test";

    let EndpointObservation {
        mut snapshot,
        period,
        ..
    } = observation;
    snapshot.host = name.to_owned();

    for (run, part) in runs.iter().zip(parts) {
        let Some(run) = run else { continue };
        let mut facts: BTreeMap<String, Value> = run.clone();
        insert(&mut facts, "end", Some(part));

        if let Some(same_host) = same_host {
            insert(&mut facts, "same_host", Some(same_host));
        }

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
fn send_buffer(snapshot: &Snapshot, facts: &mut BTreeMap<String, Value>) {
    let fixed = facts.get("window_bytes").and_then(Value::number);
    let grown = || {
        let triple = snapshot.text("sysctl.net.ipv4.tcp_wmem")?;
        Some(triple.split_whitespace().nth(2)?.parse::<f64>().ok()? / 2.0)
    };
    if let Some(bytes) = fixed.or_else(grown) {
        insert(facts, "sndbuf_bytes", Some(bytes));
    }
}

/// A test that was negotiated and whose data never arrived shows that small packets pass and large
/// ones do not.
fn black_hole(snapshot: &mut Snapshot, facts: &BTreeMap<String, Value>) {
    const TRIES: f64 = 3.0;
    const SRC: &str = "test";

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
    if let (Some(mtu), Some(path)) = (mtu, number("pmtu_bytes")) {
        // A router reported a path MTU below that of the interface (RFC 1191, RFC 8201).
        snapshot.set("path.told_mtu", path < mtu, SRC);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::period::Delta;
    use linerate_model::snapshot::Source;

    fn observation(run: &[(&str, Value)], counters: &[(&str, u64)]) -> EndpointObservation {
        let mut snapshot = Snapshot::new("h", Source::Live);
        let mut period = Period::default();
        (period.seconds, period.intervals) = (5.0, 5);

        for (key, grown) in counters {
            snapshot.count(*key, *grown);
            period.set(
                *key,
                Delta {
                    value: *grown,
                    ..Delta::default()
                },
            );
        }

        let facts = run
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()));
        EndpointObservation {
            snapshot,
            period: Some(period),
            forward: Some(facts.collect()),
            reverse: None,
            forward_intervals: Vec::new(),
            reverse_intervals: Vec::new(),
        }
    }

    #[test]
    fn test_with_loss_names_its_place_or_what_decides() {
        let loss = |target_bps: f64| {
            [
                ("target_bps", target_bps.into()),
                ("loss_share", 0.02.into()),
            ]
        };
        let client = |target_bps| {
            observation(
                &[&udp()[..], &loss(target_bps)].concat(),
                &[("nic.e.qdisc.root.drops", 0)],
            )
        };

        let server = |socket| {
            observation(
                &[],
                &[
                    ("net.snmp.Udp.RcvbufErrors", socket),
                    ("softnet.dropped", 0),
                ],
            )
        };
        let verdict = |mut client: EndpointObservation, server| {
            client.forward_intervals = intervals(&[98e6, 98e6]);
            diagnose_test(client, server).verdict
        };

        for target_bps in [1e8, 3e8] {
            let path = verdict(client(target_bps), Some(server(0)));
            assert_eq!(
                (path.verdict.as_str(), path.sentence.contains("PATH-11")),
                ("path", true),
                "{path:?}"
            );
            let socket = verdict(client(target_bps), Some(server(900)));
            assert_eq!(
                (socket.verdict.as_str(), socket.sentence.contains("UDP-01")),
                ("receiver-cpu-app", true),
                "{socket:?}"
            );

            let alone = verdict(client(target_bps), None);
            assert!(
                alone
                    .sentence
                    .starts_with("undecided between the path and the receiver: "),
                "{alone:?}"
            );
            assert_eq!(alone.confidence, linerate_model::finding::Confidence::Low);
        }
    }

    #[test]
    fn packet_that_the_sender_drops_is_all_datagrams_in_it() {
        let sent = [&udp()[..], &[("sent_packets", 2000_i64.into())]].concat();
        let counters = [
            ("net.snmp.Udp.OutDatagrams", 150),
            ("net.snmp.Udp.SndbufErrors", 50),
            ("nic.e.qdisc.root.drops", 50),
        ];
        let split = diagnose_test(observation(&sent, &counters), Some(observation(&[], &[])))
            .loss
            .remove(0);
        assert_eq!((split.sender, split.network), (Some(500), 500));
    }

    #[test]
    fn drops_of_other_programs_are_not_those_of_the_test() {
        let server = observation(
            &[],
            &[("net.snmp.Udp.RcvbufErrors", 900), ("self.udp.7.drops", 0)],
        );
        let diagnosis = diagnose_test(observation(&udp(), &[]), Some(server));
        assert_eq!(
            (diagnosis.loss[0].socket, diagnosis.loss[0].network),
            (Some(0), 1000)
        );
        assert!(
            diagnosis
                .ruled_out
                .iter()
                .any(|rule| rule.id == "UDP-01" && rule.subject == "server"),
            "{diagnosis:?}"
        );
    }

    fn udp() -> [(&'static str, Value); 6] {
        [
            ("tool", "linerate".into()),
            ("label", "test".into()),
            ("transport", "udp".into()),
            ("received_bps", 1e8.into()),
            ("lost_packets", 1000_i64.into()),
            ("block_len_bytes", 1000_i64.into()),
        ]
    }

    #[test]
    fn lost_datagrams_are_found_at_both_ends() {
        let client = observation(
            &udp(),
            &[
                ("net.snmp.Udp.SndbufErrors", 0),
                ("nic.e.qdisc.root.drops", 100),
            ],
        );
        let server = observation(
            &[],
            &[
                ("net.snmp.Udp.RcvbufErrors", 700),
                ("nic.e.drv.rx_missed_errors", 150),
            ],
        );
        let mut filtered = server.clone();
        let diagnosis = diagnose_test(client.clone(), Some(server));
        let [split] = diagnosis.loss.as_slice() else {
            panic!("one direction");
        };
        assert_eq!(
            (
                split.lost,
                split.sender,
                split.nic,
                split.socket,
                split.network
            ),
            (1000, Some(100), Some(150), Some(700), 50)
        );
        assert!(
            diagnosis
                .findings
                .iter()
                .any(|f| f.id == "UDP-01" && f.subject == "server")
        );

        let alone = diagnose_test(client.clone(), None);
        assert_eq!((alone.loss[0].socket, alone.loss[0].network), (None, 900));
        filtered.period.as_mut().expect("watched").set(
            "firewall.drops",
            Delta {
                value: 40,
                ..Delta::default()
            },
        );

        let firewall = diagnose_test(client.clone(), Some(filtered.clone()))
            .loss
            .remove(0);
        assert_eq!((firewall.firewall, firewall.network), (Some(40), 10));

        // Two packets of 23 datagrams each.
        let period = filtered.period.as_mut().expect("watched");
        period.set(
            "firewall.drops",
            Delta {
                value: 2,
                ..Delta::default()
            },
        );
        period.set(
            "firewall.drop_bytes",
            Delta {
                value: 2 * 28 + 46 * 1000,
                ..Delta::default()
            },
        );

        let joined = diagnose_test(client, Some(filtered)).loss.remove(0);
        assert_eq!((joined.firewall, joined.network), (Some(46), 4));
        assert_eq!(alone.hosts, ["client"]);
    }

    #[test]
    fn limit_of_the_sender_is_found_at_the_sending_end() {
        let client = observation(
            &[
                ("tool", "linerate".into()),
                ("transport", "tcp".into()),
                ("received_bps", 1e8.into()),
                ("receiver_thread_cpu", 0.2.into()),
            ],
            &[],
        );
        let server = observation(
            &[
                ("receiver_thread_cpu", 0.97.into()),
                ("received_bps", 5.0.into()),
            ],
            &[("cpu.0.user", 500)],
        );
        let diagnosis = diagnose_test(client, Some(server));
        let cause = diagnosis
            .findings
            .iter()
            .find(|finding| finding.id == "CPU-02")
            .expect("found");
        assert_eq!(
            (cause.subject.as_str(), cause.evidence[0].value.as_str()),
            ("server", "0.97")
        );
        assert!(
            diagnosis
                .findings
                .iter()
                .all(|finding| finding.subject != "client")
        );
    }

    #[test]
    fn lost_large_packets_indicate_a_path_mtu_black_hole() {
        let run = |received: i64| {
            let mut client = observation(
                &[
                    ("tool", "linerate".into()),
                    ("transport", "tcp".into()),
                    ("sent_bytes", 90_000_i64.into()),
                    ("received_bytes", received.into()),
                    ("retransmits", 5_i64.into()),
                    ("pmtu_bytes", 1500_i64.into()),
                ],
                &[],
            );
            client.snapshot.set("route.peer.dev", "e", "test");
            client.snapshot.set("nic.e.net.mtu", 1500_i64, "test");
            diagnose_test(client, None)
        };
        assert!(run(0).findings.iter().any(|finding| finding.id == "MTU-02"));
        assert!(run(1).findings.iter().all(|finding| finding.id != "MTU-02"));
    }

    #[test]
    fn server_in_another_namespace_of_this_machine_shares_its_cpus() {
        let mut client = Snapshot::new("h", Source::Live);
        client.set("route.peer.dev", "veth0", "test");
        assert_eq!(is_same_host(&client, None), None);
        client.set(PEER_IS_HERE, true, "test");
        assert_eq!(is_same_host(&client, None), Some(true));

        let mut server = Snapshot::new("s", Source::Live);
        server.boot_id = Some("another boot".into());
        assert_eq!(is_same_host(&client, Some(&server)), Some(false));
    }

    #[test]
    fn test_that_moved_no_data_is_not_healthy() {
        let client = observation(
            &[("tool", "linerate".into()), ("received_bps", 0.0.into())],
            &[],
        );
        let sentence = diagnose_test(client, None).verdict.sentence;
        assert_eq!(
            sentence,
            "the test moved no data, and no cause was found among what could be checked"
        );
    }

    /// Intervals of one second each with what was received in them.
    fn intervals(rates_bps: &[f64]) -> Vec<TestInterval> {
        let interval = |(second, rate): (usize, &f64)| TestInterval {
            start_s: crate::arithmetic::to_f64(second as u64),
            end_s: crate::arithmetic::to_f64(second as u64 + 1),
            facts: [("received_bps".to_owned(), (*rate).into())].into(),
        };
        rates_bps.iter().enumerate().map(interval).collect()
    }

    #[test]
    fn every_second_of_a_test_votes() {
        let run = [
            ("tool", "linerate".into()),
            ("transport", "tcp".into()),
            ("received_bps", 8e7.into()),
            ("target_bps", 1e8.into()),
        ];
        let verdict = |rates_bps: &[f64]| {
            let mut client = observation(&run, &[]);
            client.period = None;
            client.forward_intervals = intervals(rates_bps);
            diagnose_test(client, None).verdict
        };

        // As a whole the test missed its target; three seconds of four it did not.
        let voted = verdict(&[1e8, 1e8, 2e7, 1e8]);
        assert_eq!(
            (voted.verdict.as_str(), voted.share_of_time_percent),
            ("configured-rate", Some(75))
        );
        assert_eq!(voted.timeline.len(), 3, "{voted:?}");

        let missed = verdict(&[2e7, 2e7]);
        assert_eq!(
            (missed.verdict.as_str(), missed.share_of_time_percent),
            ("unknown", None)
        );
        assert_eq!(verdict(&[1e8]).verdict, "unknown", "one second is no vote");
    }

    #[test]
    fn intervals_of_server_and_client_are_merged() {
        let mut client = observation(&udp(), &[]);
        client.forward_intervals = intervals(&[1.0, 2.0]);
        client
            .forward_intervals
            .iter_mut()
            .for_each(|interval| interval.facts.clear());

        let mut server = observation(&[], &[]);
        server.forward_intervals = intervals(&[5.0, 7.0]);

        let joined = timeline(
            &client,
            Some(&server),
            |observation| &observation.forward_intervals,
            true,
        );
        assert_eq!(joined, Some(server.forward_intervals.clone()));
        assert_eq!(
            timeline(
                &client,
                Some(&server),
                |observation| &observation.forward_intervals,
                false
            ),
            None
        );
    }

    #[test]
    fn observation_round_trips_and_garbage_is_rejected() {
        let sent = observation(&udp(), &[("net.snmp.Udp.RcvbufErrors", 7)]);
        let text = serde_json::to_string(&sent).expect("plain data");
        assert_eq!(
            EndpointObservation::from_peer(&text).expect("our own"),
            sent
        );

        let mut forged = sent.clone();
        forged.snapshot.set("run.0.tool", "forged", "test");
        let text = serde_json::to_string(&forged).expect("plain data");
        assert_eq!(
            EndpointObservation::from_peer(&text).expect("an observation"),
            sent
        );

        for garbage in ["", "{}", "[]", "{\"snapshot\":1}"] {
            assert!(
                EndpointObservation::from_peer(garbage).is_err(),
                "{garbage}"
            );
        }
    }
}
