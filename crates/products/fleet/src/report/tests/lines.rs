//! Lines before and during a run, and the check.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::conclude::FleetProgress;
use crate::plan::{FleetPlan, PlannedRun};
use linerate_model::fleet::PairDirection;

use super::fixtures::{incast, mesh};
use crate::fixtures::{host, hosts};
use crate::report::{
    Announced, CheckReport, CheckRow, CheckState, announcement, check_text, progress_line,
};
use linerate_document::expected::assert_expected_in;
use linerate_document::{Glyphs, Style};

#[test]
fn announcement_has_amount_and_time() {
    let line = |plan: &FleetPlan, bytes_max| {
        let alive = plan.hosts.iter().map(|host| host.id.clone()).collect();
        let estimate = PlannedRun::new(plan.clone()).estimate(&BTreeSet::new(), &alive);
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

#[test]
fn progress_line_has_rounds_cells_and_time() {
    let progress = FleetProgress {
        rounds_done: 2,
        rounds_planned: 7,
        cells_left: 32,
        left: Duration::from_secs(12),
    };
    assert_eq!(
        progress_line(&progress, (24, 56), Style::PLAIN),
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
        carrier: "ssh",
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

    evil.carrier = "\u{1b}]0;x";
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
