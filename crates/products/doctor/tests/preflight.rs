//! Goal: every check before an experiment of the HTTP lab finds its defect, names the cells and a
//! remedy. Method: one row of `preflight.txt` for each scenario, in which no other check may fail.

mod facts;

use linerate_doctor::http::{Preflight, too_many_connections, worker_processes};
use linerate_model::http::{Check, CheckStatus};
use serde_json::{Value, json};

/// Two hosts on which the plan runs.
fn healthy() -> Value {
    let host = json!({
        "version": "", "cpus": 4, "governor": "performance", "device": "enp1s0",
        "is_loopback": false, "is_wireless_or_tunnel": false,
        "link_bps": 1_000_000_000, "mtu_bytes": 1500, "is_full_duplex": true,
        "nofile_soft": 200_000, "nofile_hard": 200_000, "can_raise_nofile": false,
        "nr_open": 1_048_576, "file_max": 2_097_152,
        "port_range": [32_768, 60_999], "listening_ports": [], "time_wait": { "peak": 10, "limit": 262_144 },
        "somaxconn": 4096, "backlog": 4096, "max_syn_backlog": 4096,
        "memory_available_bytes": 8_u64 << 30, "tcp_mem_pages": [190_000, 254_000, 381_000],
        "other_load": 0.01, "steal": 0.0, "is_throttled": false, "nic_errors": 0, "missing": [],
    });
    json!({
        "cells": [
            "matrix-1k-c64", "matrix-1k-c512", "matrix-1k-c1024", "matrix-100k-c1024", "idle-0-c5000",
            "idle-0-c20000", "low_rate-1k-c10000", "active-1k-c10000",
        ],
        "device": null, "sources": 1, "ports": "auto", "ramp_per_s": 500, "streams": 1, "is_plain_http1": true,
        "generator_threads": null, "client": host, "server": host,
        "server_address": "192.168.5.2", "client_address": "192.168.5.20", "port": 8080, "destinations": 1,
        "clock_error_ns": 100_000,
    })
}

/// `matrix-10k-c64` as the key of a cell.
fn key(name: &Value) -> Value {
    let parts: Vec<&str> = name.as_str().expect("a name").split('-').collect();
    let kib = |digits: &str| digits.parse::<u64>().expect("KiB") * 1024;
    json!({
        "phase": parts[0],
        "payload_bytes": parts[1].strip_suffix('k').map_or(0, kib),
        "connections": parts[2][1..].parse::<u32>().expect("connections"),
        "rate_per_s": null,
    })
}

fn checks(words: &str) -> Vec<Check> {
    let mut facts = healthy();
    facts::set(&mut facts, words);
    facts["cells"] = facts["cells"]
        .as_array()
        .expect("cells")
        .iter()
        .map(key)
        .collect();

    serde_json::from_value::<Preflight>(facts)
        .expect("facts of a plan")
        .checks()
}

fn summary(check: &Check) -> String {
    format!("{} {:?} {:?}", check.id, check.side, check.status).to_lowercase()
}

#[test]
fn every_scenario_has_its_check_its_cells_and_its_remedy() {
    let mut wrong = Vec::new();
    for [words, expected, cells, remedies] in facts::rows(include_str!("preflight.txt")) {
        let cells = if cells == "all" { "" } else { cells };
        let found: Vec<Check> = checks(words)
            .into_iter()
            .filter(|check| check.status != CheckStatus::Pass)
            .collect();

        let help = |check: &Check| {
            [
                &check.fix[..],
                &check.undo,
                std::slice::from_ref(&check.advice),
            ]
            .concat()
        };
        let text: String = found.iter().flat_map(help).collect::<Vec<_>>().join("\n");
        let is_undone = |check: &Check| {
            check.fix.len() == check.undo.len() && check.fix != check.undo || check.fix.is_empty()
        };
        assert!(found.iter().all(is_undone), "{found:#?}");

        let is_found = found
            .iter()
            .map(summary)
            .eq((!expected.is_empty()).then(|| expected.to_owned()));
        let names: Vec<&str> = found
            .iter()
            .flat_map(|check| &check.cells)
            .map(String::as_str)
            .collect();

        let is_remedied = remedies.split(", ").all(|part| text.contains(part));
        if !is_found || names.join(" ") != cells || !is_remedied {
            wrong.push(format!("{words}: {expected} {cells}\n{found:#?}"));
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn healthy_hosts_pass_and_have_and_need_are_named() {
    let all = checks("");
    assert!(
        all.len() > 25 && all.iter().all(|check| check.status == CheckStatus::Pass),
        "{all:#?}"
    );
    let check = checks("server.nofile_hard=1024")
        .into_iter()
        .find(|check| check.status == CheckStatus::Fail);
    let check = check.expect("too few descriptors");
    assert_eq!(
        (check.have.as_str(), check.need.as_str()),
        ("1,024", "at least 20,096")
    );

    let check = checks("is_plain_http1=false")
        .into_iter()
        .find(|check| check.id == "protocol");
    let check = check.expect("a bound of the protocol");
    assert_eq!(check.need, "20,000 connections");
    assert!(
        check.have.contains("10,000 connections and 65,536 streams"),
        "{check:#?}"
    );
}

#[test]
fn missing_facts_are_unknown_and_block_nothing() {
    let nothing = r#"{"version":"","is_loopback":false,"is_wireless_or_tunnel":false,"can_raise_nofile":false,"listening_ports":[],"missing":[]}"#;
    let checks = checks(&format!("client={nothing} server={nothing}"));
    let unknown = checks
        .iter()
        .filter(|check| check.status == CheckStatus::Unknown);
    assert!(unknown.clone().count() > 10, "{checks:#?}");
    assert!(
        unknown
            .clone()
            .all(|check| check.have == "could not be read")
    );
    assert!(checks.iter().all(|check| check.status != CheckStatus::Fail));
}

#[test]
fn one_host_and_its_unread_clock_warn_and_no_route_is_checked() {
    let found: Vec<String> =
        checks(r#"server_address="192.168.5.20" device="enp9s0" clock_error_ns=null"#)
            .iter()
            .filter(|check| check.status != CheckStatus::Pass)
            .map(summary)
            .collect();
    assert_eq!(found, ["same_host client warn", "clock server warn"]);
}

#[test]
fn worker_processes_have_room_for_their_connections() {
    for (connections, threads, limit, expected) in [
        (64, 2, 1024, Some(1)),
        (1000, 2, 256, Some(6)),
        (2000, 2, 1024, Some(3)),
        (928, 4, 1024, Some(1)),
        (929, 4, 1024, Some(2)),
        (0, 1, 100, Some(1)),
        (10, 1, 72, None),
        (20_000, 2, 256, None),
        (u32::MAX, 1, u64::MAX, Some(1)),
        (u32::MAX, u32::MAX, 0, None),
    ] {
        let workers = worker_processes(connections, threads, limit);
        assert_eq!(
            workers, expected,
            "{connections} over {threads} threads within {limit}"
        );
    }
}

#[test]
fn generators_of_tls_and_http_2_have_fewer_connections() {
    for (connections, streams, is_allowed) in [
        (10_000, 1, true),
        (10_001, 1, false),
        (1024, 64, true),
        (1025, 64, false),
    ] {
        assert_eq!(
            too_many_connections(connections, streams).is_none(),
            is_allowed,
            "{connections} x {streams}"
        );
    }
}
