//! A sweep whose numbers are known, in every form.

use linerate_document::expected::assert_expected_in;
use linerate_document::record::{TimeRange, anonymized, html as record_html};
use linerate_document::style::Style;
use linerate_model::measure::MeasureName;
use linerate_model::record::{Detail, Measure, RunId, RunKind, RunState, TestDetail, Trial, Way};
use linerate_model::stats::Interval;
use linerate_model::sweep::{
    Cost, Degradation, FactorResult, FailedLevel, HostIdentity, Leader, Level, Objective,
    PlannedFactor, PlateauSide, Provenance, Reason, ReasonName, Recommendation, RunMetrics, Sweep,
    SweepPlan,
};
use linerate_model::{EndpointTotals, StreamSummary, Summary};

use super::*;
use crate::{Observation, Run, RunError};

fn level(label: &str, amount: u64, median: f64, runs: usize) -> Level {
    let mut level = Level {
        label: label.to_owned(),
        level: amount,
        median,
        range: Some(Interval {
            low: median * 0.98,
            high: median * 1.01,
        }),
        runs,
        ..Level::default()
    };
    level.metrics.received_bps = median;
    level.metrics.sent_bps = Some(median);
    level.metrics.cpu_client_percent = Some(40.0);
    level.metrics.cpu_server_percent = Some(99.0);
    level.metrics.retransmits = Some(12.0);
    level.metrics.rtt_us = Some(210.0);

    level
}

fn run(level: &str, value: f64) -> Run {
    let metrics = RunMetrics {
        received_bps: value,
        cpu_client_percent: Some(40.0),
        ..RunMetrics::default()
    };
    Run {
        levels: vec![level.to_owned()],
        started_s: 1.5,
        is_warm_up: false,
        outcome: Ok(Observation { value, metrics }),
    }
}

fn sweep() -> Sweep {
    let setting = [("streams".to_owned(), "10".to_owned())].into();
    let answer = Recommendation::Use {
        leader: Leader {
            setting,
            value: 288e9,
            metrics: RunMetrics::default(),
            command: "iperf3 -c 192.0.2.7 -O 1 -t 3 -P 10".to_owned(),
        },
        interval: Interval {
            low: 285e9,
            high: 291e9,
        },
    };
    let client = HostIdentity {
        name: Some("lab1".to_owned()),
        program: Some("linerate 0.1.0".to_owned()),
        kernel: Some("6.1.0".to_owned()),
    };
    Sweep {
        plan: plan(),
        provenance: Provenance {
            started_at: "2026-11-23T13:40:00Z".to_owned(),
            client,
            server: HostIdentity::default(),
        },
        is_client_cpu_only: false,
        estimate: Cost::new(58, 261.0),
        cost: Cost::new(46, 207.4),
        client_cores: Some(16),
        server_cores: None,
        answer,
        factors: vec![streams()],
        in_flight_share: Some(0.001),
        run_time_s: None,
        drift_ratio: None,
        is_cut_short: false,
        ended_by: None,
    }
}

fn plan() -> SweepPlan {
    SweepPlan {
        host: "192.0.2.7".to_owned(),
        port: 5201,
        objective: Objective::Throughput,
        factors: vec![PlannedFactor {
            name: "streams".to_owned(),
            levels: "1..20".to_owned(),
        }],
        seed: 1,
        repetitions: 3,
        time_s: 3,
        omit_s: 1,
        budget_ns: 900_000_000_000,
        confidence: 0.95,
        tolerance: 0.03,
        ..SweepPlan::default()
    }
}

fn streams() -> FactorResult {
    let levels = vec![
        level("1", 1, 33e9, 3),
        level("10", 10, 288e9, 5),
        level("11", 11, 286e9, 5),
        level("20", 20, 163e9, 3),
    ];
    let failed = FailedLevel {
        level: "64".to_owned(),
        runs: 3,
        error: "too many streams".to_owned(),
    };
    let saturated = "one CPU of the server is fully used (99 %) by one stream";
    let below = Degradation {
        side: PlateauSide::Below,
        edge: 1,
        worst: 0,
        change_percent: -88.5,
        reasons: vec![Reason::new(ReasonName::CoreSaturated, saturated)],
    };
    let not_known = "not known; not reported: number of CPUs of the server";
    let above = Degradation {
        side: PlateauSide::Above,
        edge: 2,
        worst: 3,
        change_percent: -43.4,
        reasons: vec![Reason::new(ReasonName::NotKnown, not_known)],
    };

    FactorResult {
        name: "streams".to_owned(),
        is_amount: true,
        levels,
        best: 1,
        plateau: 1..=2,
        advised: 1,
        is_default: false,
        ties: Vec::new(),
        lighter: None,
        excess_max: None,
        confidence: 0.98,
        spared: Vec::new(),
        failed: vec![failed],
        limited: 1,
        limits: Vec::new(),
        degradations: vec![below, above],
    }
}

fn runs() -> Vec<Run> {
    vec![
        run("1", 33e9),
        Run {
            levels: vec!["20".to_owned()],
            started_s: 6.0,
            is_warm_up: false,
            outcome: Err(RunError::Failed("refused, \"<b>no</b>\"".to_owned())),
        },
    ]
}

/// The whole report.
fn long(sweep: &Sweep) -> String {
    text(sweep, true, Style::PLAIN)
}

/// What fits a terminal.
fn brief(sweep: &Sweep) -> String {
    let shown = text(sweep, false, Style::UNSTYLED);
    let lines: Vec<&str> = shown.lines().collect();
    let is_narrow = |line: &&str| line.chars().count() <= 80 || line.starts_with("Do ");
    assert!(lines.len() <= 14 && lines.iter().all(is_narrow), "{shown}");

    shown
}

#[test]
fn short_text_has_the_answer_the_levels_the_reason_and_the_command() {
    assert_expected_in(
        env!("CARGO_MANIFEST_DIR"),
        "sweep/brief.txt",
        &brief(&sweep()),
    );

    let mut sweep = sweep();
    sweep.factors[0].levels = (1..=64)
        .map(|streams| level(&streams.to_string(), streams, 1e9, 3))
        .collect();
    (sweep.factors[0].advised, sweep.factors[0].plateau) = (39, 36..=41);
    sweep.drift_ratio = Some(0.8);
    sweep.is_cut_short = true;
    sweep.ended_by = Some("interrupted".repeat(20));

    let shown = brief(&sweep);
    for part in [
        "     *40 ",
        "      37 ",
        "      42 ",
        "      64 ",
        "Note     ",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn short_text_of_several_factors_has_a_row_for_each() {
    let mut sweep = sweep();
    let length = FactorResult {
        name: "length".to_owned(),
        levels: vec![level("128K", 131_072, 288e9, 6)],
        best: 0,
        plateau: 0..=0,
        advised: 0,
        confidence: 0.0,
        failed: Vec::new(),
        limited: 0,
        degradations: Vec::new(),
        ..streams()
    };
    sweep.factors.push(length);

    let shown = brief(&sweep);
    for part in [
        "  streams  *10    288 Gbit/s  1 (-88 %)  -",
        "  length   *128K  288 Gbit/s  -          -",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn the_text_begins_with_the_answer() {
    assert_expected_in(
        env!("CARGO_MANIFEST_DIR"),
        "sweep/text.txt",
        &long(&sweep()),
    );
    let blocks = text(&sweep(), true, Style::UNSTYLED);
    assert!(blocks.contains("   1 ████▋ 33.0 Gbit/s\n"), "{blocks}");
}

#[test]
fn remarks_qualify_the_answer() {
    let mut sweep = sweep();
    sweep.answer = Recommendation::Inconclusive {
        reason: "runs differ too much".to_owned(),
        leader: None,
    };
    sweep.drift_ratio = Some(0.8);
    sweep.is_cut_short = true;
    sweep.ended_by = Some("interrupted\u{1b}[31m".to_owned());
    sweep.plan.objective = Objective::CpuPerByte;
    sweep.is_client_cpu_only = true;

    let text = long(&sweep);
    let one_line = text.replace('\n', " ");
    for part in [
        "Inconclusive: runs differ too much ",
        "late runs differ from early ones by -20 %",
        "The sweep ended early: interrupted\u{fffd}[31m",
        "The budget of 15:00 ended before all planned runs",
        "values count the client's alone",
    ] {
        assert!(one_line.contains(part), "{part}: {text}");
    }

    assert!(
        !text.contains("plateau") && !text.contains("plain iperf3"),
        "{text}"
    );
    sweep.factors[0].failed.clear();
    sweep.factors[0].degradations.clear();

    let text = long(&sweep);
    assert!(
        !text.contains("\nstreams\n"),
        "a heading without text: {text}"
    );
}

#[test]
fn headline_qualifies_runs_that_are_too_short_for_the_queues_of_the_path() {
    let mut sweep = sweep();
    sweep.plan.time_s = 1;
    sweep.in_flight_share = Some(0.04);

    let text = long(&sweep);
    let headline = text
        .split("\n\n")
        .next()
        .unwrap_or_default()
        .replace('\n', " ");
    assert!(
        headline.contains("runs of 1 s are short: 4 % of the data was in flight"),
        "{headline}"
    );
    assert!(headline.contains("--time 2 makes it 3 %"), "{headline}");
}

#[test]
fn where_no_level_is_better_the_default_is_enough() {
    let mut sweep = sweep();
    let factor = &mut sweep.factors[0];
    factor.levels[0] = level("auto", 0, 288e9, 9);
    (factor.plateau, factor.advised, factor.degradations) = (1..=3, 0, Vec::new());
    (factor.is_default, factor.ties) = (true, vec![1, 2]);

    let text = long(&sweep);
    assert!(
        text.contains("10 to 20: no clear gain over auto (up to 3 % counts as none)\n"),
        "{text}"
    );
    assert!(
        text.starts_with("Use 10 streams (the default): received 288 Gbit/s"),
        "{text}"
    );
    assert!(!text.contains("plateau"), "{text}");
}

#[test]
fn answer_has_the_delay_and_the_retransmits_of_what_is_advised_and_of_what_is_not() {
    let mut sweep = sweep();
    let mut metrics = RunMetrics::default();
    (metrics.rtt_us, metrics.retransmits) = (Some(8060.0), Some(0.0));

    if let Recommendation::Use { leader, .. } = &mut sweep.answer {
        leader.metrics = metrics;
    }

    let factor = &mut sweep.factors[0];
    factor.levels = vec![level("1", 1, 38.3e6, 6), level("4", 4, 38.2e6, 3)];
    factor.levels[0].metrics = metrics;
    (
        factor.levels[1].metrics.rtt_us,
        factor.levels[1].metrics.retransmits,
    ) = (Some(69e3), Some(1.0));
    (
        factor.plateau,
        factor.advised,
        factor.best,
        factor.degradations,
    ) = (0..=1, 0, 0, Vec::new());
    (factor.is_default, factor.ties, factor.spared) =
        (true, vec![1], vec!["8".to_owned(), "16".to_owned()]);

    let text = unwrapped(&long(&sweep));
    assert!(
        text.contains("95 % confidence), round trip 8.06 ms, 0 retransmits streams"),
        "{text}"
    );
    let costs = "at 4: round trip 69.0 ms, 1 retransmit; at 1: round trip 8.06 ms, 0 retransmits 8 \
                 to 16 were";
    assert!(text.contains(costs), "{text}");
    assert!(
        text.contains("8 to 16 were not run: doubling twice gave no gain"),
        "{text}"
    );
}

#[test]
fn choices_that_are_as_good_are_named_as_ties() {
    let mut sweep = sweep();
    let factor = &mut sweep.factors[0];
    factor.levels = vec![
        level("reno", 0, 38.3e6, 3),
        level("bbr", 1, 38.3e6, 6),
        level("cubic", 2, 38.3e6, 3),
    ];
    (
        factor.is_amount,
        factor.advised,
        factor.best,
        factor.plateau,
    ) = (false, 1, 0, 0..=0);
    (factor.is_default, factor.ties, factor.degradations) = (true, vec![0, 2], Vec::new());

    let text = unwrapped(&long(&sweep));
    assert!(
        text.contains("; reno and cubic tie with it streams"),
        "{text}"
    );
    assert!(
        text.contains("reno, cubic: no clear gain over bbr"),
        "{text}"
    );
}

#[test]
fn where_every_level_loses_too_much_none_is_advised() {
    let mut sweep = sweep();
    sweep.plan.objective = Objective::LowLoss;
    sweep.answer = Recommendation::Unmet {
        reason: "no rate from 1 to 20 has less than 0.1 % loss".to_owned(),
    };

    for level in &mut sweep.factors[0].levels {
        (level.median, level.range) = (
            0.0,
            Some(Interval {
                low: 0.0,
                high: 0.0,
            }),
        );
    }

    sweep.factors[0].degradations.clear();
    let text = long(&sweep);
    assert!(
        text.starts_with("No rate from 1 to 20 has less than 0.1 % loss\n"),
        "{text}"
    );
    assert!(
        !text.contains('*') && !text.contains("plain iperf3"),
        "{text}"
    );
    assert!(
        text.contains("no level is advised") && !text.contains("much lost to too much"),
        "{text}"
    );
}

/// The text with one space between words.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn csv_has_one_line_per_run() {
    assert_eq!(
        csv(&sweep(), &runs()),
        "run,started_s,warm_up,streams,value_received_bps,received_bps,sent_bps,cpu_client_percent,cpu_server_percent,retransmits,\
         rtt_us,lost_percent,started_at,client,server,error\r\n\
         0,1.500,false,1,33000000000,33000000000,,40,,,,,2026-11-23T13:40:00Z,\"lab1, linerate \
         0.1.0, kernel 6.1.0\",\
         192.0.2.7 (version not reported),\r\n\
         1,6.000,false,20,,,,,,,,,2026-11-23T13:40:00Z,\"lab1, linerate 0.1.0, kernel 6.1.0\",\
         192.0.2.7 (version not reported),\"refused, \"\"<b>no</b>\"\"\"\r\n"
    );
}

#[test]
fn html_is_one_file_without_script_and_nothing_in_it_is_markup_of_others() {
    let mut sweep = sweep();
    sweep.plan.host = "<script>alert(1)</script>".to_owned();
    let html = html(&sweep, &runs());
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"));

    for foreign in ["<script", "<b>", "http:", "https:", "src=", "href="] {
        assert!(!html.contains(foreign), "{foreign}");
    }

    assert!(html.contains("&lt;script&gt;") && html.contains("refused, &quot;&lt;b&gt;no"));
    assert!(html.contains("prefers-color-scheme: dark"));
    assert_eq!(html.matches("class=\"ring").count(), 2, "one in each width");
    assert_eq!(html.matches("class=\"whisker").count(), 2 * 4);
}

#[test]
fn picture_has_loss_and_round_trip_and_thirty_amounts_by_their_ratios() {
    let mut sweep = sweep();
    let factor = &mut sweep.factors[0];
    factor.levels = (1..=30)
        .map(|streams| level(&streams.to_string(), streams, 1e9, 3))
        .collect();
    factor.levels.insert(0, level("auto", 0, 1e9, 3));

    let html = html(&sweep, &runs());
    let charts: Vec<&str> = html
        .split("<svg")
        .skip(1)
        .map(|chart| chart.split("</svg>").next().unwrap_or_default())
        .collect();

    assert_eq!(charts.len(), 2, "a drawing for each width");
    for name in ["received<", "retransmits<", "round trip<"] {
        assert!(charts[0].contains(name), "{name}");
    }

    let labels = charts[0]
        .split("text-anchor=\"middle\">")
        .skip(1)
        .filter_map(|rest| rest.split("</text>").next());
    let levels: Vec<&str> = labels
        .filter(|label| *label == "auto" || label.parse::<u32>().is_ok())
        .collect();
    assert!(
        levels.starts_with(&["auto", "1", "2"]) && levels.len() < 20,
        "{levels:?}"
    );

    let mut lines = charts[0].split("class=\"line main h0\" d=\"M");
    let line = lines.nth(1).and_then(|rest| rest.split('"').next());
    let x: Vec<f64> = line
        .expect("a line")
        .split('l')
        .filter_map(|step| step.split(' ').next()?.parse().ok())
        .scan(0.0, |at, step: f64| {
            *at += step;
            Some(*at)
        })
        .collect();
    // As far from 1 to 2 as from 8 to 16.
    assert!(((x[1] - x[0]) - (x[15] - x[7])).abs() < 0.3, "{x:?}");

    assert!(
        long(&sweep)
            .lines()
            .any(|line| line.trim_start().starts_with("auto ####")),
        "a bar"
    );
}

/// A trial with the summary of one stream.
fn trial(no: u32, streams: &str, reason: Option<&str>) -> Trial {
    let received = EndpointTotals::new(4_000_000_000, 1_000_000_000, None);
    let stream = StreamSummary {
        sender: Some(received),
        receiver: Some(received),
        ..StreamSummary::default()
    };

    let summary = Some(Summary {
        streams: vec![stream],
        ..Summary::default()
    });
    let mut trial = Trial::complete(1_000_000_000);
    trial.no = no;
    trial.factors = [("streams".to_owned(), streams.to_owned())].into();
    trial.is_warm_up = no == 0;
    trial.reason = reason.map(str::to_owned);
    trial.started_ns = 1_500_000_000;

    let detail = TestDetail {
        summary,
        ..TestDetail::default()
    };
    trial.detail = Some(Detail::Test(Box::new(detail)));
    trial
}

#[test]
fn reports_of_a_stored_sweep_are_those_of_the_sweep() {
    let trials = vec![trial(0, "1", None), trial(1, "20", Some("refused"))];
    let stored =
        |text: &str| serde_json::from_str::<(Sweep, Vec<Trial>)>(text).expect("what was written");
    let (again, trials_again) = stored(&serde_json::to_string(&(sweep(), &trials)).expect("JSON"));
    assert_eq!((&again, &trials_again), (&sweep(), &trials));

    let (runs, runs_again) = (
        recorded_runs(&sweep(), &trials),
        recorded_runs(&again, &trials_again),
    );
    assert_eq!(html(&sweep(), &runs), html(&again, &runs_again));
    let csv = csv(&again, &runs_again);
    assert!(
        csv.contains("\r\n0,1.500,true,1,32000000000,32000000000,"),
        "{csv}"
    );
    assert!(
        csv.contains("\r\n1,1.500,false,20,,,") && csv.trim_end().ends_with(",refused"),
        "{csv}"
    );
}

#[test]
fn page_of_a_record_has_its_answer_and_its_reports() {
    let of = |no: u32| {
        let mut trial = Trial::complete(10_000_000_000);
        trial.no = no;
        trial.factors = [("streams".to_owned(), (1 + no).to_string())].into();
        let rate = 300e6 * f64::from(1 + no);
        trial.measures = vec![Measure::new(MeasureName::ReceivedBps, Way::Forward, rate)];
        trial
    };
    let mut record = RunRecord::new(
        RunId::new(1_790_000_000_000, [7; 10]),
        RunKind::Sweep,
        Body::Sweep(Some(Box::new(sweep()))),
        "2026-09-21T14:13:20.000Z".to_owned(),
        1_790_000_000_000,
    );
    record.state = RunState::Complete;
    record.trials = (0..2).map(of).collect();

    let page = record_html(std::slice::from_ref(&record), TimeRange::default(), RECORDS);
    assert!(
        page.contains("Use 10 streams: received 288 Gbit/s"),
        "{page}"
    );
    assert!(
        page.contains("plateau: 10 to 11") && page.contains("<figcaption>Received by streams"),
        "{page}"
    );
    assert!(!page.contains("best of 2 settings"), "{page}");

    let anonymous = record_html(&[anonymized(&record)], TimeRange::default(), RECORDS);
    assert!(
        !anonymous.contains("192.0.2.7") && anonymous.contains("Use 10 streams"),
        "{anonymous}"
    );
}
