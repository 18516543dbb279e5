use super::*;
use crate::period::{Delta, Period};
use linerate_model::snapshot::{Source, Value};

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

    let joined = DIRECTIONS[0].timeline(&client, Some(&server));
    assert_eq!(joined, server.forward_intervals);
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
