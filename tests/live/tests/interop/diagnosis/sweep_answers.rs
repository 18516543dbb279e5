//! Goal: the answer of `linerate sweep` is right on the paths that users have. Method: two hosts of
//! our own behind a shaper with a queue, a firewall that drops, or a link with a delay. Few levels
//! and short runs: which levels are run and what their values mean has tests with simulated paths
//! in `linerate-sweep`.

use std::path::Path;

use linerate_interop::namespaces::{DEVICE, Net, inside, run};
use linerate_interop::{TIMEOUT, TunLink};
use serde_json::{Value, json};

use super::sweep::{found, runs, sweep_in};

/// Payload of a shaper of 40 Mbit/s, which counts 1514 bytes for 1448 and lets its burst of 32 KiB
/// pass at the start of a run.
const PAYLOAD_BPS_MAX: f64 = 40e6 * 1448.0 / 1514.0 * 1.01;

fn shape(namespace: &str, shaper: &str) {
    run(&format!(
        "tc -n {namespace} qdisc add dev {DEVICE} root tbf {shaper}"
    ));
}

/// The text with one space between words.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn timed_behind_a_queue_one_stream_is_enough_and_no_value_exceeds_the_link() {
    let Some(net) = Net::new() else { return };
    shape(&net.a, "rate 40mbit burst 32kb latency 50ms");
    let _server = net.server();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let csv = folder.path().join("runs.csv");
    let plan = format!(
        "--over streams=1,64 --time 1 -O 0 --budget 60s --csv {}",
        csv.display()
    );
    let finished = sweep_in(&net, &plan).finish_within(TIMEOUT * 3);
    finished.expect_code(0);

    let text = unwrapped(&finished.stdout);
    assert!(
        text.starts_with("Use 1 stream (the default): received 3"),
        "{text}"
    );
    let answer = text.split(" streams ").next().unwrap_or_default();
    assert!(
        answer.contains(", round trip ") && answer.contains(" retransmit"),
        "{answer}"
    );
    assert!(text.contains("64: no clear gain over 1 "), "{text}");

    let table = std::fs::read_to_string(&csv).expect("a file");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split(',').collect())
        .collect();
    assert_eq!(
        (rows[0][2], rows[0][4]),
        ("warm_up", "value_received_bps"),
        "{table}"
    );

    let compared = rows.iter().filter(|row| row[2] == "false");
    let values: Vec<f64> = compared
        .map(|row| row[4].parse().expect("a rate"))
        .collect();
    assert!(
        values.len() >= 9 && values.iter().all(|value| *value < PAYLOAD_BPS_MAX),
        "{values:?}"
    );
}

#[test]
fn timed_where_every_rate_loses_none_is_advised() {
    let Some(net) = Net::new() else { return };
    let table = "table inet loss { chain in { type filter hook input priority 0; \
                 meta l4proto udp numgen inc mod 20 == 0 drop; }; }";
    let status = inside(&net.b, Path::new("nft"), &[table]).status();
    assert!(status.is_ok_and(|status| status.success()), "{table}");

    let _server = net.server();
    let plan = "-u -l 1400 --over rate=8M..64M --objective low-loss --time 1 -O 0 --repetitions 2 \
                --budget 60s";
    let finished = sweep_in(&net, plan).finish_within(TIMEOUT * 2);
    finished.expect_code(0);

    let text = unwrapped(&finished.stdout);
    assert!(
        text.starts_with("No rate from 8M to 32M has less than 0.1 % loss: the least is "),
        "{text}"
    );
    assert!(!text.contains("plain iperf3"), "{text}");
}

/// On a full queue a stream may wait for longer than the 4 s after which a run without data ends.
#[test]
fn timed_many_streams_on_a_slow_path_all_have_a_result() {
    let Some(net) = Net::new() else { return };
    shape(&net.a, "rate 4mbit burst 16kb limit 100kb");
    let _server = net.server();
    let plan = "--over streams=45,64 --time 4 -O 0 --repetitions 1 --budget 20s --json";
    let finished = sweep_in(&net, plan).finish_within(TIMEOUT * 3);
    finished.expect_code(0);

    let record = finished.record();
    assert!(runs(&record).len() >= 3, "{record:#}");
    assert!(
        runs(&record).iter().all(|run| run["reason"].is_null()),
        "{record:#}"
    );
}

#[test]
fn timed_where_the_window_limits_a_stream_more_of_them_are_advised_and_the_window_is_named() {
    let delay = json!({ "delay_ms": 20 });
    let Some(link) = TunLink::new(&delay, &delay) else {
        return;
    };
    shape(&link.net.a, "rate 40mbit burst 32kb latency 50ms");

    let _server = link.net.server();
    let plan = "--over streams=1,4 -w 64K --time 1 --budget 60s --json";
    let finished = sweep_in(&link.net, plan).finish_within(TIMEOUT * 3);
    finished.expect_code(0);

    let record = finished.record();
    let found = found(&record);
    assert_eq!(
        found["answer"]["use"]["leader"]["setting"]["streams"], "4",
        "{record:#}"
    );

    let falls = found["factors"][0]["degradations"]
        .as_array()
        .expect("falls");
    let reasons: Vec<&Value> = falls
        .iter()
        .flat_map(|fall| fall["reasons"].as_array().expect("reasons"))
        .collect();
    assert!(
        reasons
            .iter()
            .any(|reason| reason["reason"] == "window-below-bdp"),
        "{record:#}"
    );
}
