//! A run of the load generator, in text and JSON.

use super::super::fixtures::{client_limited, failing_load, load, short_load, side};
use super::super::{LoadReport, Style, load_json, load_text};
use super::{BLOCKS, check_lines};

#[test]
fn open_loop_report_has_corrected_latency() {
    let (load, client, server) = (failing_load(), side(1.9), side(3.8));
    let verdict = client_limited().cells.last().expect("cells").verdict.clone();
    let remarks = ["first answer: 200, Server: nginx\u{1b}[31m".to_owned()];
    let report = LoadReport {
        target: "http://192.168.5.2:8080/b/1k",
        load: &load,
        wire_bps: Some(95e6),
        client: Some(&client),
        server: Some(&server),
        verdict: Some(&verdict),
        remarks: &remarks,
    };
    let text = load_text(&report, BLOCKS);
    check_lines("open loop", &text);
    for part in [
        "open loop, 1,000 requests per second offered, poisson arrivals, 64 connections, 10.0 s",
        "  first answer: 200, Server: nginx\u{fffd}[31m\n",
        "verdict      client-limit (confidence medium): 12 connections found no local port\n",
        "requests     9,940 due in the window, 9,900 answered 2xx, 52 failures (0.52 % of all that ended)\n",
        "payload      1.01 MB/s        bodies of 2xx answers alone, 10^6 bytes\n",
        "http         1.08 MiB/s       heads and bodies of 2xx answers, 2^20 bytes; the first head had 118 bytes\n",
        "wire         95.0 Mbit/s      bits with frames and gaps, busier direction of enp1s0: 9.50 % of its 1.00 Gbit/s\n",
        "  corrected: due to answered   270 us   840 us  12.0 ms  ≥ 5.00 s  ≥ 5.00 s   297 us  9,940\n",
        "  send lag: due to sent       4.00 us",
        "≥: it falls on a request that never ended; the truth is this or more\n",
        "  addr_not_avail     12  client limit: local ports\n",
        "                         \"connect 192.168.5.2:8080: Cannot assign requested address\"\n",
        "  timeout            40  server or path: queueing or a stall\n",
        "server       program 380 % of one processor, 3.84 ms of it per 2xx, all 4 processors 95.0 % busy",
        "2xx each s   ▂▇|██████████  990 to 990 after the warm-up\n",
        "flag overload: the offered rate cannot be sustained; the run ended early\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("closed loop") && !text.contains("wrk"));
    let value: serde_json::Value = serde_json::from_str(&load_json(&report)).expect("JSON");
    assert_eq!(value["schema"], "linerate.http-load/1");
    assert_eq!(value["rates"]["wire_bps"], 95e6);
    assert_eq!(value["rates"]["ok_per_s"], 990.0);
    assert_eq!(value["load"]["latency"]["p999"]["is_lower_bound"], true);
    assert_eq!(value["load"]["errors"]["timeout"]["count"], 40);
    assert_eq!(value["verdict"]["primary"]["class"], "client-limit");
}

#[test]
fn closed_loop_report_names_its_limits() {
    let load = short_load();
    let report = LoadReport {
        target: "http://192.168.5.2:8080/b/1k",
        load: &load,
        wire_bps: None,
        client: None,
        server: None,
        verdict: None,
        remarks: &[],
    };
    let text = load_text(&report, Style::PLAIN);
    for part in [
        "closed loop: does not include time a user would have waited to be sent\n",
        "comparing with wrk: it fills its histogram up",
        "  response: sent to answered  300 us  600 us  n/a (n=120)  n/a (n=120)  2.70 ms  330 us  120\n",
        "n/a: fewer than ten values lie above the quantile, so it says nothing\n",
        "payload      0.012 MB/s       bodies",
        "wire         n/a\n",
        "server       no agent there, so what it cost is not known\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(
        !text.contains("failures of") && !text.contains("corrected") && !text.contains('≥'),
        "{text}"
    );
}

#[test]
fn empty_run_has_no_numbers_rather_than_zeros() {
    let mut load = load(0, 1024, 16, 1);
    load.window_ns = 0;
    load.latency = linerate_model::http::Latency::default();
    load.seconds.clear();
    let report = LoadReport {
        target: "http://[::1]:8080/",
        load: &load,
        wire_bps: None,
        client: None,
        server: None,
        verdict: None,
        remarks: &[],
    };
    let text = load_text(&report, Style::PLAIN);
    for part in ["2xx          n/a\n", "payload      n/a\n", "(n/a)", "n/a (n=0)"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_long_run_keeps_its_curve_on_one_line() {
    let mut load = load(6_000_000, 1024, 64, 300_000);
    let pattern = load.seconds.clone();
    load.seconds = pattern.into_iter().cycle().take(3600).collect();
    for second in load.seconds.iter_mut().step_by(120) {
        second.p99_ns = None;
    }
    let report = LoadReport {
        target: "http://192.168.5.2:8080/b/1k",
        load: &load,
        wire_bps: None,
        client: None,
        server: None,
        verdict: None,
        remarks: &[],
    };
    let text = load_text(&report, BLOCKS);
    check_lines("an hour", &text);
    let rates = text
        .lines()
        .find(|line| line.starts_with("2xx each s"))
        .expect("the curve");
    assert!(
        rates.contains('|') && rates.ends_with("150,000 to 600,000 after the warm-up"),
        "{rates}"
    );
    assert!(text.contains("every 60 s shown; 1:00:00 in all"), "{text}");
    let times = text
        .lines()
        .find(|line| line.starts_with("p99 each s"))
        .expect("the curve");
    assert!(times.ends_with("up to 1.20 ms"), "{times}");
}
