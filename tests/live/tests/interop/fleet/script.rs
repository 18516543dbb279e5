//! Goal: hosts on which nothing can be installed are tested with the iperf3 that they have. Method:
//! a shell over ssh on hosts in namespaces; the stock iperf3 of Debian.

use linerate_interop::{FleetLab, HostLink};
use serde_json::Value;

use super::report::{GIGABIT_MBPS, cells, expect_nothing_left, findings, mbps};

#[test]
fn timed_mesh_of_hosts_with_stock_iperf3_is_complete_and_leaves_nothing() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 4]) else {
        return;
    };
    let report = lab.report(&["mesh", "-t", "2", "-O", "0", "--carrier", "script"]);
    assert_eq!(cells(&report).len(), 12, "{report}");

    for cell in cells(&report) {
        assert!(GIGABIT_MBPS.contains(&mbps(cell)), "{cell}");
    }

    assert_starts_together(&report);
    assert_eq!(findings(&report), [], "{report}");
    expect_nothing_left(&lab);
}

/// Tests of a round whose commands leave together start together: within 50 ms, and the 10 ms to
/// which iperf3 rounds its intervals.
#[track_caller]
fn assert_starts_together(report: &Value) {
    const SPREAD_MAX_NS: u64 = 60_000_000;

    /// Rounds are more than a second apart, and clocks of one host are one.
    const SAME_ROUND_NS: u64 = 500_000_000;

    let time = |cell: &Value, name: &str| {
        cell["outcome"]["measured"]["start"][name]
            .as_u64()
            .expect("a start")
    };
    let mut starts: Vec<(u64, u64)> = cells(report)
        .iter()
        .map(|cell| (time(cell, "planned_ns"), time(cell, "actual_ns")))
        .collect();
    starts.sort_unstable();

    let rounds: Vec<_> = starts
        .chunk_by(|(one, _), (next, _)| next - one < SAME_ROUND_NS)
        .collect();
    assert_eq!(rounds.len(), 3, "{starts:?}");

    for round in rounds {
        let actual = || round.iter().map(|(_, actual)| *actual);
        let spread = actual().max().expect("starts") - actual().min().expect("starts");
        assert!(spread <= SPREAD_MAX_NS, "{spread} ns: {round:?}");
    }
}
