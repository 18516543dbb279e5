use linerate_model::fleet::HostId;

use super::*;

const BUDGET_NS: u64 = 10_000_000;

fn through(device: &str, ports: &[&str], has_vlan: bool) -> Attachment {
    let ports = ports.iter().map(|port| (*port).to_owned()).collect();
    Attachment {
        device: device.to_owned(),
        ports,
        has_vlan,
    }
}

/// A host whose control connection is on eth0 and whose tests are on eth1.
fn facts(name: &str) -> HostFacts {
    let route = |last: u8| PathRoute {
        to: IpAddr::from([10, 0, 0, last]),
        through: through("eth1", &["eth1"], false),
        mtu_bytes: Some(1500),
    };
    HostFacts {
        host: name.parse().expect("a host id"),
        machine: Some(format!("machine of {name}")),
        clock_uncertainty_ns: Some(40_000),
        control: Some(through("eth0", &["eth0"], false)),
        routes: vec![route(1), route(2)],
    }
}

fn fleet(change: impl FnOnce(&mut [HostFacts])) -> Vec<HostFacts> {
    let mut hosts: Vec<HostFacts> = ["h1", "h2", "h3", "h4"].map(facts).to_vec();
    change(&mut hosts);
    hosts
}

fn run(change: impl FnOnce(&mut [HostFacts])) -> (Vec<String>, Vec<String>) {
    let found = findings(&fleet(change), true, BUDGET_NS);
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

#[test]
fn hosts_that_are_alike_have_no_finding() {
    assert_eq!(run(|_| {}), (Vec::new(), Vec::new()));
}

#[test]
fn tests_on_the_port_of_the_control_connection_are_refused_where_control_is_separate() {
    // The bridge br0 sends through eth0.
    let route = |hosts: &mut [HostFacts]| {
        hosts[1].routes[1].through = through("br0", &["eth0", "vnet1"], false);
    };
    assert_eq!(
        run(route),
        (vec!["FLT-13 h2".to_owned()], vec!["h2".to_owned()])
    );
    let found = findings(&fleet(route), true, BUDGET_NS);
    let evidence = found.findings[0].evidence[0].to_string();
    assert_eq!(
        evidence,
        "route to 10.0.0.2 through br0, the control connection is on eth0; both send through eth0"
    );

    let shared = findings(&fleet(route), false, BUDGET_NS);
    assert_eq!(shared, HostFindings::default(), "a shared path has no rule");
}

#[test]
fn another_vlan_of_the_port_is_a_note() {
    let route =
        |hosts: &mut [HostFacts]| hosts[1].routes[1].through = through("eth0.7", &["eth0"], true);
    assert_eq!(run(route), (vec!["FLT-13 h2".to_owned()], Vec::new()));
    assert_eq!(
        findings(&fleet(route), true, BUDGET_NS).findings[0].severity,
        Severity::Info
    );

    // The VLAN that control itself uses.
    let same = |hosts: &mut [HostFacts]| {
        hosts[1].control = Some(through("eth0.7", &["eth0"], true));
        route(hosts);
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
    let (found, excluded) = run(|hosts| hosts[3].machine = hosts[0].machine.clone());
    assert_eq!(
        (found, excluded),
        (vec!["FLT-16 h1 and h4".to_owned()], vec!["h4".to_owned()])
    );
    let unknown = run(|hosts| hosts.iter_mut().for_each(|host| host.machine = None));
    assert_eq!(unknown.1, [""; 0], "hosts without a key may differ");
}

#[test]
fn hosts_with_another_path_mtu_are_named() {
    let set = |host: &mut HostFacts, mtu| {
        host.routes
            .iter_mut()
            .for_each(|route| route.mtu_bytes = Some(mtu));
    };
    assert_eq!(run(|hosts| set(&mut hosts[1], 9000)).0, ["FLT-17 h2"]);
    let half = run(|hosts| hosts[..2].iter_mut().for_each(|host| set(host, 1400)));
    assert_eq!(half.0, ["FLT-17 h1, h2"]);

    // The route to one partner has another MTU.
    let evidence = findings(
        &fleet(|hosts| hosts[0].routes[0].mtu_bytes = Some(1400)),
        true,
        BUDGET_NS,
    );
    assert_eq!(
        evidence.findings[0].evidence[0].to_string(),
        "path MTU of h1 1400 and 1500 bytes, 1500 on most hosts"
    );
    assert_eq!(
        run(|hosts| hosts[0]
            .routes
            .iter_mut()
            .for_each(|route| route.mtu_bytes = None))
        .0,
        [""; 0]
    );
}
