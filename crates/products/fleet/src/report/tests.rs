//! Whole reports of fleets, each compared with a text that a reviewer has read.

mod fixtures;
mod lines;

use linerate_document::{Glyphs, record};
use linerate_model::finding::Evidence;
use linerate_model::fleet::{CellFlag, CellOutcome, FleetReport, NotRun, NotRunReason};
use linerate_model::record::{HostPart, RunId, RunKind, RunState};
use serde_json::Value;

use super::*;
use crate::conclude::trials;
use crate::fixtures::host;
use crate::spec::Topology;
use fixtures::{incast, mesh, racked};
use linerate_document::expected::assert_expected_in;

/// A mesh of four hosts, of which `h3` is slow.
fn slow_host() -> FleetReport {
    mesh(4).slow("h3", 90e6).run()
}

/// What a terminal of 80 columns shows.
fn short(report: &FleetReport) -> String {
    let shown = text(report, false, Style::PLAIN);
    let is_narrow = |line: &str| line.chars().count() <= 80;
    let lines_max = report.header.hosts.len() + 8;
    assert!(
        shown.lines().count() <= lines_max && shown.lines().all(is_narrow),
        "{shown}"
    );

    shown
}

fn long(report: &FleetReport) -> String {
    text(report, true, Style::PLAIN)
}

#[test]
fn healthy_mesh_of_8_hosts() {
    let report = mesh(8).run();
    assert_expected_in(env!("CARGO_MANIFEST_DIR"), "healthy.txt", &short(&report));
    assert_expected_in(
        env!("CARGO_MANIFEST_DIR"),
        "healthy-verbose.txt",
        &text(&report, true, Style::PLAIN),
    );
}

#[test]
fn mesh_with_a_host_at_100_megabits() {
    let report = mesh(8).slow("h7", 90e6).run();
    assert_expected_in(env!("CARGO_MANIFEST_DIR"), "slow-host.txt", &short(&report));
}

#[test]
fn rates_without_a_nominal_rate_have_a_unit() {
    let mut fleet = mesh(4).slow("h2", 941e6);
    (fleet.nominal_bps, fleet.line_bps) = (None, 9.41e9);
    let report = fleet.run();
    assert_expected_in(
        env!("CARGO_MANIFEST_DIR"),
        "unknown-link.txt",
        &short(&report),
    );
}

#[test]
fn server_without_an_agent_has_a_remark() {
    let mut fleet = mesh(3);
    fleet.plan.hosts[0].is_target_only = true;
    let remark =
        "h1 is a server without an agent: facts, CPU and clock are not known, one test at a time";
    let text = short(&fleet.run());
    assert!(
        text.split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .contains(remark),
        "{text}"
    );
}

#[test]
fn incast_with_a_slow_sender() {
    assert_expected_in(
        env!("CARGO_MANIFEST_DIR"),
        "incast.txt",
        &short(&incast(8).slow("h3", 96e6).run()),
    );
}

#[test]
fn incast_and_fanout_of_one_host() {
    let mut fleet = incast(8).slow("h3", 96e6);
    fleet.plan.topology = Topology::IncastAndFanout(host("nas"));
    assert_expected_in(
        env!("CARGO_MANIFEST_DIR"),
        "both-ladders.txt",
        &short(&fleet.run()),
    );
}

#[test]
fn two_racks_with_a_slow_uplink() {
    let report = racked(8, 4, 1e9).run();
    assert_expected_in(env!("CARGO_MANIFEST_DIR"), "racks.txt", &short(&report));
    assert_expected_in(
        env!("CARGO_MANIFEST_DIR"),
        "racks.html",
        &page(&report).document(NAME).elements(),
    );
}

#[test]
fn thirty_hosts_are_effects_racks_and_the_slowest_pairs() {
    let report = racked(30, 10, f64::INFINITY).slow("h7", 90e6).run();
    assert_expected_in(env!("CARGO_MANIFEST_DIR"), "large.txt", &short(&report));
    assert!(
        html(&report).contains("<th scope=\"col\">h30</th>"),
        "a page has all cells of up to 64 hosts"
    );

    let page = html(&racked(70, 35, f64::INFINITY).slow("h7", 90e6).run());
    assert!(
        page.contains("medians by rack") && !page.contains("<th scope=\"col\">h30</th>"),
        "{page}"
    );
}

#[test]
fn cells_without_a_result_have_their_reason_once() {
    let mut report = mesh(6).without("h4").run();
    let mut refused = NotRun::new(NotRunReason::Refused);
    refused.detail = Some("no free port".to_owned());

    let of = |cells: &[linerate_model::fleet::Cell], source: &str, sink: &str| {
        cells
            .iter()
            .position(|cell| cell.task.source.as_str() == source && cell.task.sink.as_str() == sink)
            .expect("planned")
    };
    let at = of(&report.cells, "h1", "h2");
    report.cells[at].outcome = CellOutcome::NotRun(refused);

    let at = of(&report.cells, "h5", "h6");
    if let CellOutcome::Measured(measured) = &mut report.cells[at].outcome {
        measured.flags.push(CellFlag::Implausible);
    }

    report.header.ended = Some(NotRun::new(NotRunReason::Budget));
    report.header.is_control_shared = true;
    let shown = short(&report);
    assert_expected_in(env!("CARGO_MANIFEST_DIR"), "not-run.txt", &shown);

    let row = shown
        .lines()
        .find(|line| line.trim_start().starts_with("h4 "))
        .expect("a row");
    assert!(
        !row.contains(" 0 "),
        "what was not measured is not 0: {row}"
    );
}

#[test]
fn hosts_and_pairs_without_a_result_are_in_the_first_line_with_a_next_step_each() {
    let mut report = mesh(8).slow("h3", 90e6).without("h4").run();
    for cell in &mut report.cells {
        let ends = [cell.task.source.as_str(), cell.task.sink.as_str()];
        if ends == ["h1", "h2"] {
            let mut blocked = NotRun::new(NotRunReason::Failed);
            blocked.detail = Some("unable to connect to server: Connection timed out".to_owned());
            cell.outcome = CellOutcome::NotRun(blocked);
        }
    }

    let shown = short(&report);
    assert_expected_in(env!("CARGO_MANIFEST_DIR"), "missing.txt", &shown);
    let first = shown.split("\n\n").next().unwrap_or_default();
    assert!(
        first
            .replace('\n', " ")
            .ends_with("15 of 56 cells without a result: h4 unreachable; h1 to h2 blocked"),
        "{first}"
    );
    for step in ["Do       h4 unreachable: ", "Do       h1 to h2 blocked: "] {
        assert!(shown.contains(step), "{step}: {shown}");
    }
    assert!(!shown.contains("nothing else"), "{shown}");

    // What is not in the short text.
    let all = long(&report);
    assert!(
        all.contains("// no control connection: h4 (14 cells)"),
        "{all}"
    );
}

#[test]
fn run_without_a_result_is_no_zero() {
    let shown = short(&mesh(2).without("h2").run());
    assert_expected_in(env!("CARGO_MANIFEST_DIR"), "nothing.txt", &shown);
}

#[test]
fn long_names_are_numbered_columns() {
    let mut fleet = mesh(4);
    for host in &mut fleet.plan.hosts {
        host.id = format!("node-{}.rack1.example", host.id)
            .parse()
            .expect("an id");
    }

    assert_expected_in(
        env!("CARGO_MANIFEST_DIR"),
        "long-names.txt",
        &short(&fleet.run()),
    );
}

/// Everything that a host or an inventory may choose.
#[test]
fn text_of_others_acts_neither_on_a_terminal_nor_on_a_page() {
    let evil = "<script>alert(1)</script>\u{1b}[2J\u{202e}\r\n& \"x\"\u{200b}";
    let mut report = racked(8, 4, 1e9).without("h4").run();
    report.header.run_id = Some(evil.to_owned());
    report
        .header
        .ended
        .insert(NotRun::new(NotRunReason::Failed))
        .detail = Some(evil.to_owned());
    report
        .header
        .hosts
        .iter_mut()
        .for_each(|host| host.rack = Some(evil.to_owned()));

    for cell in &mut report.cells {
        cell.task.path = evil.into();
        cell.task.variant = evil.into();
        if let CellOutcome::NotRun(not_run) = &mut cell.outcome {
            not_run.detail = Some(evil.to_owned());
        }
    }

    for finding in &mut report.findings {
        finding.subject = evil.to_owned();
        finding.explanation = evil.to_owned();
        finding.advice = Some(evil.to_owned());
        finding.evidence = vec![Evidence::statement(evil)];
    }

    let coloured = Style {
        is_coloured: false,
        glyphs: Glyphs::Blocks,
        ..Style::PLAIN
    };
    for shown in [text(&report, true, coloured), csv(&report), html(&report)] {
        assert!(
            shown.contains("alert(1)") && !shown.contains(['\u{1b}', '\u{202e}', '\u{200b}']),
            "{shown}"
        );
    }

    let page = html(&report);
    assert!(
        !page.contains("<script") && page.contains("&lt;script&gt;"),
        "{page}"
    );
    assert!(
        text(&report, true, coloured)
            .lines()
            .all(|line| !line.contains('\r'))
    );
}

#[test]
fn json_is_valid_by_its_schema_and_is_read_back() {
    let schema = schemars::schema_for!(FleetReport).to_value();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let facts = |report: FleetReport| {
        [json(&report), serde_json::to_string(&report).expect("JSON")]
            .map(|text| (text, report.clone()))
    };

    let reports = [
        mesh(8).slow("h7", 90e6).run(),
        incast(8).slow("h3", 96e6).run(),
        mesh(6).without("h4").run(),
    ];
    for (text, report) in reports.into_iter().flat_map(facts) {
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["schema"], "linerate.fleet/1");
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(errors, Vec::<String>::new());
        assert_eq!(
            serde_json::from_str::<FleetReport>(&text).expect("a report"),
            report
        );
    }
}

#[test]
fn csv_has_a_line_for_each_cell_and_nothing_for_what_was_not_measured() {
    let report = mesh(4).without("h4").run();
    let text = csv(&report);
    let lines: Vec<&str> = text.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), report.cells.len() + 1);

    let columns = |line: &str| line.split(',').count();
    assert!(
        lines.iter().all(|line| columns(line) == columns(lines[0])),
        "{text}"
    );

    let (measured, not_run) = (
        lines[1],
        lines
            .iter()
            .find(|line| line.starts_with("h1,h4,"))
            .expect("a line"),
    );
    assert_eq!(
        measured,
        "h1,h2,phys,,0,rounds,953000000,1000000000,0,210,,,2000000000,2000100000,,,"
    );
    assert_eq!(*not_run, "h1,h4,phys,,0,rounds,,,,,,,,,,unreachable,");
}

#[test]
fn colour_of_a_cell_is_beside_its_number() {
    let page = html(&mesh(8).slow("h7", 90e6).run());
    assert!(
        page.contains("style=\"--heat:9%\">9</td>")
            && page.contains("style=\"--heat:95%\">95</td>"),
        "{page}"
    );
    // Table and picture, in two widths, colour each pair; a host with itself has no rate.
    assert_eq!(page.matches("--heat:").count(), 3 * 56);
    assert_eq!(page.matches("class=\"cell none\"").count(), 2 * 8);
}

#[test]
fn record_of_a_fleet_has_its_report_and_an_anonymous_one_no_names() {
    let report = slow_host();
    let trials = report.cells.iter().filter_map(trials::trial).collect();
    let inputs = serde_json::json!({ "reach": { "ssh": "admin@secret.mgmt" } });
    let mut run = FleetRun::new(report.header.plan, inputs);
    run.report = Some(Box::new(trials::without_trials(&report)));

    let host = |id: &str, name: &str| HostPart::new(id, name.to_owned());
    let hosts = vec![host("h3", "pc3.example.net"), host("h4", "h4")];
    let mut run_record = RunRecord::new(
        RunId::new(1_790_000_000_000, [7; 10]),
        RunKind::Fleet,
        Body::Fleet(Box::new(run)),
        "2026-09-21T14:13:20.000Z".to_owned(),
        1_790_000_000_000,
    );
    run_record.state = RunState::Complete;
    run_record.trials = trials;
    run_record.hosts = hosts;

    let shown = record_text(&run_record);
    for part in [
        "fleet, mesh, both ways",
        "FLT-01  h3",
        "12 of 12 cells",
        "h3: pc3.example.net",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }

    assert!(record_html(&run_record).contains("FLT-01"));

    let anonymous = record::anonymized(&run_record);
    let json = serde_json::to_string(&anonymous).expect("JSON");

    for secret in ["\"h3\"", "h3:", "pc3", "secret", "admin"] {
        assert!(!json.contains(secret), "{secret}: {json}");
    }

    let shown = record_text(&anonymous);
    assert!(
        shown.contains("FLT-01  host3") && shown.contains("12 of 12 cells"),
        "{shown}"
    );
}

fn record_text(run: &RunRecord) -> String {
    record::text(std::slice::from_ref(run), RECORDS, Style::PLAIN)
}

fn record_html(run: &RunRecord) -> String {
    record::html(
        std::slice::from_ref(run),
        record::TimeRange::default(),
        RECORDS,
    )
}
