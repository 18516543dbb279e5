//! Reports of fleet runs as tests read them.

use linerate_interop::{FleetLab, TIMEOUT};
use serde_json::Value;

/// Goodput of TCP through tbf(8) at 1 Gbit/s, which counts no preamble, frame check sequence and
/// gap: 1448 of 1514 bytes, and its burst.
pub(super) const GIGABIT_MBPS: std::ops::RangeInclusive<f64> = 900.0..=1_000.0;

pub(super) fn cells(report: &Value) -> &Vec<Value> {
    report["cells"].as_array().expect("cells")
}

pub(super) fn mbps(cell: &Value) -> f64 {
    let goodput = cell["outcome"]["measured"]["goodput_bps"].as_f64();
    goodput.unwrap_or_else(|| panic!("no result: {cell}")) / 1e6
}

/// Ids and subjects, strongest first.
pub(super) fn findings(report: &Value) -> Vec<(String, String)> {
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    let all = report["findings"].as_array().expect("findings").iter();
    all.map(|finding| (text(finding, "id"), text(finding, "subject")))
        .collect()
}

/// Agents and workers end with their connections.
#[track_caller]
pub(super) fn expect_nothing_left(lab: &FleetLab) {
    lab.expect_nothing_left(TIMEOUT);
}
