//! Options of iperf 2 that change where bytes come from, where they go, when they leave, and what
//! is said about them. Each is tested against the original on either side.

use std::fs::{self, File};
use std::io::Read;
use std::net::TcpListener;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use linerate_interop::iperf2::{
    Iperf2, Iperf2Server, Line, PAIRINGS, amounts, lines, run_iperf2, run_iperf2_at, totals,
};
use linerate_interop::{Finished, Process, Signal, each_case, has_ipv6, unsupported};

/// Bytes of the header that precedes the data.
const HEADER_BYTES: usize = 60;
const BLOCK_BYTES: usize = 131_072;
const MIB: f64 = 1_048_576.0;

#[test]
fn file_is_sent_and_its_end_ends_the_test() {
    let file = Recording::new();
    for (client, server) in PAIRINGS {
        for from_stdin in [false, true] {
            let server = Iperf2Server::start(server, "-f B");
            let words = format!("-c 127.0.0.1 -p {} -f B", server.port);
            let client_run = file.send_by(client, &words, from_stdin).finish();
            client_run.expect_clean();

            // The original leaves out a last block that is not full.
            let blocks = file.bytes.len() / BLOCK_BYTES * BLOCK_BYTES;
            let sent = match client {
                Iperf2::Original => HEADER_BYTES + blocks,
                Iperf2::Ours => HEADER_BYTES + file.bytes.len(),
            };
            assert_eq!(amounts(&client_run.stdout), [sent as f64], "{client_run:?}");

            let server = server.stop();
            assert_eq!(amounts(&server.stdout), [sent as f64], "{server:?}");
        }
    }
}

#[test]
fn a_file_arrives_as_it_is() {
    let file = Recording::new();
    for from_stdin in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let client = file.send_by(Iperf2::Ours, &format!("-c 127.0.0.1 -p {port}"), from_stdin);
        let (mut connection, _) = listener.accept().expect("the client connects");
        let mut arrived = Vec::new();
        connection.read_to_end(&mut arrived).expect("loopback");
        drop(connection);
        client.finish().expect_clean();
        assert_eq!(arrived.len(), HEADER_BYTES + file.bytes.len());
        assert!(
            arrived[HEADER_BYTES..] == file.bytes,
            "the bytes are those of the file"
        );
    }
}

#[test]
fn ipv6_works_and_a_server_for_it_takes_both() {
    if !has_ipv6() {
        return unsupported("this host has no IPv6");
    }

    each_case(&PAIRINGS, |pairing| {
        let (client, server) = run_iperf2_at("::1", *pairing, "-V -n 1M -f B -e", "-V -f B -e");
        for report in [&client, &server] {
            assert_eq!(amounts(&report.stdout), [MIB], "{report:?}");
            report.expect_stdout("[  1] local ::1%lo port ");
        }

        let (client, server) = run_iperf2(*pairing, "-n 1M -f B", "-V -f B");
        assert_eq!(amounts(&client.stdout), [MIB], "{client:?}");
        assert_eq!(amounts(&server.stdout), [MIB], "{server:?}");

        let (client, server) = run_iperf2_at("::1", *pairing, "-V -u -n 14500 -f B", "-V -u -f B");
        client.expect_stdout("Sending 1450 byte datagrams");
        client.expect_stdout("Server Report:");
        server.expect_stdout(" 0/");
    });
}

#[test]
fn a_test_begins_at_the_time_that_was_named() {
    each_case(&PAIRINGS, |pairing| {
        let start = Duration::from_secs(now().as_secs() + 3);
        let words = format!(
            "--txstart-time {}.25 -t 1 -b 10m -i 0.5 -f B",
            start.as_secs()
        );
        let (client, server) = run_iperf2(*pairing, &words, "-i 0.5 -f B");

        assert!(
            now() >= start + Duration::from_secs(1),
            "not before its time"
        );
        client.expect_stdout("Client traffic to start in ");

        for report in [&client, &server] {
            report.expect_stdout("(epoch-start)");
            assert_eq!(
                lines(&report.stdout).first().map(|line| line.start_s),
                Some(0.0),
                "{report:?}"
            );
        }

        assert_eq!(
            amounts(&client.stdout),
            amounts(&server.stdout),
            "{client:?} {server:?}"
        );
        // The server's clock begins with the data as well, seconds after the connection.
        let end_s =
            |report: &Finished| totals(&report.stdout).last().map_or(0.0, |line| line.end_s);
        assert!(
            end_s(&server) < end_s(&client) + 1.5,
            "{client:?} {server:?}"
        );
    });
}

#[test]
fn start_time_in_the_past_is_reported_and_the_test_begins() {
    for program in [Iperf2::Original, Iperf2::Ours] {
        let words = "--txstart-time 1795319078.5 -n 1M -f B";
        let (client, _) = run_iperf2((program, Iperf2::Ours), words, "-f B");
        let warning =
            "[  1] WARNING: --txstart-time (1795319078.5) 2026-11-22 03:44:38 is before now 20";
        client.expect_stdout(warning);
        assert_eq!(amounts(&client.stdout), [MIB], "{client:?}");
    }
}

#[test]
fn a_server_notices_that_a_client_gives_up_before_its_start() {
    let server = Iperf2Server::start(Iperf2::Ours, "-f B");
    let start_s = now().as_secs() + 600;
    let client = Iperf2::Original.client(server.port, &format!("--txstart-time {start_s} -t 1"));

    server.process.wait_for_stdout("(epoch-start)", 1);
    client.signal(Signal::Kill);
    // The header is all that has come.
    server.process.wait_for_stdout(" 80.0 Bytes ", 1);
    server.stop().expect_code(0);
}

#[test]
fn announced_release_follows_the_report_format() {
    let (_, server) = run_iperf2((Iperf2::Ours, Iperf2::Original), "-n 1M", "-e");
    server.expect_stdout("(peer 2.1.8)");

    let (_, server) = run_iperf2(
        (Iperf2::Ours, Iperf2::Original),
        "-n 1M --lr-format 2.2",
        "-e",
    );
    server.expect_stdout("(peer 2.2.1-rc)");

    // Only ours prints the release of the server it asked.
    let (client, _) = run_iperf2((Iperf2::Ours, Iperf2::Original), "-X -n 1M", "");
    client.expect_stdout("(peer 2.1.8)");
    let (client, _) = run_iperf2((Iperf2::Ours, Iperf2::Ours), "-X -n 1M", "--lr-format 2.2");
    client.expect_stdout("(peer 2.2.1-rc)");
}

#[test]
fn newer_release_interoperates_with_the_older() {
    let all: Vec<_> = [
        "-n 1M",
        "-n 1M -R",
        "-n 1M --trip-times",
        "-n 1M -P 2",
        "-u -n 14700",
    ]
    .into_iter()
    .flat_map(|words| [(words, Iperf2::Original), (words, Iperf2::Ours)])
    .collect();
    each_case(&all, |(words, server)| {
        let udp = if words.contains("-u") { "-u" } else { "" };
        let words = format!("{words} --lr-format 2.2 -f B");
        let (client, server) = run_iperf2((Iperf2::Ours, *server), &words, &format!("{udp} -f B"));

        if udp.is_empty() {
            assert_eq!(
                amounts(&client.stdout),
                amounts(&server.stdout),
                "{client:?} {server:?}"
            );
        } else {
            server.expect_stdout(" 0/11 (0%)");
            client.expect_stdout(" 0/11 (0%)");
        }
    });
}

#[test]
fn what_is_in_flight_is_shown_in_the_newer_layout() {
    let words = "-t 2 -i 0.1 -e --lr-format 2.2 -f B";
    let (client, _) = run_iperf2((Iperf2::Ours, Iperf2::Original), words, "");
    client.expect_stdout("InF(pkts)/Cwnd(pkts)/RTT(var)");

    // `97/0         0      319K(5)/1023K(16)/66(36) us  246725`
    let in_flight = |line: &Line| {
        let column = line.rest.split_whitespace().nth(2)?;
        let segments = column.split_once("K(")?.1.split_once(')')?.0;
        segments.parse::<u32>().ok()
    };
    let shown: Vec<u32> = lines(&client.stdout).iter().filter_map(in_flight).collect();
    assert!(shown.iter().any(|segments| *segments > 0), "{client:?}");
}

#[test]
fn the_sizes_of_reads_are_those_of_the_reads_that_were_made() {
    each_case(&PAIRINGS, |pairing| {
        for (server, bin_bytes) in [("", 16_384.0), ("-l 8K", 1024.0)] {
            let (_, server) = run_iperf2(*pairing, "-l 4000 -n 4M", &format!("-e -f B {server}"));
            let line = totals(&server.stdout)
                .pop()
                .unwrap_or_else(|| panic!("{server:?}"));
            let (calls, bins) = distribution(&line);
            assert_eq!(calls, bins.iter().sum::<f64>(), "{server:?}");

            let bound = |upper: f64| -> f64 {
                let sizes = bins.iter().enumerate();
                sizes
                    .map(|(bin, count)| count * (bin as f64 + upper) * bin_bytes)
                    .sum()
            };
            let payload = line.amount - HEADER_BYTES as f64;
            assert!(bound(0.0) <= payload && payload <= bound(1.0), "{server:?}");
        }
    });
}

/// `33=0:0:0:0:1:0:2:30` at the end of a line: calls, and how many were of each eighth of the
/// buffer.
fn distribution(line: &Line) -> (f64, Vec<f64>) {
    let (calls, bins) = line
        .rest
        .rsplit_once('=')
        .unwrap_or_else(|| panic!("{line:?}"));
    let number = |text: &str| text.parse::<f64>().unwrap_or_else(|_| panic!("{line:?}"));
    (number(calls), bins.split(':').map(number).collect())
}

/// A file that no pattern explains.
struct Recording {
    directory: tempfile::TempDir,
    bytes: Vec<u8>,
}

impl Recording {
    fn new() -> Self {
        let bytes: Vec<u8> = (0..300_000_u64).map(|at| (at * at / 7) as u8).collect();
        let directory = tempfile::tempdir().expect("a writable directory");
        fs::write(directory.path().join("recording"), &bytes).expect("a writable directory");
        Self { directory, bytes }
    }

    fn send_by(&self, program: Iperf2, words: &str, from_stdin: bool) -> Process {
        let path = self.directory.path().join("recording");
        if from_stdin {
            let file = File::open(&path).expect("it was written");
            return Process::start_reading(program.command(&format!("{words} -I")), file);
        }
        Process::start(program.command(&format!("{words} -F {}", path.display())))
    }
}

fn now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock")
}

/// The system does not know the algorithm: both ends show that and no line about its use.
#[test]
fn an_unknown_congestion_control_is_not_shown_as_set() {
    for program in [Iperf2::Original, Iperf2::Ours] {
        let (client, server) = run_iperf2((program, program), "-Z nosuch -n 1M -e", "-Z nosuch -e");
        for report in [&client, &server] {
            let text =
                "Attempt to set 'nosuch' congestion control failed: No such file or directory";
            report.expect_stderr(text);
            assert!(!report.stdout.contains("nosuch"), "{report:?}");
        }
    }

    let (client, _) = run_iperf2((Iperf2::Ours, Iperf2::Ours), "-Z reno -n 1M", "");
    client.expect_stdout("TCP congestion control set to reno\n");
}

#[test]
fn connections_alone_end_with_their_times() {
    for program in [Iperf2::Original, Iperf2::Ours] {
        let server = Iperf2Server::start(program, "");
        let client = program.client(server.port, "--connect-only=3 -e").finish();
        client.expect_code(0);
        assert_eq!(
            client
                .stdout
                .matches("[  1] local 127.0.0.1%lo port ")
                .count(),
            3,
            "{client:?}"
        );
        client.expect_stdout("Write buffer size: 131072 Byte\n");
        client.expect_stdout("\n[ CT] final connect times (min/avg/max/stdev) = ");
        client.expect_stdout(" ms (tot/err) = 3/0\n");

        // The original server keeps connections that say nothing.
        server.process.signal(Signal::Kill);
    }
}
