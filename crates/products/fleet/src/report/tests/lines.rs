//! Lines before and during a run, and the check.

use std::time::Duration;

use crate::conclude::FleetProgress;
use crate::plan::estimate;
use linerate_model::fleet::{PairDirection, Round};

use super::fixtures::{host, hosts, incast, mesh};
use crate::report::{
    Announced, CheckReport, CheckRow, CheckState, FleetLive, PairRate, announcement, check_text,
    live, progress_line,
};
use linerate_document::Glyphs;
use linerate_document::Style;
use linerate_document::expected::assert_expected_in;

#[test]
fn announcement_has_amount_and_time() {
    let line = |plan: &crate::plan::FleetPlan, bytes_max| {
        let alive = plan.hosts.iter().map(|host| host.id.clone()).collect();
        let estimate = estimate(plan, &plan.tasks(), &alive);
        let test_time = Duration::from_secs(2);
        announcement(
            &Announced {
                plan,
                estimate,
                test_time,
                bytes_max,
                host_bps_max: Some(1e9),
            },
            Style::PLAIN,
        )
    };
    assert_eq!(
        line(&mesh(8).plan, Some(14_000_000_000)),
        "mesh, 8 hosts, 56 cells, both ways at once, 7 rounds of 2 s: about 0:18, up to 13.0 GiB \
         in all, at most 1 Gbit/s per host"
    );
    let mut one_way = mesh(3).plan;
    one_way.direction = PairDirection::OneWay;
    assert_eq!(
        line(&one_way, None),
        "mesh, 3 hosts, 6 cells, one way at a time, 6 rounds of 2 s: about 0:16, amount of data \
         not limited, at most 1 Gbit/s per host"
    );
    assert!(
        line(&incast(4).plan, None)
            .starts_with("incast into nas, 5 hosts, 10 cells, 6 rounds of 2 s: ")
    );
}

fn progress() -> FleetProgress {
    let pairs =
        [("h1", "h6"), ("h2", "h5"), ("h7", "h8"), ("h3", "h4")].map(|(a, b)| (host(a), host(b)));
    let tasks = mesh(8).plan.tasks_of(&pairs, 0);
    let round = Round::new(tasks, Default::default());

    FleetProgress {
        round,
        rounds_done: 2,
        rounds_planned: 7,
        cells_left: 32,
        left: Duration::from_secs(12),
    }
}

fn rates() -> Vec<PairRate> {
    [("h1", "h6", 950e6), ("h2", "h5", 951e6), ("h7", "h8", 90e6)]
        .into_iter()
        .flat_map(|(a, b, bps)| [(a, b, bps), (b, a, bps)])
        .map(|(source, sink, bps)| PairRate {
            source: host(source),
            sink: host(sink),
            bps,
        })
        .collect()
}

#[test]
fn live_line_has_the_slowest_pair_first_and_no_rate_for_one_without_a_sample() {
    let (progress, rates) = (progress(), rates());
    let now = FleetLive {
        progress: &progress,
        rates: &rates,
        cells_done: 24,
        cells_planned: 56,
        suspects: 1,
    };

    let blocks = Style {
        glyphs: Glyphs::Blocks,
        ..Style::PLAIN
    };
    assert_eq!(
        live(&now, blocks),
        "round 3/7  h7⇄h8 0.18  h1⇄h6 1.90  h2⇄h5 1.90  h3⇄h4 - Gbit/s  24/56 cells  1 suspect  \
         0:12 left"
    );
    assert_eq!(
        live(
            &now,
            Style {
                columns: 90,
                ..Style::PLAIN
            }
        ),
        "round 3/7  h7<->h8 0.18 Gbit/s  3 other pairs  24/56 cells  1 suspect  0:12 left"
    );

    for columns in 1..100 {
        let line = live(
            &now,
            Style {
                columns,
                ..Style::PLAIN
            },
        );
        assert!(line.chars().count() < columns, "{columns}: {line}");
    }

    assert_eq!(
        progress_line(&now, Style::PLAIN),
        "round 3/7  slowest h7<->h8 0.18 Gbit/s  24/56 cells  1 suspect  0:12 left\n"
    );
    let now = FleetLive {
        rates: &[],
        suspects: 0,
        ..now
    };
    assert_eq!(
        progress_line(&now, Style::PLAIN),
        "round 3/7  24/56 cells  0:12 left\n"
    );
}

fn row(name: &str, address: &str) -> CheckRow {
    CheckRow {
        host: host(name),
        state: CheckState::Ready,
        version: Some("0.2.0".to_owned()),
        clock_ns: Some((4_000, 40_000)),
        address: Some(address.to_owned()),
        device: Some("eth1".to_owned()),
        port: Some(5201),
        link_bps: Some(1e9),
        rtt_ns: Some(220_000),
        notes: Vec::new(),
    }
}

fn check() -> CheckReport {
    let nas = CheckRow {
        clock_ns: Some((12_000, 48_000)),
        link_bps: Some(10e9),
        rtt_ns: None,
        ..row("nas", "10.0.0.7")
    };
    let notes = vec!["LNK-01".to_owned(), "the others have 1 Gbit/s".to_owned()];
    let slow = CheckRow {
        link_bps: Some(100e6),
        notes,
        ..row("pc07", "10.0.0.107")
    };

    let notes = vec!["5201 filtered: 18 of 18 partners time out".to_owned()];
    let blocked = CheckRow {
        state: CheckState::Blocked,
        clock_ns: Some((-21_000_000, 300_000)),
        rtt_ns: None,
        notes,
        ..row("pc13", "10.0.0.113")
    };

    let gone = CheckRow {
        state: CheckState::Unreachable,
        version: None,
        clock_ns: None,
        address: None,
        device: None,
        port: None,
        link_bps: None,
        rtt_ns: None,
        notes: vec!["ssh: no answer within 3 s".to_owned()],
        ..row("pc19", "")
    };
    CheckReport {
        carrier: "ssh".to_owned(),
        paths: vec!["phys".to_owned()],
        rows: vec![nas, slow, blocked, gone],
        next: Some("open port 5201 on pc13 for 10.0.0.0/24, then fleet check again".to_owned()),
    }
}

#[test]
fn check_is_a_row_for_each_host_and_the_next_step() {
    assert_expected_in(
        env!("CARGO_MANIFEST_DIR"),
        "check.txt",
        &check_text(&check(), Style::PLAIN),
    );
}

#[test]
fn check_of_many_hosts_shows_those_that_need_attention() {
    let mut many = check();
    many.rows
        .extend(hosts(40).iter().map(|host| row(host.as_str(), "10.0.0.1")));
    many.next = None;

    let shown = check_text(&many, Style::PLAIN);
    assert!(
        shown.starts_with("44 hosts: 42 ready, 1 blocked, 1 unreachable; "),
        "{shown}"
    );
    assert!(
        shown.contains("\n  41 rows more: ready, without a note\n") && !shown.contains("h17"),
        "{shown}"
    );
}

#[test]
fn notes_of_hosts_act_on_no_terminal() {
    let mut evil = check();
    for row in &mut evil.rows {
        row.notes = vec!["\u{1b}[2J\u{202e}\r\nready".to_owned()];
        row.version = Some("\u{9b}1".to_owned());
        row.device = Some("eth\n0".to_owned());
    }

    evil.carrier = "\u{1b}]0;x".to_owned();
    let blocks = Style {
        glyphs: Glyphs::Blocks,
        ..Style::PLAIN
    };
    let shown = check_text(&evil, blocks);
    assert!(
        !shown.contains(['\u{1b}', '\u{202e}', '\u{9b}', '\r']),
        "{shown:?}"
    );
    assert_eq!(
        shown
            .lines()
            .filter(|line| line.trim_start().starts_with("ready"))
            .count(),
        0,
        "{shown}"
    );
}
