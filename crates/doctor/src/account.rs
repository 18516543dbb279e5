//! A test that both ends watched: what one end tells the other, and the diagnosis of both accounts together.

use std::collections::BTreeMap;

use linerate_model::finding::{Diagnosis, LossSplit};
use linerate_model::snapshot::{Snapshot, Value};
use serde::{Deserialize, Serialize};

use crate::classes::Class;
use crate::course::{Moment, RunFacts};
use crate::derive::derive;
use crate::judge::{Observed, diagnose_with, world};
use crate::loss::split_loss;
use crate::runs;
use crate::scope::Host;
use crate::slices::slices;
use crate::window::Window;

/// What one end knows after a test. It travels as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// The host at the end of the test.
    pub snapshot: Snapshot,
    /// Its counters over the test.
    #[serde(default)]
    pub window: Option<Window>,
    /// Client to server, as this end saw it.
    #[serde(default)]
    pub forward: Option<RunFacts>,
    /// Server to client, as this end saw it.
    #[serde(default)]
    pub reverse: Option<RunFacts>,
    /// The intervals of [`Self::forward`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forward_moments: Vec<Moment>,
    /// The intervals of [`Self::reverse`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reverse_moments: Vec<Moment>,
}

impl Account {
    /// An account a peer sent. Runs are told by [`Self::forward`] and [`Self::reverse`] alone.
    ///
    /// # Errors
    /// When the text is no account.
    pub fn from_peer(text: &str) -> Result<Self, serde_json::Error> {
        let mut account: Self = serde_json::from_str(text)?;
        let is_plain = |key: &str| key.chars().all(|c| !c.is_control());
        account
            .snapshot
            .facts
            .retain(|key, _| is_plain(key) && !key.starts_with("run."));
        account.snapshot.counters.retain(|key, _| is_plain(key));
        Ok(account)
    }
}

/// Judges a test by what its client and, if it said so, its server know.
#[must_use]
pub fn diagnose_test(client: Account, server: Option<Account>) -> Diagnosis {
    let runs = [
        joined(&client, server.as_ref(), |account| account.forward.as_ref()),
        joined(&client, server.as_ref(), |account| account.reverse.as_ref()),
    ];
    let courses: Vec<Vec<Moment>> = [
        course(
            &client,
            server.as_ref(),
            |account| &account.forward_moments,
            runs[0].is_some(),
        ),
        course(
            &client,
            server.as_ref(),
            |account| &account.reverse_moments,
            runs[1].is_some(),
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    let same_host = server.as_ref().map(|server| {
        let boots = (&client.snapshot.boot_id, &server.snapshot.boot_id);
        boots.0.is_some() && boots.0 == boots.1
    });
    let mut observed = vec![end("client", client, &runs, ["sender", "receiver"], same_host)];
    observed.extend(server.map(|server| end("server", server, &runs, ["receiver", "sender"], same_host)));
    let mut diagnosis = diagnose_with(&observed, &[], &slices(&observed, &courses));
    diagnosis.loss = loss(&observed, &runs);
    diagnosis
}

/// One direction as both ends saw it. An end knows best what it did itself, and says nothing about the rest.
fn joined(
    client: &Account,
    server: Option<&Account>,
    direction: impl Fn(&Account) -> Option<&RunFacts>,
) -> Option<RunFacts> {
    let mut facts = direction(client)?.clone();
    let peers = server.and_then(&direction).into_iter().flatten();
    for (name, value) in peers.filter(|(name, _)| TOLD_BY_PEER.contains(&name.as_str())) {
        facts.insert(name.clone(), value.clone());
    }
    Some(facts)
}

/// The moments of a run that exists, each with what the server knows of its middle.
fn course(
    client: &Account,
    server: Option<&Account>,
    direction: impl Fn(&Account) -> &Vec<Moment>,
    exists: bool,
) -> Option<Vec<Moment>> {
    let mut moments = exists.then(|| direction(client).clone())?;
    let told = server.map_or(&[][..], |server| direction(server).as_slice());
    for moment in &mut moments {
        let middle = f64::midpoint(moment.start_s, moment.end_s);
        let covers = |other: &&Moment| other.start_s <= middle && middle < other.end_s;
        for (name, value) in told.iter().find(covers).into_iter().flat_map(|other| &other.facts) {
            let receives = name == "received_bps" && !moment.facts.contains_key(name);
            if receives || TOLD_BY_PEER.contains(&name.as_str()) {
                moment.facts.insert(name.clone(), value.clone());
            }
        }
    }
    Some(moments)
}

/// What only the server can know of a run: its threads, and of what it sent itself.
const TOLD_BY_PEER: [&str; 18] = [
    "server_cpus",
    "receiver_thread_cpu",
    "sender_thread_cpu",
    "rwnd_limited_share",
    "sndbuf_limited_share",
    "busy_share",
    "idle_share",
    "snd_wnd_bytes",
    "min_rtt_us",
    "mss_bytes",
    "pmtu_bytes",
    "rtt_us",
    "rtt_inflation",
    "congestion",
    "reordered_segments",
    "retransmit_share",
    "sndbuf_bytes",
    "sent_packets",
];

/// One end as the rules see it: under its role's name, with every run and the part it had in it.
fn end(
    name: &str,
    account: Account,
    runs: &[Option<RunFacts>; 2],
    parts: [&str; 2],
    same_host: Option<bool>,
) -> Observed {
    const SRC: &str = "test";
    let Account {
        mut snapshot, window, ..
    } = account;
    snapshot.host = name.to_owned();
    for (run, part) in runs.iter().zip(parts) {
        let Some(run) = run else { continue };
        let mut facts: BTreeMap<String, Value> = run.clone();
        facts.insert("end".into(), part.into());
        if let Some(same_host) = same_host {
            facts.insert("same_host".into(), same_host.into());
        }
        if part == "sender" {
            send_buffer(&snapshot, &mut facts);
            black_hole(&mut snapshot, &facts);
        }
        runs::add(&mut snapshot, SRC, facts);
    }
    Observed { snapshot, window }
}

/// Half of a send buffer holds payload. One that was asked for by size stays, any other grows to the kernel's maximum.
fn send_buffer(snapshot: &Snapshot, facts: &mut BTreeMap<String, Value>) {
    let fixed = facts.get("window_bytes").and_then(Value::number);
    let grown = || {
        let triple = snapshot.text("sysctl.net.ipv4.tcp_wmem")?;
        Some(triple.split_whitespace().nth(2)?.parse::<f64>().ok()? / 2.0)
    };
    if let Some(bytes) = fixed.or_else(grown) {
        facts.insert("sndbuf_bytes".into(), bytes.into());
    }
}

/// A test that was agreed on and whose data never arrived has shown that small packets pass and large ones do not.
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
        snapshot.set("path.told_mtu", path < mtu, SRC);
    }
}

/// Where the datagrams of a test went, direction by direction.
fn loss(observed: &[Observed], runs: &[Option<RunFacts>; 2]) -> Vec<LossSplit> {
    let snapshots: Vec<Snapshot> = observed.iter().map(|one| derive(one.snapshot.clone())).collect();
    let windows: Vec<Option<&Window>> = observed.iter().map(|one| one.window.as_ref()).collect();
    let world = world(&snapshots, &windows);
    let mut splits = Vec::new();
    for (run, sender_first) in runs.iter().zip([true, false]) {
        let number = |name: &str| run.as_ref()?.get(name)?.number();
        let Some(lost) = number("lost_packets") else { continue };
        let (client, server) = (world.hosts.first(), world.hosts.get(1));
        let (sender, receiver) = if sender_first {
            (client, server)
        } else {
            (server, client)
        };
        let label = run.as_ref().and_then(|run| run.get("label")).map(ToString::to_string);
        splits.push(split_loss(
            label.unwrap_or_default(),
            whole(lost),
            sender.and_then(sender_drops),
            receiver.and_then(adapter_drops),
            receiver.and_then(socket_drops),
        ));
    }
    splits
}

fn whole(number: f64) -> u64 {
    // A float cast saturates.
    number.max(0.0) as u64
}

/// Growth of the first counters that were read.
fn growth(host: &Host<'_>, keys: &[&str]) -> Option<u64> {
    host.window?;
    host.growth_of(keys).ok().map(|growth| growth.value)
}

fn socket_drops(host: &Host<'_>) -> Option<u64> {
    growth(host, &["net.snmp.Udp.RcvbufErrors", "net.snmp6.Udp6RcvbufErrors"])
}

fn adapter_drops(host: &Host<'_>) -> Option<u64> {
    host.window?;
    let drops: Vec<u64> = host
        .nics()
        .filter_map(|nic| nic.growth(Class::RxRingFull).ok())
        .map(|growth| growth.value)
        .collect();
    (!drops.is_empty()).then(|| drops.iter().sum())
}

/// Datagrams the sender's own socket or queueing discipline refused.
fn sender_drops(host: &Host<'_>) -> Option<u64> {
    let socket = growth(host, &["net.snmp.Udp.SndbufErrors", "net.snmp6.Udp6SndbufErrors"]);
    let queues: Vec<u64> = host
        .nics()
        .filter_map(|nic| growth(host, &[&nic.key("qdisc.root.drops")]))
        .collect();
    match (socket, queues.is_empty()) {
        (None, true) => None,
        (socket, _) => Some(socket.unwrap_or(0).saturating_add(queues.iter().sum())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Delta;
    use linerate_model::snapshot::Source;

    fn account(run: &[(&str, Value)], counters: &[(&str, u64)]) -> Account {
        let mut snapshot = Snapshot::new("h", Source::Live);
        let mut window = Window::default();
        (window.seconds, window.intervals) = (5.0, 5);
        for (key, grown) in counters {
            snapshot.count(*key, *grown, None);
            window.set(*key, Delta::of(*grown));
        }
        let facts = run.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        Account {
            snapshot,
            window: Some(window),
            forward: Some(facts.collect()),
            reverse: None,
            forward_moments: Vec::new(),
            reverse_moments: Vec::new(),
        }
    }

    fn udp() -> [(&'static str, Value); 5] {
        [
            ("tool", "linerate".into()),
            ("label", "test".into()),
            ("transport", "udp".into()),
            ("received_bps", 1e8.into()),
            ("lost_packets", 1000_i64.into()),
        ]
    }

    #[test]
    fn lost_datagrams_are_found_at_both_ends() {
        let client = account(
            &udp(),
            &[("net.snmp.Udp.SndbufErrors", 0), ("nic.e.qdisc.root.drops", 100)],
        );
        let server = account(
            &[],
            &[("net.snmp.Udp.RcvbufErrors", 700), ("nic.e.drv.rx_missed_errors", 150)],
        );
        let diagnosis = diagnose_test(client.clone(), Some(server));
        let [split] = diagnosis.loss.as_slice() else {
            panic!("one direction");
        };
        assert_eq!(
            (split.lost, split.sender, split.adapter, split.socket, split.network),
            (1000, Some(100), Some(150), Some(700), 50)
        );
        assert!(
            diagnosis
                .findings
                .iter()
                .any(|f| f.id == "UDP-01" && f.subject == "server")
        );
        let alone = diagnose_test(client, None);
        assert_eq!((alone.loss[0].socket, alone.loss[0].network), (None, 900));
        assert_eq!(alone.hosts, ["client"]);
    }

    #[test]
    fn the_sending_end_knows_what_held_it_back() {
        let client = account(
            &[
                ("tool", "linerate".into()),
                ("transport", "tcp".into()),
                ("received_bps", 1e8.into()),
                ("receiver_thread_cpu", 0.2.into()),
            ],
            &[],
        );
        let server = account(
            &[("receiver_thread_cpu", 0.97.into()), ("received_bps", 5.0.into())],
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
        assert!(diagnosis.findings.iter().all(|finding| finding.subject != "client"));
    }

    #[test]
    fn data_that_never_arrives_fell_into_a_hole() {
        let run = |received: i64| {
            let mut client = account(
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

    /// Moments of one second each with what was received in them.
    fn moments(rates_bps: &[f64]) -> Vec<Moment> {
        let moment = |(second, rate): (usize, &f64)| Moment {
            start_s: crate::scope::to_f64(second as u64),
            end_s: crate::scope::to_f64(second as u64 + 1),
            facts: [("received_bps".to_owned(), (*rate).into())].into(),
        };
        rates_bps.iter().enumerate().map(moment).collect()
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
            let mut client = account(&run, &[]);
            client.window = None;
            client.forward_moments = moments(rates_bps);
            diagnose_test(client, None).verdict
        };
        // As a whole the test missed its target; three seconds of four it did not.
        let voted = verdict(&[1e8, 1e8, 2e7, 1e8]);
        assert_eq!(
            (voted.verdict.as_str(), voted.share_of_time_percent),
            ("configured-rate", Some(75))
        );
        assert_eq!(voted.course.len(), 3, "{voted:?}");
        let missed = verdict(&[2e7, 2e7]);
        assert_eq!(
            (missed.verdict.as_str(), missed.share_of_time_percent),
            ("unknown", None)
        );
        assert_eq!(verdict(&[1e8]).verdict, "unknown", "one second is no vote");
    }

    #[test]
    fn what_the_server_saw_of_a_second_joins_the_clients() {
        let mut client = account(&udp(), &[]);
        client.forward_moments = moments(&[1.0, 2.0]);
        client
            .forward_moments
            .iter_mut()
            .for_each(|moment| moment.facts.clear());
        let mut server = account(&[], &[]);
        server.forward_moments = moments(&[5.0, 7.0]);
        let joined = course(&client, Some(&server), |account| &account.forward_moments, true);
        assert_eq!(joined, Some(server.forward_moments.clone()));
        assert_eq!(
            course(&client, Some(&server), |account| &account.forward_moments, false),
            None
        );
    }

    #[test]
    fn an_account_survives_its_journey_and_nothing_else_does() {
        let sent = account(&udp(), &[("net.snmp.Udp.RcvbufErrors", 7)]);
        let text = serde_json::to_string(&sent).expect("plain data");
        assert_eq!(Account::from_peer(&text).expect("our own"), sent);
        let mut forged = sent.clone();
        forged.snapshot.set("run.0.tool", "forged", "test");
        let text = serde_json::to_string(&forged).expect("plain data");
        assert_eq!(Account::from_peer(&text).expect("an account"), sent);
        for garbage in ["", "{}", "[]", "{\"snapshot\":1}"] {
            assert!(Account::from_peer(garbage).is_err(), "{garbage}");
        }
    }
}
