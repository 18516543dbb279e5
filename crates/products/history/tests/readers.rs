//! Real reports of other programs, imported whole, twice, one behind the other, cut off, and
//! formatted again.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use linerate_history::readers::{Contents, ImportError, Imported, import};
use linerate_model::event::{Endpoint, ServerOutput};
use linerate_model::{
    EndpointTotals, Event, EventSink, Flow, Summary, TestSpec, measure, stored_name,
};
use linerate_store::Builder;
use serde_json::{Value, json};

/// Places at which each report is cut.
const CUTS: usize = 50;

fn read(text: &str) -> Contents {
    import(None, text, &|_| 0).unwrap_or_default()
}

/// Every report in the data directory: its name and its text.
fn reports() -> BTreeMap<String, String> {
    let mut reports = BTreeMap::new();
    for program in ["iperf3", "iperf2", "pscheduler"] {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data")
            .join(program);
        for entry in fs::read_dir(directory).expect("the directory of reports") {
            let path = entry.expect("a report").path();
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            reports.insert(name, fs::read_to_string(&path).expect("text"));
        }
    }

    reports
}

fn report(name: &str) -> String {
    reports()
        .remove(name)
        .unwrap_or_else(|| panic!("no {name}"))
}

fn keys(contents: &Contents) -> Vec<&str> {
    contents
        .tests
        .iter()
        .map(|test| test.source_key.as_str())
        .collect()
}

#[test]
fn every_report_has_the_tests_that_its_program_ran() {
    let mut actual = String::new();
    for (name, text) in reports() {
        let contents = read(&text);
        let _ = writeln!(
            actual,
            "{name}: {} unread lines, {} repeated",
            contents.unread.len(),
            contents.repeated
        );

        for test in &contents.tests {
            let _ = writeln!(actual, "  {}", line(test));
        }
    }

    let expected = include_str!("data/expected.txt");
    let differs = actual
        .lines()
        .zip(expected.lines())
        .position(|(actual, expected)| actual != expected);
    assert!(
        actual == expected,
        "different from line {differs:?} on:\n{actual}"
    );
}

/// Texts of both programs: what clients and servers printed, and logs of both ends one after the
/// other.
fn texts() -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for (directory, is_report) in [
        (
            "iperf3",
            (|name| !name.contains("stderr")) as fn(&str) -> bool,
        ),
        ("iperf2/text-218", |name| {
            !name.starts_with("err_") && !name.contains("csv")
        }),
        ("iperf2/text-221", |name| {
            !name.starts_with("err_") && !name.contains("csv")
        }),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../../fixtures")
            .join(directory);
        for entry in fs::read_dir(path).expect("the directory of texts") {
            let path = entry.expect("a text").path();
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            if name.ends_with(".txt") && is_report(&name) {
                texts.insert(
                    format!("{directory}/{name}"),
                    fs::read_to_string(&path).expect("text"),
                );
            }
        }
    }

    texts
}

#[test]
fn every_text_has_the_tests_that_its_program_ran() {
    let mut actual = String::new();
    for (name, text) in texts() {
        let contents = read(&text);
        let lines: Vec<&str> = text.lines().collect();
        let _ = writeln!(actual, "{name}: {} repeated", contents.repeated);

        for test in &contents.tests {
            let _ = writeln!(
                actual,
                "  {}",
                line(test).replace(
                    "; the values are those that were printed, with three digits",
                    ""
                )
            );
        }

        // The heads of our own files of texts.
        let is_ours = |line: &&str| line.starts_with("# ") || line.starts_with("=== ");
        let unread = contents
            .unread
            .iter()
            .filter_map(|number| lines.get(number - 1))
            .filter(|line| !is_ours(line));
        for line in unread {
            let _ = writeln!(actual, "  unread: {line}");
        }
    }

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/expected-texts.txt");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, &actual).expect("the expected tests");
    }

    let expected = fs::read_to_string(path).expect("the expected tests");
    let differs = actual
        .lines()
        .zip(expected.lines())
        .position(|(actual, expected)| actual != expected);
    assert!(
        actual == expected,
        "different from line {differs:?} on:\n{actual}"
    );
}

/// A test in one line.
fn line(test: &Imported) -> String {
    let spec = spec(test);
    let count = |is: fn(&Event) -> bool| test.events.iter().filter(|event| is(event)).count();

    let mut line = format!(
        "{} {} of the {}: {} {}, {} streams, {} intervals",
        test.origin.tool,
        test.origin.version.as_deref().unwrap_or("-"),
        stored_name(test.endpoint),
        stored_name(spec.transport),
        stored_name(spec.direction),
        count(|event| matches!(event, Event::StreamOpened(_))),
        count(|event| matches!(event, Event::Interval(_))),
    );
    let warm_up = test
        .events
        .iter()
        .position(|event| *event == Event::OmitEnded);
    line.push_str(if warm_up.is_some() {
        " with warm-up"
    } else {
        ""
    });

    for flow in [Flow::Forward, Flow::Reverse] {
        let Some(summary) = summary(test) else {
            continue;
        };
        let totals = |end: Option<EndpointTotals>| {
            end.map_or("-".to_owned(), |end| {
                format!("{} B in {:.6} s", end.bytes, end.seconds())
            })
        };

        let (sent, received) = (
            measure::sent(summary, flow),
            measure::received(summary, flow),
        );
        if sent.is_some() || received.is_some() {
            let _ = write!(
                line,
                "; {}: sent {}, received {}",
                stored_name(flow),
                totals(sent),
                totals(received)
            );
            let udp = received.and_then(|end| end.udp);
            let lost = udp.map(|udp| {
                format!(
                    ", lost {} of {}, {} late",
                    udp.lost, udp.packets, udp.out_of_order
                )
            });

            let retransmits =
                measure::retransmits(summary, flow).map(|count| format!(", {count} retransmits"));
            line.extend([lost, retransmits].into_iter().flatten());
        }
    }

    let end = match test.events.last() {
        Some(Event::Finished) => "finished".to_owned(),
        Some(Event::Failed(failure)) => format!("{:?}: {failure}", failure.kind),
        _ => "cut off".to_owned(),
    };
    let notes = test
        .origin
        .imported
        .iter()
        .flat_map(|from| &from.notes)
        .map(|note| format!("; {note}"));
    format!("{line}; {end}{}", notes.collect::<String>())
}

fn spec(test: &Imported) -> TestSpec {
    let header = test.events.iter().find_map(|event| match event {
        Event::TestAccepted(header) => Some(header.spec.clone()),
        _ => None,
    });
    header.unwrap_or_default()
}

fn summary(test: &Imported) -> Option<&Summary> {
    test.events.iter().find_map(|event| match event {
        Event::Summary(summary) => Some(&**summary),
        _ => None,
    })
}

#[test]
fn a_report_that_is_there_twice_adds_nothing() {
    for (name, text) in reports() {
        let (once, twice) = (read(&text), read(&format!("{text}\n{text}")));
        assert_eq!(keys(&once), keys(&twice), "{name}");
        assert_eq!(
            twice.repeated,
            2 * once.repeated + once.tests.len(),
            "{name}"
        );
    }
}

#[test]
fn reports_one_behind_the_other_are_all_read() {
    // Rows of iperf 2 do not tell which end wrote them.
    let mut reports = reports();
    reports.retain(|name, _| !name.ends_with("server.csv"));
    let tests = reports.values().flat_map(|text| read(text).tests);
    let mut all = BTreeMap::new();

    for test in tests {
        all.entry(test.source_key).or_insert(test.events);
    }

    let joined: String = reports.values().map(|text| format!("{text}\n")).collect();
    let joined: BTreeMap<_, _> = read(&joined)
        .tests
        .into_iter()
        .map(|test| (test.source_key, test.events))
        .collect();
    assert_eq!(
        joined.keys().collect::<Vec<_>>(),
        all.keys().collect::<Vec<_>>()
    );
    assert_eq!(joined, all);
}

#[test]
fn a_cut_report_has_part_of_the_tests_and_the_whole_one_replaces_it() {
    for (name, text) in reports() {
        let whole = read(&text);
        let bytes = text.trim_end().len();

        for part in 1..CUTS {
            let at = bytes * part / CUTS;
            let cut = read(&text[..at]);
            assert!(
                keys(&cut).iter().all(|key| keys(&whole).contains(key)),
                "{name} cut at {at}"
            );

            // One of each five, because it takes long.
            for follows in ["\n", ""].into_iter().filter(|_| part % 5 == 0) {
                let both = read(&format!("{}{follows}{text}", &text[..at]));
                // Elsewhere the line that is continued by the next report is lost.
                let has_lines = !name.contains(".c3") || name.starts_with("jstream");
                if follows.is_empty() && has_lines {
                    continue;
                }

                let mut found: Vec<_> = both
                    .tests
                    .iter()
                    .map(|test| (&test.source_key, &test.events))
                    .collect();
                let mut expected: Vec<_> = whole
                    .tests
                    .iter()
                    .map(|test| (&test.source_key, &test.events))
                    .collect();

                found.sort_by_key(|(key, _)| *key);
                expected.sort_by_key(|(key, _)| *key);
                assert_eq!(
                    found, expected,
                    "{name} cut at {at}, then {follows:?} and the whole"
                );
            }
        }
    }
}

#[test]
fn a_cut_report_has_its_whole_intervals_and_the_totals_of_this_end() {
    let text = report("json-tcp.c312-s312.client.json");
    let second = text
        .match_indices("\"omitted\"")
        .nth(2)
        .expect("the second interval")
        .0;
    let contents = read(&text[..second]);
    let [test] = contents.tests.as_slice() else {
        panic!("{contents:?}")
    };
    assert!(test.is_partial());
    assert_eq!(
        test.events
            .iter()
            .filter(|event| matches!(event, Event::Interval(_)))
            .count(),
        1
    );

    let summary = summary(test).expect("of the first interval");
    assert_eq!(
        measure::sent(summary, Flow::Forward).map(|end| end.duration_ns / 1_000_000),
        Some(1000)
    );
    assert_eq!(measure::received(summary, Flow::Forward), None);

    let notes = &test.origin.imported.as_ref().expect("an import").notes;
    assert!(
        notes.iter().any(|note| note.contains("cut off")),
        "{notes:?}"
    );
}

#[test]
fn a_report_formatted_anew_is_the_same() {
    for (name, text) in reports()
        .iter()
        .filter(|(name, _)| name.ends_with(".json") && !name.contains("log"))
    {
        let value: Value = serde_json::from_str(text).expect(name);
        let rewritten = read(&serde_json::to_string(&value).expect("JSON"));

        let hash = |contents: &Contents| {
            contents.tests[0]
                .origin
                .imported
                .as_ref()
                .map(|from| from.sha256.clone())
        };
        assert_eq!(hash(&read(text)), hash(&rewritten), "{name}");
    }
}

#[test]
fn reports_of_both_ends_are_twins() {
    let [client, server] = [
        "json-tcp.c321-s321.client.json",
        "json-tcp.c321-s321.server.json",
    ]
    .map(|name| read(&report(name)));
    assert_eq!(
        (client.tests[0].endpoint, server.tests[0].endpoint),
        (Endpoint::Client, Endpoint::Server)
    );
    assert_eq!(
        client.tests[0].twin_key.as_ref(),
        Some(&server.tests[0].source_key)
    );
    assert_eq!(
        server.tests[0].twin_key.as_ref(),
        Some(&client.tests[0].source_key)
    );
}

#[test]
fn the_servers_report_within_a_clients_is_its_twin_or_its_text() {
    for name in [
        "json-gso-serverjson.c321-s321.client.json",
        "jstream-gso.c321-s321.client.jsonl",
    ] {
        let contents = read(&report(name));
        let ends: Vec<Endpoint> = contents.tests.iter().map(|test| test.endpoint).collect();
        assert_eq!(ends, [Endpoint::Client, Endpoint::Server], "{name}");
        assert_eq!(
            contents.tests[0].twin_key.as_ref(),
            Some(&contents.tests[1].source_key),
            "{name}"
        );
    }

    let contents = read(&report("json-gso.c321-s321.client.json"));
    let text = |event: &Event| matches!(event, Event::PeerOutput(ServerOutput::Text(text)) if text.contains("Accepted"));
    assert_eq!(contents.tests.len(), 1);
    assert!(contents.tests[0].events.iter().any(text));
}

#[test]
fn zeros_for_what_is_not_known_are_absent() {
    let receiver = read(&report("json-tcp-rev.c312-s312.client.json"));
    let tcp = summary(&receiver.tests[0]).expect("totals").streams[0]
        .tcp
        .expect("retransmits of the peer");
    assert_eq!(
        (
            tcp.retransmits,
            tcp.max_snd_cwnd_bytes,
            tcp.max_rtt_us,
            tcp.mean_rtt_us
        ),
        (Some(0), None, None, None)
    );

    let server = read(&report("json-udp.c321-s321.server.json"));
    let summary = summary(&server.tests[0]).expect("totals");
    assert_eq!(summary.cpu_remote, None);
    assert_eq!(measure::sent(summary, Flow::Forward), None);
    assert!(measure::received(summary, Flow::Forward).is_some_and(|end| end.bytes > 0));
}

/// A report in the form of 3.1: no flag of the sender, no sums of UDP but one.
fn report_of_3_1(end: &Value, protocol: &str) -> String {
    let start = json!({
        "connected": [
            {"socket": 4, "local_host": "192.0.2.1", "local_port": 4000, "remote_host": "192.0.2.2", "remote_port": 5201},
            {"socket": 6, "local_host": "192.0.2.1", "local_port": 4001, "remote_host": "192.0.2.2", "remote_port": 5201},
        ],
        "version": "iperf 3.1.3", "system_info": "Linux a 4.4.0", "cookie": "a.1471318787.1.2",
        "timestamp": {"time": "Tue, 16 Aug 2016 03:39:47 GMT", "timesecs": 1_471_318_787},
        "connecting_to": {"host": "192.0.2.2", "port": 5201},
        "test_start": {"protocol": protocol, "num_streams": 2, "blksize": 1000, "omit": 0, "duration": 10, "reverse": 0},
    });
    json!({"start": start, "intervals": [], "end": end}).to_string()
}

#[test]
fn reports_of_the_first_releases_are_read() {
    let half = |socket, bytes| json!({"socket": socket, "start": 0, "end": 10.0, "seconds": 10.0, "bytes": bytes});
    let tcp = json!({"streams": [
        {"sender": half(4, 1.5e9), "receiver": half(4, 1_490_000_000.0)},
        {"sender": half(6, 500.0), "receiver": half(6, 400.0)},
    ], "sum_sent": {"bytes": 1_500_000_500}, "sum_received": {"bytes": 1}});
    let contents = read(&report_of_3_1(&tcp, "TCP"));
    let received = measure::received(summary(&contents.tests[0]).expect("totals"), Flow::Forward);
    assert_eq!(received.map(|end| end.bytes), Some(1_490_000_400));

    let notes = &contents.tests[0]
        .origin
        .imported
        .as_ref()
        .expect("an import")
        .notes;
    assert_eq!(notes.len(), 1, "the sum that differs: {notes:?}");

    let datagrams = |socket, packets, lost| {
        json!({"udp": {"socket": socket, "start": 0, "end": 10.0, "bytes": packets * 1000, "packets": packets,
            "lost_packets": lost, "jitter_ms": 0.5, "out_of_order": 1}})
    };
    let cpu = json!({"host_total": 1.0, "remote_total": 2.0});
    let udp = json!({"streams": [datagrams(4, 100, 10), datagrams(6, 300, 0)], "sum": {"end": 10.0},
        "cpu_utilization_percent": cpu});
    let contents = read(&report_of_3_1(&udp, "UDP"));
    let summary = summary(&contents.tests[0]).expect("totals");
    let received = measure::received(summary, Flow::Forward).expect("known");
    assert_eq!(
        (received.bytes, received.duration_ns),
        (390_000, 10_000_000_000)
    );

    let datagrams = measure::datagrams(summary, Flow::Forward).expect("known");
    assert_eq!(datagrams.lost_share(), Some(0.025));
}

#[test]
fn received_bytes_of_udp_are_divided_among_the_streams() {
    let contents = read(&report("json-udp-P2.c321-s321.client.json"));
    let summary = summary(&contents.tests[0]).expect("totals");
    let bytes: Vec<u64> = summary
        .streams
        .iter()
        .filter_map(|stream| Some(stream.receiver?.bytes))
        .collect();
    assert_eq!(bytes, [655_360, 655_360]);
}

#[test]
fn the_servers_report_of_old_clients_is_the_receiving_end() {
    let rows = "20140101120010,192.0.2.1,43210,192.0.2.2,5001,3,0.0-10.0,1312500,1050000\n\
                20140101120010,192.0.2.2,5001,192.0.2.1,43210,3,0.0-10.0,1310000,1048000,0.009,2,893,0.224,0\n";
    let contents = read(rows);
    let [test] = contents.tests.as_slice() else {
        panic!("{contents:?}")
    };
    let summary = summary(test).expect("totals");
    assert_eq!(
        measure::sent(summary, Flow::Forward).map(|end| end.bytes),
        Some(1_312_500)
    );

    let received = measure::received(summary, Flow::Forward).expect("of the server");
    assert_eq!(
        (received.bytes, received.udp.map(|udp| udp.lost)),
        (1_310_000, Some(2))
    );
    assert_eq!(test.started_unix_ms, Some(1_388_577_600_000));
}

#[test]
fn lines_between_reports_are_counted() {
    let text = report("json-tcp.c312-s312.client.json");
    let contents = read(&format!(
        "Mon Nov 23\n[  5] local\n{{\"a\": 1}}\n{text}done\n"
    ));
    assert_eq!((contents.tests.len(), contents.unread.len()), (1, 4));

    for unknown in ["", "\n", "hello\n", "{}", "{\"start\": {}}", "1,2,3\n"] {
        assert_eq!(
            import(None, unknown, &|_| 0).err(),
            Some(ImportError::Unknown),
            "{unknown:?}"
        );
    }
}

#[test]
fn records_of_this_program_are_passed_on() {
    let record = "{\"schema\":\"linerate.run/1\",\"run_id\":\"x\"}";
    assert_eq!(
        read(&format!("{record}\n{record}\n")).records,
        [record, record]
    );
}

/// Replacements of a word: numbers beyond all bounds, signs, and characters of several bytes.
const DAMAGE: [&str; 9] = [
    "",
    "-1",
    "nan",
    "1e308",
    "99999999999999999999",
    "0",
    "\u{e9}\u{20ac}",
    "[",
    "sec",
];

/// Any word of a report can be damaged on its way through a forum.
#[test]
fn damaged_texts_become_tests_or_unread_lines() {
    let mut seed = 19_u64;
    let mut next = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };

    for (name, text) in texts() {
        for _ in 0..20 {
            let words: Vec<&str> = text.split_inclusive(char::is_whitespace).collect();
            let at = next(words.len().max(1));

            let damaged: String = words
                .iter()
                .enumerate()
                .map(|(place, word)| {
                    if place == at {
                        DAMAGE[next(DAMAGE.len())]
                    } else {
                        word
                    }
                })
                .collect();
            let contents = read(&damaged);
            for test in &contents.tests {
                let mut builder = Builder::default();
                test.events
                    .iter()
                    .for_each(|event| builder.event(event).expect("a builder takes every event"));
                let trial = builder.finish();
                let is_number = trial
                    .measures
                    .iter()
                    .all(|measure| measure.value.is_finite());
                assert!(is_number, "{name}: {:?} in {damaged}", trial.measures);
            }
        }
    }
}
