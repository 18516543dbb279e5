//! Goal: a test continues when a router changes the port that it maps a flow to. Method: a router
//! that masquerades, and whose rules are replaced while a load runs.

use std::time::Duration;

use linerate_interop::namespaces::{Net, SERVER, SERVER_PORT};
use linerate_interop::{NativeHost, TIMEOUT, wait_until};
use serde_json::Value;

#[track_caller]
fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

/// Rules of a router that translates the addresses of its clients. Connections of UDP are those of
/// a zone: in another zone each one is new, and gets a port out of another range.
fn masquerade(zone: u32, ports: &str) -> String {
    format!(
        "nft 'table ip t {{}}; flush table ip t; table ip t \
         {{ chain zones {{ type filter hook prerouting priority raw; meta l4proto udp ct zone set {zone}; }}; chain nat {{ type nat hook postrouting priority srcnat; oifname {SERVER_PORT} meta l4proto udp masquerade to :{ports}; oifname {SERVER_PORT} masquerade; }}; }}'"
    )
}

#[test]
#[ignore = "half a minute: make live SUITE=path"]
fn timed_flow_is_opened_anew_when_its_translation_changes() {
    let Some(net) = Net::routed() else { return };
    net.in_middle(&masquerade(1, "20000-29999"));
    let (client, server) = NativeHost::both(&net);
    let _server = server.serve(&[]);
    let test = client.test(SERVER, &["--json", "--rate", "20M"]);
    let is_loaded = || {
        test.stderr()
            .lines()
            .any(|line| line.trim_start().starts_with("down"))
    };
    assert!(wait_until(TIMEOUT, is_loaded), "{test:?}");
    net.in_middle(&masquerade(2, "30000-39999"));

    let finished = test.finish_within(Duration::from_secs(90));
    let report = finished.expect_code(0).json();
    assert_eq!(
        (&report["state"], &report["resumed"]),
        (&"complete".into(), &0.into()),
        "{report:#}"
    );

    let loads = report["phases"].as_array().expect("loads");
    let kinds: Vec<&Value> = loads.iter().map(|load| &load["kind"]).collect();
    assert_eq!(kinds, ["down", "up", "both"], "{report:#}");

    for load in loads {
        let (answered, lost) = (number(&load["rtt"]["n"]), number(&load["rtt"]["lost"]));
        // The first second of the load upwards, in which nothing shows that the flow is lost, is
        // before the part that counts.
        assert!(answered > 400.0 && lost < 300.0, "{load:#}");
        let is_named = load["deviations"].to_string().contains("reopened");
        assert_eq!(is_named, load["kind"] == "up", "{load:#}");
    }

    assert!(
        report["absent"]["probes"]
            .as_str()
            .is_some_and(|text| text.contains("reopened")),
        "{report:#}"
    );
    for datagrams in report["datagrams"].as_array().expect("both directions") {
        assert_eq!(
            datagrams["loss"]["received"], datagrams["loss"]["sent"],
            "{datagrams:#}"
        );
    }
}
