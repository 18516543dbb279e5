use std::net::IpAddr;

use linerate_model::fleet::HostId;

use super::*;
use crate::protocol::message::ProbeOutcome;

const BUDGET_NS: u64 = 10_000_000;

/// What a host reports.
struct Reported {
    host: HostId,
    hello: Hello,
    probes: Vec<ProbeReport>,
    clock_uncertainty_ns: Option<u64>,
}

fn own(last: u8, device: &str, ports: &[&str], has_vlan: bool) -> Address {
    Address {
        address: IpAddr::from([10, 0, 1, last]),
        device: device.to_owned(),
        speed_bps: None,
        ports: ports.iter().map(|port| (*port).to_owned()).collect(),
        has_vlan,
    }
}

/// A host whose control connection is on eth0 and whose tests are on eth1. The bridge br0 and a VLAN
/// send through eth0 as well.
fn facts(name: &str) -> Reported {
    let probe = |last: u8| ProbeReport {
        peer: IpAddr::from([10, 0, 0, last]),
        port: 5201,
        outcome: ProbeOutcome::Ok,
        rtt_ns: None,
        device: Some("eth1".to_owned()),
        mtu_bytes: Some(1500),
        bridge_port: None,
    };
    Reported {
        host: name.parse().expect("a host id"),
        hello: Hello {
            host_key: Some(format!("machine of {name}")),
            boot_hash: Some("boot".to_owned()),
            addresses: vec![
                own(1, "eth0", &["eth0"], false),
                own(2, "eth1", &["eth1"], false),
                own(3, "br0", &["eth0", "vnet1"], false),
                own(4, "eth0.7", &["eth0"], true),
            ],
            control_address: Some(IpAddr::from([10, 0, 1, 1])),
            ..Hello::default()
        },
        probes: vec![probe(1), probe(2)],
        clock_uncertainty_ns: Some(40_000),
    }
}

fn found(change: impl FnOnce(&mut [Reported]), is_separate: bool) -> HostFindings {
    let mut hosts = ["h1", "h2", "h3", "h4"].map(facts);
    change(&mut hosts);
    let facts: Vec<HostFacts<'_>> = hosts
        .iter()
        .map(|of| HostFacts {
            host: &of.host,
            hello: &of.hello,
            probes: &of.probes,
            clock_uncertainty_ns: of.clock_uncertainty_ns,
        })
        .collect();
    findings(&facts, is_separate, BUDGET_NS)
}

fn run(change: impl FnOnce(&mut [Reported])) -> (Vec<String>, Vec<String>) {
    let found = found(change, true);
    for finding in &found.findings {
        assert!(
            finding
                .advice
                .as_ref()
                .is_some_and(|next| next.contains("`linerate ")),
            "a next command: {finding:?}"
        );
        assert!(!finding.evidence.is_empty(), "{finding:?}");
    }

    let named = found
        .findings
        .iter()
        .map(|finding| format!("{} {}", finding.id, finding.subject));
    (
        named.collect(),
        found.excluded.keys().map(HostId::to_string).collect(),
    )
}

fn through(device: &str) -> impl Fn(&mut [Reported]) {
    move |hosts| hosts[1].probes[1].device = Some(device.to_owned())
}

#[test]
fn hosts_that_are_alike_have_no_finding() {
    assert_eq!(run(|_| {}), (Vec::new(), Vec::new()));
}

#[test]
fn tests_on_the_port_of_the_control_connection_are_refused_where_control_is_separate() {
    // The bridge br0 sends through eth0.
    assert_eq!(
        run(through("br0")),
        (vec!["FLT-13 h2".to_owned()], vec!["h2".to_owned()])
    );
    let found_there = found(through("br0"), true);
    let evidence = found_there.findings[0].evidence[0].to_string();
    assert_eq!(
        evidence,
        "route to 10.0.0.2 through br0, the control connection is on eth0; both send through eth0"
    );

    let shared = found(through("br0"), false);
    assert_eq!(shared, HostFindings::default(), "a shared path has no rule");
}

#[test]
fn another_vlan_of_the_port_is_a_note() {
    let note = (vec!["FLT-13 h2".to_owned()], Vec::new());
    assert_eq!(run(through("eth0.7")), note);
    assert_eq!(
        found(through("eth0.7"), true).findings[0].severity,
        Severity::Info
    );

    // A route through the same VLAN is the stronger finding, whatever their order.
    let both = |hosts: &mut [Reported]| {
        through("eth0.7")(hosts);
        hosts[1].probes[0].device = Some("eth0".to_owned());
    };
    assert_eq!(run(both).1, ["h2"]);

    // The VLAN that control itself uses.
    let same = |hosts: &mut [Reported]| {
        hosts[1].hello.control_address = Some(IpAddr::from([10, 0, 1, 4]));
        through("eth0.7")(hosts);
    };
    assert_eq!(run(same).1, ["h2"]);
}

#[test]
fn clock_beyond_the_budget_is_named_with_its_uncertainty() {
    let (found, excluded) = run(|hosts| hosts[2].clock_uncertainty_ns = Some(12_340_000));
    assert_eq!(
        (found, excluded),
        (vec!["FLT-15 h3".to_owned()], Vec::new())
    );
    let unknown = run(|hosts| hosts[2].clock_uncertainty_ns = None);
    assert_eq!(unknown.0, [""; 0], "what is not known is not late");
}

#[test]
fn second_entry_of_a_machine_is_excluded() {
    let (found, excluded) = run(|hosts| hosts[3].hello.host_key = hosts[0].hello.host_key.clone());
    assert_eq!(
        (found, excluded),
        (vec!["FLT-16 h1 and h4".to_owned()], vec!["h4".to_owned()])
    );
    let unknown = run(|hosts| {
        hosts.iter_mut().for_each(|host| host.hello.host_key = None);
    });
    assert_eq!(unknown.1, [""; 0], "hosts without a key may differ");
}

#[test]
fn hosts_with_another_path_mtu_are_named() {
    let set = |host: &mut Reported, mtu| {
        host.probes
            .iter_mut()
            .for_each(|probe| probe.mtu_bytes = mtu);
    };
    assert_eq!(run(|hosts| set(&mut hosts[1], Some(9000))).0, ["FLT-17 h2"]);
    let half = run(|hosts| {
        hosts[..2].iter_mut().for_each(|host| set(host, Some(1400)));
    });
    assert_eq!(half.0, ["FLT-17 h1, h2"]);

    // The route to one partner has another MTU.
    let other = found(|hosts| hosts[0].probes[0].mtu_bytes = Some(1400), true);
    assert_eq!(
        other.findings[0].evidence[0].to_string(),
        "path MTU of h1 1400 and 1500 bytes, 1500 on most hosts"
    );
    assert_eq!(run(|hosts| set(&mut hosts[0], None)).0, [""; 0]);
}
