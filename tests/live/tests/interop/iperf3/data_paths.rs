//! Every way data can take delivers the same bytes, and reports say which way it was.

use std::fs;

use linerate_interop::{Report, Server, each_case, ours, ours_only};

fn count(report: &Report, pointer: &str) -> u64 {
    report.number(pointer) as u64
}

const PATHS: [&[&str]; 6] = [
    &[],
    &["--lr-path", "copy"],
    &["--lr-path", "sendfile"],
    &["--lr-path", "zerocopy"],
    &["-l", "100", "--lr-coalesce"],
    &["-l", "70000", "--lr-coalesce", "--lr-path", "zerocopy"],
];

/// The server writes what it receives into a file; every byte of it is what the payload promises.
#[test]
fn every_path_delivers_the_promised_content() {
    ours_only!("the original has no --lr-path");
    each_case(&PATHS, |path| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("received");
        let server = Server::start(ours(), &["-F", file.to_str().expect("a plain path")]);
        let options = [&["-n", "7M", "-J", "--repeating-payload"], *path].concat();
        let report = Report::parse(&server.run(ours(), &options).expect_clean().stdout);
        let received = fs::read(&file).expect("the server has written it");
        assert_eq!(
            received.len() as u64,
            count(&report, "/end/sum_received/bytes")
        );

        let block_len = count(&report, "/start/test_start/blksize") as usize;
        let wrong = received
            .iter()
            .enumerate()
            .find(|(i, byte)| **byte != b'0' + (i % block_len % 10) as u8);
        assert_eq!(wrong, None, "the first wrong byte");
    });
}

#[test]
fn both_ends_name_the_path() {
    ours_only!("the original says nothing of it");
    let server = Server::start(ours(), &["-V", "--lr-report"]);

    for (options, line) in [
        (
            &["-k", "20"][..],
            "Send path: copied from memory, 8 blocks of 131072 bytes per call",
        ),
        (
            &["-k", "20", "-l", "1000"],
            "Send path: copied from memory, one block of 1000 bytes per call",
        ),
        (
            &["-k", "20", "-l", "1000", "--lr-coalesce"],
            "small writes are gathered",
        ),
        (&["-k", "20", "-Z"], "Send path: pages of a file (sendfile)"),
        (
            &["-k", "20", "--lr-path", "zerocopy"],
            "Zero copy: the kernel copied 100 % anyway",
        ),
        (&["-k", "20", "-R"], "Receive path: copied to memory"),
        (
            &["-k", "20", "-R", "--skip-rx-copy"],
            "Receive path: discarded in the kernel",
        ),
        (&["-k", "20", "-u", "-R"], "every number is checked"),
        (
            &["-k", "20", "-u", "-R", "--lr-udp-check", "burst"],
            "order inside bursts is not",
        ),
        (&["-t", "1", "-b", "1M"], "Pacing: "),
    ] {
        let client = server.run(ours(), &[options, &["-V", "--lr-report"]].concat());
        assert!(
            client.expect_clean().stdout.contains(line),
            "{options:?}: {}",
            client.stdout
        );
    }

    // The server sends in a reverse test, by the path its client named.
    server
        .run(ours(), &["-k", "20", "-R", "--lr-path", "sendfile"])
        .expect_clean();
    server
        .process
        .wait_for_stdout("Send path: pages of a file (sendfile)", 1);
}

#[test]
fn json_names_the_path_and_what_one_call_moves() {
    ours_only!("the original says nothing of it");
    let server = Server::start(ours(), &[]);

    for (options, role, method, per_call) in [
        (
            &["-k", "20"][..],
            "sender",
            "copy",
            ("bytes_per_call", 1_048_576),
        ),
        (
            &["-k", "20", "-Z"],
            "sender",
            "sendfile",
            ("bytes_per_call", 1_048_576),
        ),
        (
            &["-k", "20", "-l", "1000"],
            "sender",
            "copy",
            ("bytes_per_call", 1000),
        ),
        (
            &["-k", "20", "-u", "-b", "1M"],
            "sender",
            "datagrams",
            ("datagrams_per_call", 1),
        ),
        (
            &["-k", "20", "-R", "--skip-rx-copy"],
            "receiver",
            "discard",
            ("", 0),
        ),
    ] {
        for style in ["-J", "--json-stream"] {
            let client = server.run(ours(), &[options, &[style, "--lr-report"]].concat());
            let text = &client.expect_clean().stdout;
            let last = text.lines().last().expect("a report");
            let (document, end) = if style == "-J" {
                (text.as_str(), "/end")
            } else {
                (last, "/data")
            };
            let paths = &Report::parse(document).root;
            let paths = paths
                .pointer(&format!("{end}/linerate/data_paths"))
                .expect(text);
            let [path] = &paths.as_array().expect(text)[..] else {
                panic!("{text}")
            };
            assert_eq!(
                (&path["role"], &path["method"]),
                (&role.into(), &method.into()),
                "{text}"
            );
            assert_eq!(
                path.get(per_call.0).and_then(|n| n.as_u64()).unwrap_or(0),
                per_call.1,
                "{text}"
            );
        }
    }
}

/// With only the first number of a burst read, loss is counted as exactly as ever.
#[test]
fn checking_bursts_counts_the_same_datagrams() {
    ours_only!("the original has no --lr-udp-check");
    let server = Server::start(ours(), &[]);

    for check in ["all", "burst"] {
        let options = [
            "-u",
            "-b",
            "200M",
            "-l",
            "1000",
            "-k",
            "20000",
            "-J",
            "--lr-udp-check",
            check,
        ];
        let report = Report::parse(&server.run(ours(), &options).expect_clean().stdout);
        let (packets, lost) = (
            count(&report, "/end/sum/packets"),
            count(&report, "/end/sum/lost_packets"),
        );
        let bytes = count(&report, "/end/sum_received/bytes");
        assert_eq!(
            (packets, bytes),
            (20_000, (20_000 - lost) * 1000),
            "{check}"
        );
    }
}

#[test]
fn unknown_paths_are_refused_with_the_names_of_the_known() {
    ours_only!("the original has no --lr-path");
    let refused = linerate_interop::Process::start(ours().command([
        "-c",
        "127.0.0.1",
        "--lr-path",
        "teleport",
    ]))
    .finish();
    refused
        .expect_code(1)
        .expect_stderr("expected one of auto, copy, sendfile, zerocopy");
}

/// Datagrams that a full receive buffer dropped are not blamed on the network.
#[test]
fn datagrams_lost_in_the_receive_buffer_are_reported_separately() {
    ours_only!("the original counts all loss alike");
    let server = Server::start(ours(), &[]);

    for (options, host) in [
        (&[][..], "reached the server"),
        (&["-R"], "reached this host"),
    ] {
        let flood = ["-u", "-b", "0", "-l", "1400", "-t", "1", "-w", "8K"];
        let client = server.run(ours(), &[&flood, options].concat());
        client.expect_code(0).expect_stderr(host);
    }

    // In JSON it stands where the user asked for it, and nowhere else.
    let flood = ["-u", "-b", "0", "-l", "1400", "-t", "1", "-w", "8K", "-J"];
    let stock = server.run(ours(), &flood);
    assert!(
        Report::parse(&stock.expect_clean().stdout)
            .get("/end/linerate")
            .is_none(),
        "{stock:?}"
    );

    let ample = server.run(ours(), &[&flood[..], &["--lr-report"]].concat());
    let report = Report::parse(&ample.expect_clean().stdout);
    let notices = report.array("/end/linerate/notices");
    assert!(
        notices.iter().any(|n| n
            .as_str()
            .is_some_and(|text| text.contains("reached the server"))),
        "{notices:?}"
    );

    let quiet = server.run(ours(), &["-u", "-b", "1M", "-t", "1"]);
    assert!(!quiet.stderr.contains("dropped"), "{quiet:?}");
}
