//! Limits of a server on its clients, and the clients that it admits.

use std::fs;
use std::time::Duration;

use linerate_interop::iperf2::Iperf2;
use linerate_interop::{
    Process, RawClient, Service, Signal, TIMEOUT, each_case, linerate, original, udp_socket,
};

/// The limit, options of a stock client beyond it, the reason in the log, and the message of that
/// client.
type Case = (
    &'static str,
    &'static [&'static str],
    &'static str,
    &'static str,
);

const CASES: [Case; 8] = [
    (
        "address:streams=2",
        &["-P", "3"],
        "streams",
        "number of parallel streams",
    ),
    (
        "server:streams=3",
        &["--bidir", "-P", "2"],
        "streams",
        "number of parallel streams",
    ),
    (
        "server:duration=5",
        &["-t", "6"],
        "duration",
        "int_errno=37",
    ),
    (
        "address:duration=5",
        &["-n", "1M"],
        "duration",
        "int_errno=37",
    ),
    (
        "server:bytes=1M",
        &["-n", "2M"],
        "bytes",
        "total required bandwidth is larger than server limit",
    ),
    (
        "address:rate=10M",
        &["-b", "6M", "-P", "2"],
        "rate",
        "total required bandwidth is larger than server limit",
    ),
    (
        "server:rate=10M",
        &["-u", "-b", "11M"],
        "rate",
        "total required bandwidth is larger than server limit",
    ),
    (
        "server:rate=10M",
        &["-b", "6M", "--bidir"],
        "rate",
        "total required bandwidth is larger than server limit",
    ),
];

#[test]
fn test_beyond_a_limit_is_refused_with_reason_and_one_within_it_runs() {
    each_case(&CASES, |(limit, options, reason, message)| {
        let service = Service::start(&["--limit", limit]);
        let refused = service.client(original(), options).finish();
        refused.expect_code(1).expect_stderr(message);

        let log = service.wait_for_events("refused", 1, TIMEOUT);
        assert_eq!(log[0]["reason"], *reason);
        let within = service.client(original(), &["-t", "1", "-b", "1M"]);
        within.finish().expect_clean();
    });
}

#[test]
fn an_address_runs_only_so_many_tests_at_once() {
    let service = Service::start(&["--limit", "address:tests=2"]);
    let long = ["-t", "20", "-b", "1M", "--forceflush"];
    let running: Vec<Process> = (0..2).map(|_| service.client(original(), &long)).collect();
    running
        .iter()
        .for_each(|client| client.wait_for_stdout("/sec", 1));

    let refused = service.client(original(), &["-t", "1"]).finish();
    refused
        .expect_code(1)
        .expect_stderr("the server is busy running a test. try again later");
    assert_eq!(
        service.wait_for_events("refused", 1, TIMEOUT)[0]["reason"],
        "address_tests"
    );

    // Another address has places of its own.
    let other = service
        .client(original(), &["-t", "1", "-b", "1M", "-B", "127.0.0.9"])
        .finish();
    other.expect_clean();
}

/// A client that announces no rate is slowed down from the first byte, in each direction and
/// dialect, and two share one rate. Bytes are those the server read or wrote.
#[test]
fn a_rate_holds_from_the_first_byte() {
    const RATE_BYTES_PER_S: f64 = 2.5e6;

    let cases: [(&[&str], usize); 6] = [
        (&["-t", "2"], 1),
        (&["-t", "2", "-R"], 1),
        (&["-t", "2", "--bidir", "-P", "4"], 1),
        (&["-t", "2", "-u", "-b", "0", "-R"], 1),
        (&["-t", "2"], 2),
        (&["iperf2", "-t", "2"], 1),
    ];
    each_case(&cases, |(options, clients)| {
        let (service, iperf2_port) = Service::start_both(&["--limit", "server:rate=20M"]);
        let start = |_| match options {
            ["iperf2", options @ ..] => Iperf2::Original.client(iperf2_port, &options.join(" ")),
            options => service.client(original(), options),
        };
        let running: Vec<Process> = (0..*clients).map(start).collect();
        for client in running {
            client.finish().expect_code(0);
        }

        let records = service.wait_for_events("test_ended", *clients, TIMEOUT);
        let sum = |key: &str| records.iter().filter_map(|r| r[key].as_f64()).sum::<f64>();
        let bytes = sum("received_bytes") + sum("sent_bytes");
        let seconds = records
            .iter()
            .filter_map(|r| r["seconds"].as_f64())
            .fold(0.0, f64::max);
        let expected = seconds * RATE_BYTES_PER_S;
        assert!(
            (0.3 * expected..1.1 * expected).contains(&bytes),
            "{bytes} of {expected}: {records:?}"
        );
    });
}

/// A stock UDP client without a rate cannot be slowed down by its receiver.
#[test]
fn a_udp_client_that_takes_all_there_is_does_not_fit_any_rate() {
    let service = Service::start(&["--limit", "server:rate=20M"]);
    let refused = service
        .client(original(), &["-u", "-b", "0", "-t", "1"])
        .finish();
    refused
        .expect_code(1)
        .expect_stderr("total required bandwidth is larger than server limit");
    service
        .client(original(), &["-u", "-b", "10M", "-t", "1"])
        .finish()
        .expect_clean();
}

#[test]
fn a_test_that_moves_too_much_is_stopped_at_the_limit_and_ended() {
    let cases: [&[&str]; 3] = [&[], &["-R"], &["-P", "8"]];
    each_case(&cases, |options| {
        let service = Service::start(&["--limit", "address:bytes=1M"]);
        let client = service
            .client(original(), &[&["-t", "30"], *options].concat())
            .finish();
        client
            .expect_code(1)
            .expect_stderr("total required bandwidth is larger than server limit");
        assert!(client.elapsed < Duration::from_secs(10), "{client:?}");

        let record = &service.wait_for_events("test_ended", 1, TIMEOUT)[0];
        let bytes = record["received_bytes"]
            .as_u64()
            .max(record["sent_bytes"].as_u64());

        // Streams that asked at the same moment may each have moved what was left.
        assert!(
            (Some(1_000_000)..Some(10_000_000)).contains(&bytes),
            "{record}"
        );
    });
}

/// Senders notice the end of an amount between blocks.
#[test]
fn a_test_of_exactly_the_allowed_amount_is_served() {
    let service = Service::start(&["--limit", "address:bytes=1M"]);
    for options in [
        &["-n", "1M"][..],
        &["-n", "1M", "-P", "3"],
        &["-n", "1M", "-R"],
    ] {
        service.client(original(), options).finish().expect_clean();
    }
}

#[test]
fn address_lists_are_enforced_and_reloaded() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let list = folder.path().join("deny");
    fs::write(&list, "127.0.0.7 # for now\n").expect("the folder is writable");

    let file = format!("@{}", list.display());
    let service = Service::start(&["--allow", "127.0.0.0/24", "--deny", &file]);
    let code = |address: &str| {
        service
            .client(original(), &["-n", "64K", "-B", address])
            .finish()
            .code()
    };
    assert_eq!(
        [code("127.0.0.1"), code("127.0.0.7"), code("127.0.1.1")],
        [Some(0), Some(1), Some(1)]
    );

    let refused = service
        .client(original(), &["-n", "64K", "-B", "127.0.0.7"])
        .finish();
    refused
        .expect_code(1)
        .expect_stderr("test authorization failed");
    assert_eq!(
        service.wait_for_events("refused", 3, TIMEOUT)[0]["reason"],
        "address"
    );

    let running = service.client(original(), &["-t", "3", "-b", "1M", "--forceflush"]);
    running.wait_for_stdout("/sec", 1);
    fs::write(&list, "127.0.0.1\n").expect("the folder is writable");
    service.process.signal(Signal::HangUp);

    let _ = service.wait_for_events("reloaded", 1, TIMEOUT);
    assert_eq!([code("127.0.0.1"), code("127.0.0.7")], [Some(1), Some(0)]);
    running.finish().expect_clean();

    fs::write(&list, "not an address\n").expect("the folder is writable");
    service.process.signal(Signal::HangUp);
    let warning = &service.wait_for_events("warning", 1, TIMEOUT)[0];
    assert!(
        warning["message"].as_str().is_some_and(
            |m| m.contains("access lists, limits, tokens and certificates stay as they were")
        ),
        "{warning}"
    );
    assert_eq!([code("127.0.0.1"), code("127.0.0.7")], [Some(1), Some(0)]);
}

/// A file of options is read again at SIGHUP: what can change takes effect, the rest is named, and a
/// broken file changes nothing.
#[test]
fn hang_up_takes_over_lists_and_limits_of_the_options_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("serve.toml");
    let write = |text: &str| fs::write(&file, text).expect("the folder is writable");
    write("deny = [\"127.0.0.7\"]\n");
    let service = Service::start(&["--config", file.to_str().expect("a plain path")]);
    let codes = || {
        let code = |words: &[&str]| service.client(original(), words).finish().code();
        [
            code(&["-n", "64K"]),
            code(&["-n", "64K", "-B", "127.0.0.7"]),
            code(&["-n", "64K", "-P", "3"]),
        ]
    };
    assert_eq!(codes(), [Some(0), Some(1), Some(0)]);

    write("limit = [\"address:streams=2\"]\ninterval = 5\nadmit = \"queue:3\"\n");
    service.process.signal(Signal::HangUp);
    let warning = &service.wait_for_events("warning", 1, TIMEOUT)[0];
    let expected = "needs a restart: --admit, --interval";
    assert_eq!(warning["message"], expected, "{warning}");
    assert_eq!(codes(), [Some(0), Some(0), Some(1)]);

    for text in [
        "limit = [\"address:streams=none\"]\n",
        "denied = 1\n",
        "deny =",
    ] {
        write(text);
        let before = service.events("warning").len();
        service.process.signal(Signal::HangUp);
        let warnings = service.wait_for_events("warning", before + 1, TIMEOUT);
        let message = warnings[before]["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("limits, tokens and certificates stay as they were"),
            "{message}"
        );
    }
    assert_eq!(codes(), [Some(0), Some(0), Some(1)]);
}

/// An address at the end of a list beyond its bounds would be admitted.
#[test]
fn a_list_beyond_its_bounds_stops_the_start_and_not_a_running_server() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let list = folder.path().join("deny");
    let file = format!("@{}", list.display());
    let write = |text: &str| fs::write(&list, text).expect("the folder is writable");
    let too_many = "192.0.2.1\n".repeat(100_000) + "127.0.0.1\n";
    let too_long = "#".repeat(16 << 20) + "\n127.0.0.1\n";

    for (text, bound) in [
        (&too_many, "more than 100000 ranges"),
        (&too_long, "longer than 16 MiB"),
    ] {
        write(text);
        for option in ["--deny", "--allow"] {
            let refused = linerate(&format!("serve --port 0 {option} {file}")).finish();
            refused
                .expect_code(1)
                .expect_stderr(bound)
                .expect_stderr("join neighbouring ranges");
            assert!(
                refused.stderr.contains(&*list.to_string_lossy()),
                "{refused:?}"
            );
        }
    }

    write("127.0.0.7\n");
    let service = Service::start(&["--deny", &file]);
    let code = |address: &str| {
        service
            .client(original(), &["-n", "64K", "-B", address])
            .finish()
            .code()
    };

    for (number, text) in [&too_many, &too_long].into_iter().enumerate() {
        write(text);
        service.process.signal(Signal::HangUp);
        let warning = &service.wait_for_events("warning", number + 1, TIMEOUT)[number];
        let message = warning["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("stay as they were") && message.contains("join"),
            "{warning}"
        );
        assert_eq!([code("127.0.0.1"), code("127.0.0.7")], [Some(0), Some(1)]);
    }
}

/// Both notations of an IPv4 range mean the same, whatever socket a client comes through.
#[test]
fn ranges_of_mapped_addresses_are_those_of_ipv4() {
    let cases = [
        (["--deny", "::ffff:127.0.0.1/128"], Some(1)),
        (["--deny", "::ffff:127.0.0.0/104"], Some(1)),
        (["--allow", "::ffff:127.0.0.0/104"], Some(0)),
        (["--allow", "::ffff:192.0.2.0/120"], Some(1)),
    ];
    each_case(&cases, |(words, code)| {
        let service = Service::start(words);
        let client = service.client(original(), &["-n", "64K"]).finish();
        assert_eq!(client.code(), *code, "{client:?}");
    });
}

#[test]
fn lists_that_cannot_be_read_are_an_error_at_the_start() {
    let missing = linerate("serve --port 0 --allow @/nowhere").finish();
    missing.expect_code(1).expect_stderr("/nowhere");
    let wrong = linerate("serve --allow 10.0.0.0/99").finish();
    wrong.expect_code(2).expect_stderr("is no address range");
}

/// A denied address cannot reach the UDP port of another client's test either.
#[test]
fn udp_port_replies_to_clients_only() {
    let service = Service::start(&["--deny", "127.0.0.7"]);
    let _client = RawClient::accepted(service.port, r#"{"udp":true,"time":1,"len":1000}"#);
    let stranger = udp_socket("127.0.0.7", service.port, Duration::from_millis(300));
    stranger.send(b"9876").expect("sent");
    assert!(stranger.recv(&mut [0; 16]).is_err());
}
