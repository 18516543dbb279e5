//! Progress of the test of a path: a line that is replaced, and a line for each finished phase.

use std::time::Duration;

use linerate_document::number::counted;
use linerate_document::style::Style;
use linerate_document::{Glyphs, sparkline};
use linerate_model::numbers::{bytes, clock, rate};
use linerate_model::path::{Delay, FinishedPhase, LoadPhase, PhaseKind};
use linerate_model::stored_name;

use super::{goodput, phases, rows, wording};

/// A phase that runs. All values are measured at this end; what is not known is absent.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseProgress {
    /// The phase.
    pub kind: PhaseKind,
    /// Its number in the test, from 1.
    pub number: u32,
    /// Phases of the test.
    pub count: u32,
    /// Since its start, ns.
    pub elapsed_ns: u64,
    /// Its longest time, ns.
    pub planned_ns: u64,
    /// Payload of the last samples in bit/s, the newest last; of both directions together.
    pub rates_bps: Vec<f64>,
    /// Round-trip times of the last probes in ns, the newest last.
    pub rtts_ns: Vec<i64>,
    /// Streams per direction.
    pub streams: u32,
}

impl PhaseProgress {
    /// The phase of this number that begins, of `count`.
    pub fn new(kind: PhaseKind, number: u32, count: u32, planned: Duration) -> Self {
        Self {
            kind,
            number,
            count,
            elapsed_ns: 0,
            planned_ns: u64::try_from(planned.as_nanos()).unwrap_or(u64::MAX),
            rates_bps: Vec::new(),
            rtts_ns: Vec::new(),
            streams: 0,
        }
    }
}

/// Characters of the bar of time.
const BAR_CHARS: usize = 10;
/// Characters of a curve.
const CURVE_CHARS: usize = 8;

/// `down 4/7 [=====>    ] 3 s left   95.4 Mbit/s ▂▅▇▇▇▇   RTT 112 ms ▁▃▆▇▇▇   4 streams`,
/// without a line end and no longer than the terminal is wide.
pub fn live(now: &PhaseProgress, style: Style) -> String {
    let share = now.elapsed_ns as f64 / now.planned_ns.max(1) as f64;
    let left_s = now.planned_ns.saturating_sub(now.elapsed_ns) as f64 / 1e9;
    let mut parts = vec![format!(
        "{} {}/{} [{}] {left_s:.0} s left",
        now.kind.name(),
        now.number,
        now.count,
        time_bar(share)
    )];

    let curve = |values: &mut dyn DoubleEndedIterator<Item = f64>| {
        sparkline::row(values, CURVE_CHARS, style.glyphs)
    };
    parts.extend(now.rates_bps.last().map(|bps| {
        format!(
            "{:>11} {}",
            rate(*bps),
            curve(&mut now.rates_bps.iter().copied())
        )
    }));
    parts.extend(now.rtts_ns.last().map(|ns| {
        format!(
            "RTT {:>7} {}",
            wording::signed_ns(*ns),
            curve(&mut now.rtts_ns.iter().map(|ns| *ns as f64))
        )
    }));
    parts.extend((now.streams > 0).then(|| counted(now.streams as usize, "stream")));

    // A line that is too long would wrap and could not be replaced.
    style
        .line(&parts.join("   "))
        .chars()
        .take(style.columns.saturating_sub(1))
        .collect()
}

/// `=====>    `
fn time_bar(share: f64) -> String {
    let full = (share.clamp(0.0, 1.0) * BAR_CHARS as f64).round() as usize;
    let head = if full < BAR_CHARS { ">" } else { "" };
    let bar = format!(
        "{}{head}",
        Glyphs::Ascii.bar(share, BAR_CHARS).replace('#', "=")
    );
    format!("{bar:<BAR_CHARS$}")
}

/// A finished phase in one line with its line end, for logs:
/// `down: 95.5 Mbit/s, RTT p50 112 ms (+99.6 ms), 517 RPM`
pub fn finished_line(finished: FinishedPhase<'_>, style: Style) -> String {
    let line = match finished {
        FinishedPhase::Size(size) => format!("size: {}", rows::mtus(size).join(", ")),
        FinishedPhase::Idle(idle) => {
            format!("idle: {}", known(idle.rtt.map(|rtt| round_trip(&rtt))))
        }
        FinishedPhase::Load(phase) => format!("{}: {}", phase.kind.name(), load(phase)),
        FinishedPhase::Datagrams(datagrams) => phases::datagrams(datagrams).join("; "),
        FinishedPhase::Transactions(done) => phases::transactions(done),
        FinishedPhase::Ladder(ladder) => phases::ladder(ladder),
        FinishedPhase::Failed { kind, reason } => format!("{}: failed: {reason}", kind.name()),
    };
    style.line(&line) + "\n"
}

/// Announcement of the most that the test may move, once the first rate is known:
/// `at this rate up to 230 MiB in 0:27`
pub fn announcement(bytes_max: u64, seconds: f64) -> String {
    format!(
        "at this rate up to {} in {}",
        bytes(bytes_max as f64),
        clock(seconds)
    )
}

fn known(text: Option<String>) -> String {
    text.unwrap_or_else(|| "no result".to_owned())
}

fn round_trip(rtt: &Delay) -> String {
    let median = rtt.p50_ns.map_or_else(
        || "RTT n/a".to_owned(),
        |ns| format!("RTT p50 {}", wording::signed_ns(ns)),
    );
    format!(
        "{median}, {} of {} lost",
        rtt.lost,
        rtt.n.saturating_add(rtt.lost)
    )
}

fn load(phase: &LoadPhase) -> String {
    let added = phase
        .added_p50_ns
        .map_or_else(String::new, |ns| format!(" ({})", wording::added_ns(ns)));
    let median = phase.rtt.and_then(|rtt| rtt.p50_ns);
    let mut parts = vec![goodput::goodput(phase)];
    parts.extend(median.map(|ns| format!("RTT p50 {}{added}", wording::signed_ns(ns))));
    parts.extend(phase.rpm.map(wording::rpm));
    parts.push(counted(phase.streams as usize, "stream"));
    parts.push(format!("confidence {}", stored_name(phase.confidence)));

    parts.join(", ")
}
