//! Options whose effect is seen outside the reports: files, sockets, processes, prefixes.

use std::fs;
use std::path::Path;
use std::process::Command;

use linerate_interop::{
    Pairing, Process, Report, Server, TIMEOUT, each_case, established, free_port, free_port_run,
    listens, original, ours, ours_only, run_pair, skip, traced, unsupported, wait_until, words,
};

#[test]
fn a_file_arrives_as_it_was() {
    each_case(&Pairing::ALL, |pairing| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (source, copy) = (folder.path().join("source"), folder.path().join("copy"));
        let content: Vec<u8> = (0..300_001_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        fs::write(&source, &content).expect("the folder is writable");

        let pair = run_pair(
            (pairing.server(), &["-F", text(&copy)]),
            (pairing.client(), &["-F", text(&source)]),
        );
        pair.client.expect_clean().expect_stdout("(100%)");
        pair.server.expect_clean();

        let received = fs::read(&copy).expect("the server wrote the file");
        // The original's server stops reading when the client is done, so a tail may be missing
        // there.
        let is_whole = received.len() == content.len() || pairing.server().is_original();
        assert!(
            is_whole && content.starts_with(&received),
            "{pairing}: {} bytes, or other ones",
            received.len()
        );
    });
}

/// It takes longer than the default time of a test.
#[test]
fn a_file_ends_a_test_for_which_no_end_was_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (source, copy) = (folder.path().join("source"), folder.path().join("copy"));
    fs::write(&source, vec![b'x'; 1_500_000]).expect("the folder is writable");

    let server = (ours(), &["-F", text(&copy)][..]);
    let pair = run_pair(
        server,
        (ours(), &["-F", text(&source), "-b", "1M", "-l", "10K"]),
    );
    pair.client.expect_clean().expect_stdout("(100%)");
    assert_eq!(
        fs::metadata(&copy).map(|file| file.len()).ok(),
        Some(1_500_000),
        "{pair:?}"
    );
}

/// Options that go where another one of the same command line leads: the later of two transports,
/// no time limit.
#[test]
fn contradicting_transports_and_negative_times_end_as_in_the_original() {
    let lines = [
        "--sctp -u -t 1 -b 100K -l 1000",
        "-u --sctp -t 1",
        "--sctp -t 1",
        "--connect-timeout -5 -n 64K",
    ];
    each_case(&lines, |line| {
        let run = |program| {
            let server = Server::start(ours(), &[]);
            let finished = server.run(program, &words(line));
            let last = finished
                .stderr
                .lines()
                .last()
                .unwrap_or_default()
                .to_owned();
            (finished.code(), last)
        };
        assert_eq!(run(ours()), run(original()), "{line}");
    });
}

/// An algorithm that paces (BBR), once initialised at the handshake, leaves pacing switched on for
/// the one that follows it.
#[test]
fn congestion_control_is_chosen_before_the_connection_is_made() {
    let program = ours_only!("the original chooses it afterwards");
    let server = Server::start(program, &[]);
    let mut client = Command::new(program.path());
    client.args([
        "iperf3",
        "-c",
        "127.0.0.1",
        "-p",
        &server.port.to_string(),
        "-n",
        "64K",
        "-C",
        "reno",
    ]);

    let Some((finished, trace)) = traced(&client, "setsockopt,connect") else {
        return skip("strace is not installed");
    };
    finished.expect_clean();
    let calls = ["TCP_CONGESTION", "connect("].map(|call| trace.rfind(call).expect(call));
    assert!(
        calls[0] < calls[1],
        "the last connection is the stream: {trace}"
    );
}

/// Data that a full window leaves unsent in a socket the kernel sends on the CPU of a peer on this
/// machine; what BBR paces leaves it by timers, more often the less it may hold.
#[test]
fn senders_hold_little_unsent_unless_bbr_paces_or_options_decide_how_they_write() {
    let program = ours_only!("the original leaves the option alone");
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .expect("a kernel setting");

    for (options, is_limited) in [
        ("-C reno", true),
        ("-C bbr", false),
        ("-C reno -l 64K", false),
        ("-C reno -w 256K", false),
        ("-C reno -R", false),
    ] {
        if options.ends_with("bbr") && !available.contains("bbr") {
            unsupported("this kernel has no BBR");
            continue;
        }

        let server = Server::start(program, &[]);
        let mut client = Command::new(program.path());
        client
            .args([
                "iperf3",
                "-c",
                "127.0.0.1",
                "-p",
                &server.port.to_string(),
                "-n",
                "64K",
            ])
            .args(words(options));

        let Some((finished, trace)) = traced(&client, "setsockopt") else {
            return skip("strace is not installed");
        };
        finished.expect_clean();
        assert_eq!(
            trace.contains("TCP_NOTSENT_LOWAT, [524288]"),
            is_limited,
            "{options}: {trace}"
        );
    }
}

#[test]
fn a_file_arrives_in_the_reverse_direction() {
    each_case(&Pairing::ALL, |pairing| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (source, copy) = (folder.path().join("source"), folder.path().join("copy"));
        fs::write(&source, vec![b'x'; 200_000]).expect("the folder is writable");

        let options = ["-R", "-t", "1", "-F", text(&copy)];
        let pair = run_pair(
            (pairing.server(), &["-F", text(&source)]),
            (pairing.client(), &options),
        );
        pair.client.expect_clean();

        let received = fs::read(&copy).expect("the client wrote the file");
        // From 3.16 on the original reads whole blocks, so the rest of the last one may be missing
        // there.
        let reads_blocks = pairing.client().is_original() && pairing.client().release() >= 16;
        let least = if reads_blocks { 131_072 } else { 200_000 };
        let is_right =
            received.len() >= least && received.iter().take(200_000).all(|byte| *byte == b'x');
        assert!(
            is_right,
            "{pairing}: {} bytes, or other ones",
            received.len()
        );
    });
}

/// Type of service, segment size, buffers and congestion control as the kernel has them on the data
/// connection.
#[test]
fn socket_options_reach_the_sockets_of_both_ends() {
    each_case(&Pairing::ALL, |pairing| {
        let server = Server::start(pairing.server(), &["-1"]);
        let options = words("-t 10 -i 0.1 --forceflush -b 5M -S 0x10 -M 1000 -w 64K -C reno");
        let client = server.client(pairing.client(), "127.0.0.1", &options);
        client.wait_for_stdout("/sec", 2);

        let sockets = established(server.port);
        // 1000 bytes less the 12 bytes of the time stamp option tell the data connection from the
        // control connection.
        let data: Vec<_> = sockets
            .iter()
            .filter(|row| row.contains(" mss:988 "))
            .collect();
        assert_eq!(
            data.len(),
            2,
            "one data connection seen from both ends: {sockets:#?}"
        );

        for row in data {
            assert!(
                row.contains("tos:0x10 ") || row.contains("tclass:0x10 "),
                "{row}"
            );
            assert!(
                row.contains("rb131072,") && row.contains("tb131072,"),
                "twice the 64 KiB asked for: {row}"
            );
            assert!(row.contains(" reno "), "{row}");
        }
    });
}

#[test]
fn cport_fixes_the_source_ports() {
    each_case(&Pairing::ALL, |pairing| {
        for transport in ["-N", "-u"] {
            let first = free_port_run(2);
            let port = first.to_string();
            let options = [
                "-J", "-t", "1", "-P", "2", "-b", "1M", "--cport", &port, transport,
            ];
            let pair = run_pair((pairing.server(), &[]), (pairing.client(), &options));
            let report = Report::parse(&pair.client.expect_clean().stdout);

            for (stream, expected) in [f64::from(first), f64::from(first + 1)]
                .into_iter()
                .enumerate()
            {
                let found = report.number(&format!("/start/connected/{stream}/local_port"));
                assert!(
                    (found - expected).abs() < 0.5,
                    "{pairing} {transport}: stream {stream} from port {found}"
                );
            }
        }
    });
}

#[test]
fn affinity_pins_the_client_and_the_servers_part_of_the_test() {
    each_case(&Pairing::ALL, |pairing| {
        let server = Server::start(pairing.server(), &[]);
        let client = server.client(
            pairing.client(),
            "127.0.0.1",
            &[
                "-t",
                "10",
                "-i",
                "0.1",
                "--forceflush",
                "-b",
                "5M",
                "-A",
                "0,0",
            ],
        );
        client.wait_for_stdout("/sec", 2);
        assert_eq!(allowed_cpus(client.id()), "0", "{pairing}: client");

        let server = allowed_cpus(server.process.id());
        assert!(
            server.starts_with('0') && !server.starts_with("0-"),
            "{pairing}: server threads on {server}"
        );
    });
}

/// Reads the mask of every thread, for a program may pin its workers and not its first thread.
fn allowed_cpus(process_id: u32) -> String {
    let mut masks: Vec<_> = fs::read_dir(format!("/proc/{process_id}/task"))
        .expect("the process runs")
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("status")).ok())
        .filter_map(|status| {
            Some(
                status
                    .split_once("Cpus_allowed_list:")?
                    .1
                    .lines()
                    .next()?
                    .trim()
                    .to_owned(),
            )
        })
        .collect();
    masks.sort();
    masks.dedup();

    masks.join(" and ")
}

#[test]
fn logfile_takes_everything_and_appends() {
    let program = ours();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("log");
    fs::write(&log, "before\n").expect("the folder is writable");

    let pair = run_pair(
        (ours(), &[]),
        (program, &["-n", "1M", "--logfile", text(&log)]),
    );
    let client = pair.client.expect_clean();
    assert_eq!(client.stdout, "");

    let log = fs::read_to_string(&log).expect("the client wrote the log");
    assert!(
        log.starts_with("before\n") && log.ends_with("iperf Done.\n"),
        "{log}"
    );
}

#[test]
fn errors_go_to_the_logfile_too() {
    let program = ours();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("log");
    let port = free_port().to_string();
    let options = ["-c", "127.0.0.1", "-p", &port, "--logfile", text(&log)];
    let client = Process::start(program.command(options)).finish();
    client.expect_code(1);
    assert_eq!(client.stderr, "");

    let log = fs::read_to_string(&log).expect("the client wrote the log");
    assert!(
        log.contains("iperf3: error - unable to connect to server"),
        "{log}"
    );
}

#[test]
fn timestamps_begin_every_line() {
    each_case(&Pairing::ALL, |pairing| {
        let prefix = "--timestamps=%Y-%m-%d ";
        let pair = run_pair(
            (pairing.server(), &[prefix]),
            (pairing.client(), &["-n", "1M", prefix]),
        );
        for end in [pair.client.expect_clean(), pair.server.expect_clean()] {
            // The rule around the server's banner is a line like all others.
            let is_dated = |line: &str| {
                let (date, rest) = line.split_at_checked(11).unwrap_or((line, ""));
                let date: Vec<_> = date.trim_end().split('-').collect();
                date.len() == 3
                    && date.iter().all(|part| part.parse::<u32>().is_ok())
                    && !rest.starts_with("20")
            };
            assert!(end.stdout.lines().all(is_dated), "{pairing}: {end:?}");
        }
    });
}

#[test]
fn title_begins_every_line_of_the_client() {
    let program = ours();
    let pair = run_pair((ours(), &[]), (program, &["-n", "1M", "-T", "one two"]));
    let client = pair.client.expect_clean();
    assert!(
        client
            .stdout
            .lines()
            .all(|line| line.starts_with("one two:  ")),
        "{client:?}"
    );
    assert!(!pair.server.stdout.contains("one two"), "{:?}", pair.server);
}

#[test]
fn get_server_output_shows_the_servers_text() {
    each_case(&Pairing::ALL, |pairing| {
        let pair = run_pair(
            (pairing.server(), &[]),
            (pairing.client(), &["-n", "1M", "--get-server-output"]),
        );
        let client = pair.client.expect_clean();
        let (_, shown) = client
            .stdout
            .split_once("\nServer output:\n")
            .unwrap_or_else(|| panic!("{client:?}"));
        assert!(
            shown.starts_with("Accepted connection from 127.0.0.1"),
            "{pairing}: {client:?}"
        );

        let (shown, _) = shown.split_once("\n\n").unwrap_or((shown, ""));
        assert!(
            pair.server.stdout.contains(shown),
            "{pairing}: {shown} is not in {:?}",
            pair.server
        );
    });
}

#[test]
fn a_json_server_gives_a_text_client_its_json() {
    each_case(&Pairing::ALL, |pairing| {
        let pair = run_pair(
            (pairing.server(), &["-J"]),
            (
                pairing.client(),
                &["-t", "1", "-b", "5M", "--get-server-output"],
            ),
        );
        let client = pair.client.expect_clean();
        let (_, shown) = client
            .stdout
            .split_once("\nServer JSON output:\n")
            .unwrap_or_else(|| panic!("{client:?}"));
        let shown = shown.trim_end().trim_end_matches("iperf Done.");
        assert!(Report::parse(shown).number("/end/sum_received/bytes") > 0.0);
    });
}

#[test]
fn a_daemon_serves_and_cleans_up_its_pidfile() {
    let program = ours();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pidfile = folder.path().join("pid");
    let port = free_port();

    let options = [
        "-s",
        "-1",
        "-D",
        "-p",
        &port.to_string(),
        "-I",
        text(&pidfile),
    ];
    Process::start(program.command(options))
        .finish()
        .expect_clean();
    assert!(wait_until(TIMEOUT, || listens(port)), "the daemon listens");

    let id: u32 = fs::read_to_string(&pidfile)
        .expect("the daemon wrote its id")
        .parse()
        .expect("the id is a number");
    assert!(Path::new(&format!("/proc/{id}")).exists());

    let client = Process::start(original().command([
        "-c",
        "127.0.0.1",
        "-p",
        &port.to_string(),
        "-n",
        "1M",
    ]));
    client.finish().expect_clean();
    assert!(
        wait_until(TIMEOUT, || !pidfile.exists()),
        "{:?} left its pidfile",
        program.path()
    );
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}
