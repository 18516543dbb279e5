//! Goal: what the path does to packets is found, by direction. Method: a router between two hosts
//! that drops, cuts or rewrites.

use std::time::Duration;

use linerate_interop::namespaces::{CLIENT, CLIENT_PORT, DEVICE, Net, SERVER, SERVER_PORT, run};
use linerate_interop::{NativeHost, Service};
use serde_json::Value;

fn path() -> Option<(Net, NativeHost, Service)> {
    let net = Net::routed()?;
    let (client, server) = NativeHost::both(&net);
    let service = server.serve(&[]);
    Some((net, client, service))
}

#[test]
fn every_50th_datagram_that_the_path_drops_is_lost_in_the_network() {
    let Some((net, client, _server)) = path() else {
        return;
    };
    // Probes and knocks are shorter than datagrams of the load.
    let rule =
        |port: &str| format!("iifname {port} udp length > 1000 numgen inc mod 50 == 0 drop;");
    net.in_middle(&format!(
        "nft 'table ip t {{ chain c {{ type filter hook forward priority 0; {} {} }}; }}'",
        rule(CLIENT_PORT),
        rule(SERVER_PORT)
    ));

    // A packet of several datagrams, which a host that is late sends, would be one for the rule.
    for namespace in [&net.a, &net.b] {
        run(&format!(
            "ip netns exec {namespace} ethtool -K {DEVICE} tx-udp-segmentation off"
        ));
    }

    let report = client.report(SERVER, &["--only", "datagrams", "-b", "20M"]);
    let found = report["datagrams"].as_array().expect("datagrams");
    assert_eq!(found.len(), 2, "{report:#}");

    for one in found {
        let loss = &one["loss"];
        let count = |name: &str| {
            loss[name]
                .as_f64()
                .unwrap_or_else(|| panic!("no {name}: {one:#}"))
        };

        // 2 %, and what the last 50 have left over.
        assert!(
            (count("network") - count("sent") / 50.0).abs() <= 1.0,
            "{one:#}"
        );
        assert_eq!(
            (count("sender"), count("nic"), count("socket")),
            (0.0, 0.0, 0.0),
            "{one:#}"
        );
        assert_eq!(one["longest_loss_burst"], 1, "{one:#}");

        // The rate is that of the second in which datagrams were sent, not of the waits around it.
        for (rate, expected) in [("sent_bps", 20e6), ("received_bps", 19.6e6)] {
            let rate_bps = one[rate].as_f64().expect("a rate");
            assert!(
                (rate_bps / expected - 1.0).abs() <= 0.03,
                "{rate} {rate_bps}: {one:#}"
            );
        }
    }
}

/// The router sends an error, or it does not.
#[test]
fn smaller_packets_of_one_direction_are_found_with_and_without_icmp() {
    for (is_silent, how) in [(false, "reported"), (true, "black-hole")] {
        let Some((net, client, _server)) = path() else {
            return;
        };
        net.in_middle(&format!(
            "ip route change {CLIENT} dev {CLIENT_PORT} mtu lock 1400"
        ));

        if is_silent {
            let drop = "icmp type destination-unreachable drop";
            net.in_middle(&format!(
                "nft 'table ip t {{ chain c {{ type filter hook output priority 0; {drop}; }}; }}'"
            ));
        }

        let report = client.report(SERVER, &["--only", "size"]);
        let size = &report["size"];
        assert_eq!(
            (&size["down"]["mtu"], &size["up"]["mtu"]),
            (&1400.into(), &1500.into()),
            "{how}: {report:#}"
        );
        assert_eq!(size["down"]["how"], how, "{report:#}");
    }
}

#[test]
fn marks_that_the_path_changes_are_named_by_direction() {
    let Some((net, client, _server)) = path() else {
        return;
    };
    net.in_middle(&format!(
        "nft 'table ip t \
         {{ chain c {{ type filter hook forward priority mangle; iifname {CLIENT_PORT} meta l4proto udp ip dscp set 8; iifname {SERVER_PORT} meta l4proto udp ip ecn set not-ect; }}; }}'"
    ));
    let report = client.report(SERVER, &["--only", "size", "--dscp", "46"]);
    let marks = &report["marks"];
    let has = |list: &str, entry: Value| {
        marks[list]
            .as_array()
            .is_some_and(|list| list.contains(&entry))
    };
    assert!(has("dscp", serde_json::json!(["up", 46, 8])), "{report:#}");
    assert!(
        has("dscp", serde_json::json!(["down", 46, 46])),
        "{report:#}"
    );
    assert!(has("ecn", serde_json::json!(["up", "kept"])), "{report:#}");
    assert!(
        has("ecn", serde_json::json!(["down", "cleared"])),
        "{report:#}"
    );
}

/// Streams open, and the packets of their data disappear: no rate was measured, and 0 is none.
#[test]
fn load_of_which_no_byte_arrives_has_no_values_and_the_cause() {
    let Some((net, client, _server)) = path() else {
        return;
    };
    net.in_middle(&format!(
        "nft 'table ip t \
         {{ chain c {{ type filter hook forward priority 0; iifname {CLIENT_PORT} meta length > 1450 drop; }}; }}'"
    ));
    let words = ["--only", "size,idle,up,both", "--time", "2"];
    let text = client
        .test(SERVER, &words)
        .finish_within(Duration::from_secs(60));
    text.expect_code(1)
        .expect_stdout("no byte arrived")
        .expect_stdout("the path drops large packets");

    for wrong in ["0.00 bit/s", "no problem", "grade A", "excellent"] {
        assert!(!text.stdout.contains(wrong), "{wrong}: {text:?}");
    }

    let test = client
        .test(SERVER, &[&words[..], &["--json", "-q"]].concat())
        .finish_within(Duration::from_secs(60));
    let report = test.expect_code(1).json();
    let [up, both] = ["up", "both"].map(|kind| {
        let phases = report["phases"].as_array().expect("loads");
        phases
            .iter()
            .find(|phase| phase["kind"] == kind)
            .unwrap_or_else(|| panic!("no {kind}: {report:#}"))
    });

    for figure in ["up_bps", "down_bps", "rtt", "rpm", "single_stream_bps"] {
        assert!(up[figure].is_null(), "{figure}: {up:#}");
    }

    assert!(
        both["up_bps"].is_null()
            && both["rpm"].is_null()
            && both["down_bps"].as_f64().is_some_and(|rate| rate > 1e6),
        "{both:#}"
    );
    assert!(
        report["grade"].is_null() && report["voice"]["loaded_mos"].is_null(),
        "{report:#}"
    );
    let absent = &report["absent"];
    assert!(
        absent["up"]
            .as_str()
            .is_some_and(|reason| reason.starts_with("no byte arrived")),
        "{absent:#}"
    );
    assert!(
        absent["goodput"]
            .as_str()
            .is_some_and(|reason| reason.contains("up of both: no byte arrived")),
        "{absent:#}"
    );

    // Blocked UDP is no reason for a load without a byte.
    net.in_middle("nft 'add rule ip t c meta l4proto udp drop'");
    let test = client
        .test(SERVER, &["--only", "up", "--time", "1"])
        .finish_within(Duration::from_secs(60));
    test.expect_code(1)
        .expect_stdout("no byte arrived")
        .expect_stdout("UDP is blocked");
}

/// Full-size packets vanish in both directions, those of the control connection as well.
#[test]
fn black_hole_of_both_directions_is_reported_with_its_fix() {
    let Some((net, client, _server)) = path() else {
        return;
    };
    net.in_middle(
        "nft 'table ip t \
         { chain c { type filter hook forward priority 0; meta length > 1450 drop; }; chain o { type filter hook output priority 0; icmp type destination-unreachable drop; }; }'",
    );

    for words in [
        &["--only", "size,idle,down,up", "--time", "2"][..],
        &["--profile", "quick"],
    ] {
        let text = client
            .test(SERVER, words)
            .finish_within(Duration::from_secs(60));
        text.expect_code(1)
            .expect_stdout("without load")
            .expect_stdout("net.ipv4.tcp_mtu_probing=1");
        let unwrapped = text.stdout.split_whitespace().collect::<Vec<_>>().join(" ");

        for part in [
            "no byte arrived",
            "the path drops large packets (likely)",
            "maxseg size set",
        ] {
            assert!(unwrapped.contains(part), "{words:?}: no {part}: {text:?}");
        }
    }
}

#[test]
fn blocked_udp_leaves_the_values_of_tcp() {
    let Some((net, client, _server)) = path() else {
        return;
    };
    net.in_middle(
        "nft 'table ip t \
         { chain c { type filter hook forward priority 0; meta l4proto udp drop; }; }'",
    );

    let words = [
        "--json",
        "--only",
        "idle,down,datagrams",
        "-b",
        "10M",
        "--time",
        "1",
        "--expect",
    ];
    for (limits, code) in [("down>1M", 0), ("loss<1%", 5)] {
        let test = client
            .test(SERVER, &[&words[..], &[limits]].concat())
            .finish_within(Duration::from_secs(60));
        let report = test.expect_code(code).json();
        assert!(
            report["absent"].to_string().contains("UDP is blocked"),
            "{test:?}"
        );
        assert!(
            report["phases"][0]["down_bps"]
                .as_f64()
                .is_some_and(|rate| rate > 1e6),
            "{test:?}"
        );
        assert!(
            report["phases"][0]["tcp"]["n"]
                .as_u64()
                .is_some_and(|count| count > 0),
            "{test:?}"
        );

        if code == 5 {
            test.expect_stderr("loss<1%");
        }
    }
}
