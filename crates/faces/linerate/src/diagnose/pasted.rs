//! Tests in pasted text and in reports of other programs, as runs of the hosts that reported them.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use linerate_doctor::TestTimeline;
use linerate_doctor::path::{PathRun, path_runs};
use linerate_history::readers::{Command, Imported as ReportedTest, ImportedPath, import_output};
use linerate_host::import::{Imported, TestOutput, TestRun, import_all};
use linerate_model::event::{Endpoint, ServerOutput};
use linerate_model::snapshot::Value;
use linerate_model::{Event, Flow, Stream};

/// Reads pasted texts, each with the name of its file: facts of hosts, and the tests among them.
pub fn import_texts(texts: &[(&str, &str)]) -> Imported {
    import_all(texts, &tests)
}

/// The tests in the output of a command.
fn tests(command: &str, lines: &[&str]) -> TestOutput {
    let parsed = Command::parse(command);
    let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
    let contents = import_output(parsed.as_ref(), &text);

    // Their numbers begin with 1.
    let unread: BTreeSet<usize> = contents
        .unread
        .iter()
        .chain(&contents.of_host)
        .map(|number| number - 1)
        .collect();
    let is_of_report = |line: &usize| {
        // Rules between parts belong to any output, so they are no sign of a report.
        !unread.contains(line) && lines.get(*line).is_some_and(|line| !is_rule(line))
    };
    let read = (0..lines.len()).filter(is_of_report).collect();

    let mut runs: Vec<TestRun> = contents
        .tests
        .iter()
        .flat_map(|test| runs_of(test, command, parsed.as_ref()))
        .collect();
    runs.extend(contents.paths.iter().flat_map(runs_of_path));
    number_equal_labels(&mut runs);

    let refused = contents.refused;
    let iperf3_version = contents.iperf3_version;
    let is_command = parsed.is_some_and(|command| command.is_server.is_some());
    TestOutput {
        runs,
        is_command,
        read,
        iperf3_version,
        refused,
    }
}

/// A line that is blank, or a rule between the parts of an output.
fn is_rule(line: &str) -> bool {
    line.trim()
        .chars()
        .all(|c| matches!(c, '-' | '.' | ' ' | '=' | '_'))
}

/// Each direction of a test.
fn runs_of(test: &ReportedTest, line: &str, command: Option<&Command>) -> Vec<TestRun> {
    let mut timeline = TestTimeline::default();
    test.events.iter().for_each(|event| timeline.note(event));
    let streams: Vec<&Stream> = test.events.iter().filter_map(stream_of).collect();
    let is_server = test.endpoint == Endpoint::Server;
    let client_ports = streams.iter().map(|stream| {
        if is_server {
            stream.remote
        } else {
            stream.local
        }
        .port()
    });
    // Port 0 is one that the report does not have.
    let client_ports: BTreeSet<u16> = client_ports.filter(|port| *port > 0).collect();
    let cpus = command.and_then(|command| command.cpus.clone());
    let directions = timeline.runs(None);
    let is_two_way = directions.len() > 1;

    let run = |(flow, facts)| {
        let mut run = TestRun {
            facts,
            client_ports: client_ports.clone(),
            is_server,
            ..TestRun::default()
        };
        let label = label(test, line, flow, is_two_way);
        describe(&mut run, test, label, command);

        if let Some(stream) = streams.iter().find(|stream| stream.flow == flow) {
            addresses(&mut run, stream);
        }

        match &cpus {
            // A pinning in the command line is that of the end on which it was typed.
            Some(cpus) if is_server => run.server_cpus = Some(cpus.clone()),
            Some(cpus) => set(&mut run, "client_cpus", cpus.as_str()),
            None => {}
        }

        retransmissions(&mut run, mss_bytes(test));
        accepted_by_tcp(&mut run);
        run
    };
    directions.into_iter().map(run).collect()
}

/// Each load of a test of a path.
fn runs_of_path(path: &ImportedPath) -> Vec<TestRun> {
    let test = &path.test;
    let run = |load: PathRun| {
        let mut facts = load.facts;
        let label = facts
            .get("label")
            .map(ToString::to_string)
            .unwrap_or_default();
        let host = &test.report.target.host;

        facts.insert("tool".into(), test.tool.into());
        facts.insert(
            "label".into(),
            format!("{} to {host}, {label}", test.tool).into(),
        );
        facts.extend(
            test.lost_share
                .map(|share| ("probe_loss_share".to_owned(), share.into())),
        );
        TestRun {
            facts,
            ..TestRun::default()
        }
    };
    path_runs(&test.report).into_iter().map(run).collect()
}

fn stream_of(event: &Event) -> Option<&Stream> {
    if let Event::StreamOpened(stream) = event {
        Some(stream)
    } else {
        None
    }
}

/// The command, or what a report without one is of.
fn label(test: &ReportedTest, line: &str, flow: Flow, is_two_way: bool) -> String {
    let tool = test.origin.tool.as_str();
    let peer = test.events.iter().find_map(|event| match event {
        Event::TestAccepted(header) => Some((header.peer_host.as_str(), header.spec.transport)),
        _ => None,
    });

    // Without a command the label is one that would give such a report.
    let mut label = line.to_owned();
    if label.is_empty() {
        let udp = if peer.is_some_and(|(_, transport)| transport == linerate_model::Transport::Udp)
        {
            " -u"
        } else {
            ""
        };
        let reverse = if flow == Flow::Reverse && !is_two_way {
            " -R"
        } else {
            ""
        };
        label = match (test.endpoint, peer) {
            (Endpoint::Client, Some((host, _))) if !host.is_empty() => {
                format!("{tool} -c {host}{udp}{reverse}")
            }
            (Endpoint::Client, _) => format!("{tool}{udp}{reverse}"),
            (Endpoint::Server, _) => format!("{tool} -s{udp}{reverse}"),
        };
    }

    if is_two_way {
        label.push_str(if flow == Flow::Forward {
            ", client to server"
        } else {
            ", server to client"
        });
    }

    label
}

/// Several tests of one text get numbers, where their commands are the same.
fn number_equal_labels(runs: &mut [TestRun]) {
    let label = |run: &TestRun| {
        run.facts
            .get("label")
            .map(ToString::to_string)
            .unwrap_or_default()
    };
    let labels: Vec<String> = runs.iter().map(label).collect();

    for (place, run) in runs.iter_mut().enumerate() {
        let Some(own) = labels.get(place) else {
            continue;
        };
        let before = labels
            .iter()
            .take(place)
            .filter(|other| *other == own)
            .count();

        if labels.iter().filter(|other| *other == own).count() > 1 {
            // The first of several equal labels has a number as well, so that both are
            // distinguishable.
            set(run, "label", format!("{own}, test {}", before + 1));
        }
    }
}

fn set(run: &mut TestRun, name: &str, value: impl Into<Value>) {
    run.facts.insert(name.to_owned(), value.into());
}

/// Fills a test with the values of a report, where a test of this program has its own.
fn describe(run: &mut TestRun, test: &ReportedTest, label: String, command: Option<&Command>) {
    let origin = &test.origin;
    let format = origin
        .imported
        .as_ref()
        .map_or("", |import| import.format.as_str());
    let is_text = format.ends_with("-text");

    let tool = if origin.tool == "iperf" {
        "iperf2"
    } else {
        origin.tool.as_str()
    };
    set(run, "tool", tool);
    set(run, "label", label);
    run.facts.insert(
        "options_known".into(),
        (command.is_some() || format.starts_with("iperf3-json")).into(),
    );

    if let Some(version) = &origin.version {
        set(run, "version", version.as_str());
    }

    if let Some(version) = test.events.iter().find_map(server_version) {
        set(run, "peer_version", version);
    }

    if run.is_server {
        set(run, "server", true);
    }

    if is_text {
        for rate in ["received_bps", "sent_bps"] {
            let printed = run.facts.get(rate).and_then(Value::number).map(as_printed);
            printed.and_then(|bps| run.facts.insert(rate.into(), bps.into()));
        }
    }

    // A length of 0 is not known, and neither is one that is only the default of this program.
    let is_length_known = is_text || format.starts_with("iperf3-json");
    let length = run.facts.get("block_len_bytes").and_then(Value::number);
    if !is_length_known || length == Some(0.0) {
        run.facts.remove("block_len_bytes");
    }

    let is_interrupted = run.facts.get("interrupted") == Some(&true.into());
    let wanted_s = command.and_then(|command| command.seconds);
    if is_interrupted || wanted_s.is_some() {
        run.facts.remove("seconds");
        run.facts
            .extend(wanted_s.map(|seconds| ("seconds".to_owned(), seconds.into())));
    }
}

/// The version in the report that a client received of its server.
fn server_version(event: &Event) -> Option<String> {
    let Event::PeerOutput(ServerOutput::Json(report)) = event else {
        return None;
    };
    let report: serde_json::Value = serde_json::from_str(report).ok()?;
    let version = report["start"]["version"].as_str()?;
    // iperf3 prints `iperf 3.16`, the facts have the number alone.
    Some(version.trim_start_matches("iperf ").to_owned())
}

/// A rate with the digits that programs print: the division of an amount by a time adds others.
fn as_printed(bps: f64) -> f64 {
    const DIGITS: i32 = 5;

    // The logarithm of 0 is not finite.
    if bps <= 0.0 {
        return bps;
    }

    let unit = 10_f64.powi(bps.log10().floor() as i32 - DIGITS + 1);
    (bps / unit).round() * unit
}

fn addresses(run: &mut TestRun, stream: &Stream) {
    // A report without addresses has the unspecified one.
    let is_known = |end: SocketAddr| !end.ip().is_unspecified();
    if !is_known(stream.local) || !is_known(stream.remote) {
        return;
    }

    let is_same = stream.local.ip() == stream.remote.ip() || stream.local.ip().is_loopback();
    set(run, "local", stream.local.ip().to_string());
    set(run, "same_host", is_same);
}

/// Payload of a segment, as the report has it.
fn mss_bytes(test: &ReportedTest) -> Option<u32> {
    test.events.iter().find_map(|event| match event {
        Event::TestAccepted(header) => header.control_mss_bytes,
        _ => None,
    })
}

/// Without the size of a segment the share is that of segments of Ethernet with time stamps.
fn retransmissions(run: &mut TestRun, mss_bytes: Option<u32>) {
    const SEGMENT_BYTES: u32 = 1448;

    let is_tcp = run.facts.get("transport") == Some(&"tcp".into());
    if let Some(mss) = mss_bytes.filter(|_| is_tcp) {
        run.facts
            .entry("mss_bytes".to_owned())
            .or_insert_with(|| mss.into());
    }

    let segment_bytes = f64::from(mss_bytes.unwrap_or(SEGMENT_BYTES));
    let number = |name: &str| run.facts.get(name).and_then(Value::number);
    let bytes = number("sent_bytes").or_else(|| number("received_bytes"));
    if let (Some(count), Some(bytes), None) =
        (number("retransmits"), bytes, number("retransmit_share"))
        && bytes > 0.0
    {
        run.facts.insert(
            "retransmit_share".into(),
            // Fewer bytes than a segment would give a share above 1.
            (count * segment_bytes / bytes.max(segment_bytes)).into(),
        );
        run.inferred.push("retransmit_share");
    }
}

/// A sender whose receiver did not report: what TCP accepted arrives, apart from what its buffers
/// hold at the end.
fn accepted_by_tcp(run: &mut TestRun) {
    let is_tcp = run.facts.get("transport") == Some(&"tcp".into());
    if !is_tcp || run.facts.contains_key("received_bps") {
        return;
    }

    if let Some(sent) = run.facts.get("sent_bps").cloned() {
        set(run, "received_bps", sent);
        run.inferred.push("received_bps");
    }
}
