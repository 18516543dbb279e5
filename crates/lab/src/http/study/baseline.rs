//! Whether the path is clean, by the TCP tests.

use linerate_model::http::Baseline;

use crate::http::units::{percent, rate_name};

/// Segments may be sent again for this share of all.
const RETRANSMITS_MAX: f64 = 0.001;
/// Least share of what the link carries.
const GOODPUT_MIN: f64 = 0.9;

/// Defects of a path that TCP alone shows; empty for a clean one. With a defect, results of HTTP describe the path more
/// than the server.
#[must_use]
pub fn path_defects(baseline: &[Baseline]) -> Vec<String> {
    baseline.iter().flat_map(of_test).collect()
}

fn of_test(test: &Baseline) -> Vec<String> {
    let name = name(test);
    let lost = test.retransmit_share.filter(|share| *share > RETRANSMITS_MAX).map(|share| {
        format!("{name}: {} of the segments sent again, more than {}", percent(share), percent(RETRANSMITS_MAX))
    });
    let slow = test.of_theory.filter(|share| *share < GOODPUT_MIN).map(|share| {
        let rate = rate_name(test.goodput_bps);
        format!("{name}: {rate}, {} of what the link carries, less than {}", percent(share), percent(GOODPUT_MIN))
    });
    lost.into_iter().chain(slow).collect()
}

fn name(test: &Baseline) -> String {
    let sender = if test.is_reverse { "server to client" } else { "client to server" };
    let streams = if test.streams == 1 { "stream" } else { "streams" };
    format!("{sender}, {} {streams}", test.streams)
}

/// The verdict on the path in one sentence; `None` where TCP was not tested.
pub(super) fn sentence(baseline: &[Baseline]) -> Option<String> {
    let best = baseline.iter().max_by(|a, b| {
        let key = |test: &Baseline| (test.is_reverse, test.goodput_bps);
        let ((a_reverse, a_bps), (b_reverse, b_bps)) = (key(a), key(b));
        a_reverse.cmp(&b_reverse).then(a_bps.total_cmp(&b_bps))
    })?;
    let share =
        best.of_theory.map_or_else(String::new, |share| format!(", {} of what the link carries", percent(share)));
    let reached = format!("TCP alone reaches {} ({}){share}", rate_name(best.goodput_bps), name(best));
    let defects = path_defects(baseline);
    Some(match defects.first() {
        None => format!("The path is clean: {reached}."),
        Some(first) => format!("The path is not clean: {reached}; {first}. Find out why with `linerate doctor`."),
    })
}
