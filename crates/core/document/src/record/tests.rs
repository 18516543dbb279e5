//! Reports of records whose values are known.

use std::io::Read;
use std::time::Duration;

use base64::Engine as _;
use linerate_model::event::TestHeader;
use linerate_model::measure::MeasureName;
use linerate_model::record::{
    Body, Detail, HostPart, Measure, RunId, RunKind, RunRecord, RunState, Series, SeriesOf,
    TestDetail, Times, Trial, Way,
};
use linerate_model::spec::TestSpec;

use super::*;

/// The page of kinds that no product reports.
fn html(records: &[RunRecord], stretch: TimeRange) -> String {
    super::html(records, stretch, ProductReport::NONE)
}

fn text(records: &[RunRecord], style: Style) -> String {
    super::text(records, ProductReport::NONE, style)
}

/// One stream: 940 Mbit/s, one retransmission in second 4, and the time limited by the receive
/// window.
fn trial(no: u32, mbps: f64, streams: u32, seconds: usize) -> Trial {
    let series = |stream: u32, name: &str, value: &dyn Fn(usize) -> f64| {
        Series::new(
            name,
            SeriesOf::Stream(stream),
            Way::Forward,
            Times::Grid {
                t0_ns: 0,
                step_ns: 1_000_000_000,
            },
            (0..seconds).map(|at| Some(value(at))).collect(),
        )
    };
    let each = mbps * 1e6 / 8.0 / f64::from(streams);

    let all = (1..=streams).flat_map(|stream| {
        [
            series(stream, "bytes", &|at| {
                if at == 7 {
                    each * 0.25
                } else {
                    each * (1.0 + (at % 3) as f64 * 0.004)
                }
            }),
            series(stream, "rtt_us", &|at| {
                310.0 + (at % 5) as f64 * 40.0 + f64::from(stream)
            }),
            series(stream, "retransmits", &|at| {
                f64::from(u8::from(at == 7)) * 12.0
            }),
            series(stream, "limits.busy_us", &|_| 980_000.0),
            series(stream, "limits.rwnd_limited_us", &|at| {
                if at == 7 { 700_000.0 } else { 150_000.0 }
            }),
            series(stream, "limits.sndbuf_limited_us", &|_| 90_000.0),
        ]
    });
    let measure = Measure::new;
    let spec = TestSpec {
        streams,
        omit: Duration::from_secs(1),
        ..TestSpec::default()
    };

    let header = TestHeader {
        peer_host: "10.1.2.3".to_owned(),
        spec,
        ..TestHeader::default()
    };

    let detail = TestDetail {
        header,
        ..TestDetail::default()
    };
    let mut trial = Trial::complete(seconds as u64 * 1_000_000_000);
    trial.no = no;
    trial.repeat = no;
    trial.started_ns = u64::from(no) * 11_000_000_000;
    trial.measures = vec![
        measure(MeasureName::ReceivedBps, Way::Forward, mbps * 1e6),
        measure(MeasureName::Retransmits, Way::Forward, 12.0),
        measure(MeasureName::RttMeanNs, Way::Forward, 412_000.0),
        measure(MeasureName::CpuClientCores, Way::Sum, 0.31),
    ];
    trial.series = all.collect();
    trial.detail = Some(Detail::Test(Box::new(detail)));

    trial
}

fn record(trials: Vec<Trial>) -> RunRecord {
    let mut record = RunRecord::new(
        RunId::new(1_790_000_000_000, [7; 10]),
        RunKind::Test,
        Body::Test,
        "2026-09-21T14:13:20.000Z".to_owned(),
        1_790_000_000_000,
    );
    record.state = RunState::Complete;
    record.elapsed_ns = 10_000_000_000;
    record.origin.tool = "linerate".to_owned();
    record.origin.version = Some("0.1.0".to_owned());
    record.origin.argv = ["linerate", "test", "lab2", "--title", "it's"]
        .map(str::to_owned)
        .into();
    record.path.client = Some("lab1.example.net".to_owned());
    record.path.server = Some("lab2".to_owned());
    record.path.addresses = vec!["10.1.2.2".to_owned(), "10.1.2.3".to_owned()];

    let mut host = HostPart::new("client", "lab1.example.net".to_owned());
    host.host_key = Some("00ff".to_owned());
    record.hosts = vec![host];
    record.trials = trials;

    record
}

fn five() -> RunRecord {
    record(
        (0..5)
            .map(|no| trial(no, 940.0 + f64::from(no), 2, 10))
            .collect(),
    )
}

fn page(record: &RunRecord) -> String {
    html(std::slice::from_ref(record), TimeRange::default())
}

/// The record that a page contains.
fn downloaded(page: &str) -> RunRecord {
    let data = page
        .split("data:application/gzip;base64,")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(data.expect("a link"))
        .expect("base64");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..])
        .read_to_string(&mut text)
        .expect("gzip");

    serde_json::from_str(&text).expect("a record")
}

#[test]
fn page_has_the_answer_first_and_the_record_last() {
    let record = five();
    let page = page(&record);

    let places: Vec<usize> = [
        "<h1>lab1.example.net → lab2: TCP, 2 streams, up</h1>",
        "<p class=\"verdict\">942 Mbit/s up</p>",
        "940 Mbit/s to 944 Mbit/s: lowest to highest of 5 trials",
        "<figcaption>Over time",
        "<figcaption>Trials",
        "<summary>All measures",
        "<h2>Hosts</h2>",
        "linerate test lab2 --title &#39;it&#39;\\&#39;&#39;s&#39;",
        "<a download=",
    ]
    .map(|part| {
        page.find(part)
            .unwrap_or_else(|| panic!("no {part} in {page}"))
    })
    .into();
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(downloaded(&page), record);

    for panel in [
        "throughput",
        "round-trip time under load",
        "retransmitted segments",
        "what the sender waited for",
    ] {
        assert!(page.contains(&format!(">{panel}")), "{panel}");
    }

    assert!(
        page.contains("trial 3, the one with the median result; shaded: warm-up"),
        "{page}"
    );
    assert_eq!(
        page.matches("role=\"img\"").count(),
        2 * page.matches("<summary>Values: ").count(),
        "a drawing for each width"
    );

    for foreign in ["<script", "src=", "http:", "https:", "url(", "NaN", "inf"] {
        let without_data = page.split("base64,").next().unwrap_or_default();
        assert!(!without_data.contains(foreign), "{foreign}");
    }
}

#[test]
fn stretch_of_time_is_enlarged() {
    let stretch = TimeRange {
        from_ns: 2_000_000_000,
        to_ns: 6_000_000_000,
    };
    let page = html(&[five()], stretch);
    let rows = page
        .split("<summary>Values: Over time")
        .nth(1)
        .and_then(|rest| rest.split("</table>").next());
    assert_eq!(rows.expect("a table").matches("<tr><td").count(), 4);
    assert!(page.contains("Charts: from 2.00 s to 6.00 s of each trial"));
}

#[test]
fn streams_that_end_one_after_the_other_have_a_sum_in_the_last_interval() {
    let mut trial = trial(0, 800.0, 2, 3);
    for series in &mut trial.series {
        let late_ns = if series.of == SeriesOf::Stream(2) {
            70_000
        } else {
            0
        };
        let ends_ns = vec![1_000_000_000, 2_000_000_000, 3_000_000_000 + late_ns];
        series.times = Times::Ends { t0_ns: 0, ends_ns };
    }

    let page = page(&record(vec![trial]));
    let over_time = page
        .split("<summary>Values: Over time")
        .nth(1)
        .and_then(|rest| rest.split("</table>").next())
        .expect("a table");
    let last = over_time.split_once("data-label=\"time\">3");
    let (_, last) = last.unwrap_or_else(|| panic!("no third second in {over_time}"));
    for panel in [
        "throughput",
        "retransmitted segments",
        "what the sender waited for",
    ] {
        assert!(last.contains(&format!("data-label=\"{panel}")), "{panel}");
    }
    assert!(over_time.contains("803 Mbit/s"), "{over_time}");
}

#[test]
fn little_data_is_a_point_and_a_failure_has_its_reason() {
    let page_of_one = page(&record(vec![trial(0, 500.0, 1, 1)]));
    assert!(page_of_one.contains("class=\"marker h0\""), "one point");
    let mut failed = record(vec![]);
    (failed.state, failed.reason) = (RunState::Failed, Some("connection refused".to_owned()));

    let page = page(&failed);
    assert!(page.contains("verdict\">Failed after 10.0 s: connection refused</p>"));
    assert!(
        page.contains("No charts: no values over time were recorded.") && !page.contains("<svg")
    );
}

#[test]
fn ten_hours_of_128_streams_stay_below_a_megabyte_with_their_peaks() {
    let mut long = trial(0, 9400.0, 128, 600);
    let hours = |series: &mut Series| {
        series.times = Times::Grid {
            t0_ns: 0,
            step_ns: 60_000_000_000,
        }
    };
    long.series.iter_mut().for_each(hours);

    // Values that do not deflate well.
    for (at, value) in long
        .series
        .iter_mut()
        .flat_map(|series| &mut series.values)
        .enumerate()
    {
        *value = value.map(|value| value + (at * 7919 % 1009) as f64);
    }

    let retransmits = |series: &&mut Series| series.name == "retransmits";
    long.series
        .iter_mut()
        .filter(retransmits)
        .for_each(|series| series.values[407] = Some(50_001.0));
    let page = page(&record(vec![long]));
    assert!(page.len() < 1_000_000, "{}", page.len());
    assert!(page.contains("without its values over time, which would make the page too large"));
    assert_eq!(downloaded(&page).trials.len(), 1);
    assert!(page.contains("128 streams, range"));

    let retransmitted = page
        .split("<summary>Values: Over time")
        .nth(1)
        .expect("a table");
    assert!(
        retransmitted
            .split("</table>")
            .next()
            .is_some_and(|table| table.contains("6400128</td>")),
        "the peak"
    );
}

#[test]
fn text_of_others_is_text_everywhere() {
    let hostile = "<script>alert(1)</script>\u{1b}[31m\u{202e}\"'&|`[x](http://x)@me";
    let mut record = five();
    record.title = Some(hostile.repeat(20_000));
    record.path.server = Some(hostile.to_owned());
    record.hosts[0].name = hostile.to_owned();
    record.notes = vec![hostile.to_owned()];
    record.reason = Some(hostile.to_owned());
    record.state = RunState::Partial;
    record.origin.argv = vec![hostile.to_owned()];
    record.trials[0].flags = vec![hostile.to_owned()];
    record.labels.insert("key".to_owned(), hostile.to_owned());

    let page = page(&record);
    assert!(page.len() < 1_000_000, "{}", page.len());
    let records = std::slice::from_ref(&record);
    let text = text(records, Style::PLAIN);
    for (form, shown) in [("html", &page), ("text", &text)] {
        for acting in ["\u{1b}", "\u{202e}"] {
            assert!(!shown.contains(acting), "{form}");
        }
    }

    assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
}

#[test]
fn anonymous_record_has_roles_and_addresses_for_documentation() {
    let mut record = five();
    record.notes = vec![
        "lab1 at 10.1.2.2:40000 (52:54:00:aa:bb:cc) to LAB2: 127.0.0.1, fe80::1 and Linux 6.1.0"
            .to_owned(),
    ];
    let anonymous = anonymized(&record);
    assert_eq!(anonymous.path.client.as_deref(), Some("client"));
    assert_eq!(anonymous.hosts[0].host_key, None);

    let text = serde_json::to_string(&anonymous).expect("JSON");
    for secret in [
        "lab1",
        "lab2",
        "LAB2",
        "10.1.2",
        "52:54",
        "fe80",
        "example.net",
    ] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }

    assert!(
        text.contains("client at 192.0.2.") && text.contains("to server: 127.0.0.1, 2001:db8::"),
        "{}",
        anonymous.notes[0]
    );
    assert_eq!(anonymous.trials[0].measures, record.trials[0].measures);
}

#[test]
fn several_runs_have_an_overview() {
    let records: Vec<RunRecord> = (0..210)
        .map(|_| record(vec![trial(0, 940.0, 1, 3)]))
        .collect();
    let page = html(&records, TimeRange::default());
    assert!(page.contains("<h1>210 runs</h1>") && page.contains("the first 200 of 210 runs"));
    assert!(page.len() < 1_000_000, "{}", page.len());
    assert_eq!(page.matches("<h1>").count(), 1);
}

#[test]
fn settings_have_a_chart_and_no_common_value() {
    let of = |no: u32, streams: u32| {
        let factors = [("streams".to_owned(), streams.to_string())].into();
        let mut trial = trial(no, 300.0 * f64::from(streams) + f64::from(no), 1, 1);
        trial.factors = factors;
        trial.series = Vec::new();
        trial
    };
    let record = record((0..9).map(|no| of(no, 1 + no % 3)).collect());
    let page = page(&record);
    assert!(
        page.contains("Streams 3, best of 3 settings: 905 Mbit/s"),
        "{page}"
    );
    assert!(
        page.contains("<figcaption>Settings") && page.matches("class=\"whisker").count() == 2 * 3,
        "{page}"
    );
    assert!(!page.contains("<h2>Values"));
    assert!(
        page.contains("<td class=\"words whole\" data-label=\"setting\">streams 2</td>"),
        "all trials"
    );
}

/// Writes pages for inspection into the directory `LINERATE_PAGES`.
#[test]
#[ignore = "writes files"]
fn sample_pages() {
    let Some(directory) = std::env::var_os("LINERATE_PAGES").map(std::path::PathBuf::from) else {
        return;
    };
    let mut long = trial(0, 9400.0, 128, 600);
    long.series.iter_mut().for_each(|series| {
        series.times = Times::Grid {
            t0_ns: 0,
            step_ns: 60_000_000_000,
        }
    });

    let pages = [
        ("test", page(&five())),
        ("long", page(&record(vec![long]))),
        ("point", page(&record(vec![trial(0, 500.0, 1, 1)]))),
    ];
    for (name, page) in pages {
        std::fs::write(directory.join(format!("{name}.html")), page).expect("a file");
    }
}
