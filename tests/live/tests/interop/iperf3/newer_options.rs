//! Options 3.12 does not have. Both ends are ours, or the original is the one that need not know.

use std::collections::BTreeSet;
use std::fs;

use linerate_interop::{
    Process, Report, Server, Status, TIMEOUT, established, original, ours_only, run_pair,
    unsupported, wait_until, words,
};
use serde_json::Value;

#[test]
fn json_stream_writes_one_event_per_line() {
    let program = ours_only!("it has what 3.12 lacks");
    for server in [program, original()] {
        let options = ["-t", "1", "-i", "0.25", "-b", "20M", "--json-stream"];
        let pair = run_pair((server, &[]), (program, &options));
        let events = events(&pair.client.expect_clean().stdout);
        let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names.first(), Some(&"start"));
        assert_eq!(names.last(), Some(&"end"));
        assert!(
            (3..=5).contains(&names.iter().filter(|name| **name == "interval").count()),
            "{names:?}"
        );

        let end = &events[events.len() - 1].1;
        assert!(
            end["sum_received"]["bytes"]
                .as_f64()
                .is_some_and(|bytes| bytes > 1_000_000.0),
            "{end}"
        );
    }
}

#[test]
fn json_stream_of_a_failure_has_an_error_and_an_end() {
    let program = ours_only!("it has what 3.12 lacks");
    let server = Server::start(program, &["-1", "--server-max-duration", "1"]);
    let client = server.run(program, &["-t", "9", "--json-stream"]);
    client.expect_code(1);

    let events = events(&client.stdout);
    let names: BTreeSet<_> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["error", "end"]), "{client:?}");
    assert_eq!(client.stderr, "");
}

#[test]
fn json_stream_full_output_ends_with_the_whole_document() {
    let program = ours_only!("it has what 3.12 lacks");
    let options = [
        "-t",
        "1",
        "-b",
        "20M",
        "--json-stream",
        "--json-stream-full-output",
    ];
    let pair = run_pair((original(), &[]), (program, &options));
    let out = &pair.client.expect_clean().stdout;
    let document = out
        .find("\n{\n")
        .unwrap_or_else(|| panic!("no document in {out}"));
    let report = Report::parse(&out[document..]);
    assert!(!report.array("/intervals").is_empty());
    assert!(report.number("/end/sum_received/bytes") > 0.0);
}

fn events(text: &str) -> Vec<(String, Value)> {
    let event = |line: &str| {
        let report = Report::parse(line);
        (
            report.text("/event").to_owned(),
            report.root["data"].clone(),
        )
    };
    text.lines().map(event).collect()
}

/// A receiver that drops the bytes in the kernel must still count every one of them.
#[test]
fn skip_rx_copy_counts_every_byte() {
    let program = ours_only!("it has what 3.12 lacks");
    for direction in ["--skip-rx-copy", "-R"] {
        let options = ["-J", "-n", "8M", "--skip-rx-copy", direction];
        let pair = run_pair((program, &["-J"]), (program, &options));
        let client = Report::parse(&pair.client.expect_clean().stdout);
        let (sent, received) = (
            client.number("/end/sum_sent/bytes"),
            client.number("/end/sum_received/bytes"),
        );
        assert!(
            received >= 8_388_608.0 && received <= sent,
            "{direction}: {received} of {sent}"
        );
    }
}

#[test]
fn timed_segmentation_offload_keeps_the_datagrams() {
    let program = ours_only!("it has what 3.12 lacks");
    for server in [program, original()] {
        for direction in ["--gsro", "-R"] {
            let options = [
                "-J", "-u", "-l", "1400", "-b", "20M", "-t", "1", "--gsro", direction,
            ];
            let pair = run_pair((server, &["-J"]), (program, &options));
            let client = Report::parse(&pair.client.expect_clean().stdout);
            let received = |key: &str| client.number(&format!("/end/sum_received/{key}"));
            assert!(
                received("lost_packets").abs() < 0.5,
                "{direction}: {}",
                received("lost_packets")
            );
            assert!(
                (received("bytes") - received("packets") * 1400.0).abs() < 0.5,
                "{direction}: not whole datagrams"
            );
            assert!(received("packets") > 1000.0);
        }
    }
}

#[test]
fn multipath_tcp_falls_back_or_works() {
    let program = ours_only!("it has what 3.12 lacks");
    if fs::read_to_string("/proc/sys/net/mptcp/enabled").is_ok_and(|enabled| enabled.trim() == "1")
    {
        let pair = run_pair((program, &["-m"]), (program, &["-m", "-n", "1M"]));
        pair.client.expect_clean();
        pair.server.expect_clean();
    } else {
        unsupported("this kernel has no Multipath TCP");
    }
}

#[test]
fn keepalive_of_the_control_connection_is_set() {
    let program = ours_only!("it has what 3.12 lacks");
    let server = Server::start(program, &["-1", "--cntl-ka=30/5/2"]);

    let options = [
        "-t",
        "10",
        "-i",
        "0.1",
        "--forceflush",
        "-b",
        "1M",
        "--cntl-ka=30/5/2",
    ];
    let client = server.client(program, "127.0.0.1", &options);
    client.wait_for_stdout("/sec", 1);

    let sockets = established(server.port);
    let kept = sockets
        .iter()
        .filter(|row| row.contains("timer:(keepalive,"))
        .count();
    assert_eq!(
        kept, 2,
        "one control connection seen from both ends: {sockets:#?}"
    );
}

#[test]
fn an_impossible_keepalive_is_refused() {
    let program = ours_only!("it has what 3.12 lacks");
    let server = Server::start(program, &["-1"]);
    let client = server.run(program, &["--cntl-ka=5/5/2"]);
    client
        .expect_code(1)
        .expect_stderr("control connection Keepalive period should be larger");
}

#[test]
fn more_than_128_streams_need_an_option() {
    let program = ours_only!("it has what 3.12 lacks");
    let client = Process::start(program.command(["-c", "127.0.0.1", "-P", "129"])).finish();
    client
        .expect_code(1)
        .expect_stderr("invalid number of parallel streams (min = 1, max = 128)");
}

/// More streams than the original allows: all of them must carry data, and threads must not grow
/// with their number.
#[test]
fn a_thousand_streams_share_a_few_threads() {
    const THREADS: usize = 64;

    let program = ours_only!("it has what 3.12 lacks");
    let server = Server::start(program, &["-1"]);
    let options = words("-P 1000 --lr-many-streams -t 3 -i 1 -l 4K -J");
    let client = server.client(program, "127.0.0.1", &options);

    assert!(
        wait_until(TIMEOUT, || established(server.port).len() > 2000),
        "2000 ends of 1000 streams are open"
    );
    for (end, id) in [("client", client.id()), ("server", server.process.id())] {
        let threads = Status::of(id).threads;
        assert!(threads <= THREADS, "{end} runs {threads} threads");
    }

    let report = Report::parse(&client.finish().expect_clean().stdout);
    let streams = report.array("/end/streams");
    assert_eq!(streams.len(), 1000);

    let idle = streams
        .iter()
        .filter(|stream| stream["receiver"]["bytes"].as_f64().unwrap_or(0.0) <= 0.0)
        .count();
    assert_eq!(idle, 0, "streams without a byte");
}
