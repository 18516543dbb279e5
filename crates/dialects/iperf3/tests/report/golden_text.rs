//! The writer must make the recorded text of iperf3 of the events behind it, byte for byte.
//!
//! Not compared: the numbers in `[  5]`, which are file descriptors of the recorded process, and
//! clock times.

use crate::support::{Recording, assert_same_text, captured_output, play, read, recorded};
use linerate_iperf3::report::{Options, client_sink, peer_report, report_failure, server_reporter};
use linerate_model::event::{Endpoint, ServerOutput};
use linerate_model::units::UnitFormat;

/// Where we differ on purpose: which files, why, and what iperf3 would have printed without the
/// defect.
const DIFFERENCES: &[Difference] = &[
    Difference {
        files: &[
            "sig-SIGINT-server.c321-s321.client.txt",
            "sig-SIGTERM-server.c321-s321.client.txt",
        ],
        reason: "a client prints the last interval again when the server ends; ours has fresh \
                 numbers",
        edit: without_repeated_interval,
    },
    Difference {
        files: &[
            "sig-SIGINT-client.c321-s321.server.txt",
            "sig-SIGTERM-client.c321-s321.server.txt",
        ],
        reason: "a server prints the last interval again when the client ends; ours has fresh \
                 numbers",
        edit: without_repeated_interval,
    },
    Difference {
        files: &[
            "tcp-P2-rev.c321-s321.client.txt",
            "verbose-P2-rev.c321-s321.client.txt",
        ],
        reason: "a receiving client with one interval names columns that its rows do not have",
        edit: without_sender_columns,
    },
    Difference {
        files: &["cntlka.c321-s321.client.txt", "cntlka.c321-s321.server.txt"],
        reason: "keepalive settings are debug output here",
        edit: without_keepalive,
    },
    Difference {
        files: &["server-bitrate-limit-exceeded.c321-s321.server.stderr.txt"],
        reason: "the message names the limit; the measured rate is in the interval above",
        edit: without_measured_rate,
    },
    Difference {
        files: &["text-gso-serverjson.c321-s321.client.txt"],
        reason: "a key that the server writes twice is written once",
        edit: without_second_target_bitrate,
    },
    Difference {
        files: &["server-daemon.s321.log.txt"],
        reason: "the recording starts with notes about the process",
        edit: log_file_part,
    },
];

struct Difference {
    files: &'static [&'static str],
    reason: &'static str,
    edit: fn(&str) -> String,
}

const EVENTS: &str = "iperf3/events/text.jsonl";

#[test]
fn clients_print_what_iperf3_prints() {
    let recordings = recorded(EVENTS, &[".client.txt", ".client2.txt"]);
    assert!(recordings.len() > 40, "the fixtures are there");

    for Recording { name, tests, .. } in recordings {
        let case = Case::load(&name, Endpoint::Client);
        let (output, normal, errors) = captured_output();
        play(
            &mut client_sink(case.options.clone(), output),
            &tests[0].events,
        );
        case.compare(&name, &normal.text(), &errors.text());
    }
}

#[test]
fn servers_print_what_iperf3_prints() {
    let recordings = recorded(EVENTS, &[".server.txt", ".log.txt"]);
    assert!(recordings.len() > 40, "the fixtures are there");

    for recording in recordings {
        let case = Case::load(&recording.name, Endpoint::Server);
        let (output, normal, errors) = captured_output();
        let mut reporter = server_reporter(case.options.clone(), output.clone());

        for test in &recording.tests {
            let listening = reporter.listening(test.port, test.number);
            listening.expect("memory can be written");
            let mut sink = reporter.open_test().expect("memory can be written");
            play(&mut sink, &test.events);
        }

        if let Some(interrupt) = &recording.interrupt {
            report_failure(case.options.clone(), output, interrupt).expect("memory can be written");
        }

        case.compare(&recording.name, &normal.text(), &errors.text());
    }
}

#[test]
fn a_client_gets_the_server_report_from_the_accepted_connection_on() {
    let recordings = recorded(EVENTS, &["gso-text.c321-s321.server.txt"]);
    let [recording] = &recordings[..] else {
        panic!("one recording")
    };
    let case = Case::load(&recording.name, Endpoint::Server);
    let mut report = peer_report(case.options.clone())();
    play(&mut report, &recording.tests[0].events);

    let expected = case.text.split_once("(test #1)\n").expect("a banner").1;
    let expected = expected.split_once('\n').expect("the banner's last line").1;
    assert_eq!(report.collect(), Some(ServerOutput::Text(expected.into())));
}

#[test]
fn every_listed_difference_is_one() {
    for difference in DIFFERENCES {
        for file in difference.files {
            let recorded = read(file);
            assert_ne!(
                (difference.edit)(&recorded),
                recorded,
                "{file}: {}",
                difference.reason
            );
        }
    }
}

/// A recorded run of one side.
struct Case {
    options: Options,
    text: String,
    stderr: String,
    /// Columns of clock time before every line.
    time_columns: usize,
}

impl Case {
    fn load(name: &str, endpoint: Endpoint) -> Self {
        let recorded = edited(name);
        let (text, stderr) = streams(name, &recorded);

        let mut options = Options {
            version: "iperf 3.21+".into(),
            system_info: "Linux testhost 6.18.0 #1 SMP PREEMPT_DYNAMIC x86_64".into(),
            ..Options::new(endpoint)
        };
        options.verbose = text.starts_with("iperf 3.21+\n");

        if let Some(letter) = name.split('.').next().and_then(|n| n.strip_prefix("fmt-")) {
            options.format =
                UnitFormat::from_letter(letter.chars().last().expect("a letter")).expect("a unit");
        }

        options.title = name.starts_with("title").then(|| "mytest".into());
        let is_timed = name.starts_with("timestamps");
        let (format, time_columns) = match endpoint {
            _ if !is_timed => (None, 0),
            Endpoint::Client => (Some("%Y-%m-%dT%H:%M:%S ".into()), 20),
            Endpoint::Server => (Some("%H:%M:%S ".into()), 9),
        };
        options.timestamps = format;

        Self {
            options,
            text,
            stderr,
            time_columns,
        }
    }

    fn compare(&self, name: &str, text: &str, stderr: &str) {
        let expected_text = self.comparable(&with_our_ids(&self.text));
        assert_same_text(&self.comparable(text), &expected_text, name);
        assert_same_text(stderr, &self.stderr, &format!("{name}, error stream"));
    }

    fn comparable(&self, text: &str) -> String {
        let mut comparable = String::new();
        for line in text.split_inclusive('\n') {
            let (time, rest) = line.split_at(self.time_columns.min(line.len() - 1));
            comparable.extend(
                time.chars()
                    .map(|c| if c.is_ascii_digit() { '0' } else { c }),
            );
            comparable.push_str(rest);
        }

        comparable
    }
}

/// Splits a recording into the two streams of the process.
fn streams(name: &str, recorded: &str) -> (String, String) {
    if name.ends_with(".log.txt") {
        return recorded
            .split_inclusive('\n')
            .map(String::from)
            .partition(|l: &String| !l.starts_with("iperf3: "));
    }

    match recorded.split_once("\n--stderr--\n") {
        Some((text, stderr)) => (text.to_owned(), stderr.to_owned()),
        None => (
            recorded.to_owned(),
            edited(&name.replace(".txt", ".stderr.txt")),
        ),
    }
}

fn edited(name: &str) -> String {
    let recorded = read(name);
    match DIFFERENCES.iter().find(|d| d.files.contains(&name)) {
        Some(difference) => (difference.edit)(&recorded),
        None => recorded,
    }
}

/// Replaces file descriptors by stream numbers. The server's report inside a client's is not ours.
fn with_our_ids(text: &str) -> String {
    let mut ids: Vec<String> = Vec::new();
    let mut is_ours = true;
    let mut replaced = String::new();

    for line in text.split_inclusive('\n') {
        is_ours &= !line.starts_with("Server output:") && !line.starts_with("Server JSON output:");
        let start = line.find('[').filter(|_| is_ours);
        let id = start
            .and_then(|start| line.get(start..start + 5))
            .filter(|id| id[1..4].trim().parse::<u32>().is_ok());
        let Some(id) = id else {
            replaced.push_str(line);
            if line.starts_with("Accepted") {
                ids.clear();
            }
            continue;
        };
        if !ids.iter().any(|known| known == id) {
            ids.push(id.to_owned());
        }

        let index = ids
            .iter()
            .position(|known| known == id)
            .expect("just added");
        replaced.push_str(&line.replacen(id, &format!("[{:>3}]", 5 + 2 * index), 1));
    }

    replaced
}

fn without_repeated_interval(text: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let headers: Vec<usize> = (0..lines.len())
        .filter(|i| lines[*i].starts_with("[ ID]"))
        .collect();
    let [_, repeated, _] = headers[..] else {
        return text.to_owned();
    };
    let separator = (repeated..lines.len())
        .find(|i| lines[*i].starts_with("- -"))
        .expect("a summary");

    lines[..repeated].concat() + &lines[separator..].concat()
}

fn without_sender_columns(text: &str) -> String {
    text.replacen("         Retr  Cwnd\n", "\n", 1)
}

fn without_keepalive(text: &str) -> String {
    text.split_inclusive('\n')
        .filter(|l| !l.starts_with("Control connection TCP Keepalive"))
        .collect()
}

fn without_measured_rate(text: &str) -> String {
    text.split_inclusive('\n')
        .filter(|l| !l.starts_with("iperf3: Total throughput"))
        .collect()
}

fn without_second_target_bitrate(text: &str) -> String {
    const LINE: &str = "\n\t\t\"target_bitrate\":\t50000000,";
    let (before, after) = text.split_once(LINE).expect("the key");
    format!("{before}{LINE}{}", after.replacen(LINE, "", 1))
}

fn log_file_part(text: &str) -> String {
    text.split_once("--logfile--\n")
        .map_or_else(String::new, |(_, log)| log.to_owned())
}
