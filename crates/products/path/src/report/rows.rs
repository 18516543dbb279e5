//! Results of a path beside their labels.

use std::collections::BTreeMap;

use linerate_doctor::path::first_changed;
use linerate_doctor::report as doctor;
use linerate_document::blocks::Block;
use linerate_document::number::{counted, percent};
use linerate_model::numbers::bytes;
use linerate_model::path::{
    ClockMethod, Delay, EcnTreatment, LoadPhase, PathHops, PathMtu, PathReport, PathState,
    PhaseKind, SizeResult, SizeSignal, absent,
};
use linerate_model::stored_name;

use super::{phases, wording};

/// Bits of a GiB.
const GIB_BITS: f64 = 8_589_934_592.0;

/// Everything else that was measured.
pub(super) fn results(report: &PathReport) -> Vec<Block> {
    let mut blocks = Vec::new();
    lines(
        &mut blocks,
        "Queues",
        report
            .phases
            .iter()
            .filter_map(queues)
            .chain(stamp_queues(report)),
    );
    lines(&mut blocks, "Idle", idle(report));
    let lost = lost_probes(report, 0.0).into_iter();
    lines(&mut blocks, "Loss", lost.chain(stamp_losses(report)));
    lines(
        &mut blocks,
        "Datagrams",
        report.datagrams.iter().flat_map(phases::datagrams),
    );
    lines(
        &mut blocks,
        "Requests",
        report.transactions.iter().map(phases::transactions),
    );
    lines(
        &mut blocks,
        "Highest",
        report.ladders.iter().map(phases::ladder),
    );
    lines(&mut blocks, "Call", call(report));
    lines(&mut blocks, "Path", path(report));

    lines(&mut blocks, "Clocks", clocks(report));
    lines(&mut blocks, "CPU", report.phases.iter().filter_map(cpu));
    lines(
        &mut blocks,
        "Method",
        report.phases.iter().filter_map(deviations),
    );

    lines(&mut blocks, "Server", server(report));
    lines(&mut blocks, "Test", [test(report)]);
    blocks
}

/// Lines under a label that is written once.
fn lines(blocks: &mut Vec<Block>, label: &str, texts: impl IntoIterator<Item = String>) {
    blocks.extend(Block::entries(label, doctor::COLUMN, texts));
}

/// `load down: down 99.4 ms, up 310 us above the smallest delay (p50)`
fn queues(phase: &LoadPhase) -> Option<String> {
    let delays = wording::joined([
        wording::median(phase.queue_down, "down"),
        wording::median(phase.queue_up, "up"),
    ])?;
    let load = phase.kind.name();
    Some(format!(
        "load {load}: {delays} above the smallest delay (p50)"
    ))
}

/// Queues of a STAMP session: `up 12 us, down 9 us above the smallest delay (p90)`
pub(super) fn stamp_queues(report: &PathReport) -> Option<String> {
    let stamp = report.stamp.as_ref()?;
    let p90 = |delay: Option<Delay>, name: &str| {
        Some(format!("{name} {}", wording::signed_ns(delay?.p90_ns?)))
    };
    let queues = wording::joined([p90(stamp.queue_up, "up"), p90(stamp.queue_down, "down")])?;
    Some(format!("{queues} above the smallest delay (p90)"))
}

/// Losses of a STAMP session: `up 3 of 100, down 0 of 97`
pub(super) fn stamp_losses(report: &PathReport) -> Option<String> {
    let stamp = report.stamp.as_ref()?;
    let up = stamp.lost_up?;
    let down = stamp.lost_down?;
    let sent = stamp.sent;
    let unplaced = stamp.lost_unplaced.filter(|count| *count > 0);
    let unplaced = unplaced.map_or_else(String::new, |count| format!(", {count} at the end"));
    let arrived = sent.saturating_sub(up);
    Some(format!(
        "up {up} of {sent}, down {down} of {arrived}{unplaced}"
    ))
}

pub(super) fn idle(report: &PathReport) -> Vec<String> {
    let Some(idle) = &report.idle else {
        return Vec::new();
    };
    let is_one_clock = report
        .clock
        .is_some_and(|clock| clock.method == ClockMethod::OneClock);
    let mut lines = Vec::new();

    if let Some(rtt) = &idle.rtt {
        let probes = rtt.n.saturating_add(rtt.lost);
        let mut parts = wording::percentiles("RTT", rtt);

        if probes > 0 {
            parts.push(format!("{} of {probes} lost", rtt.lost));
        }

        parts.extend(
            idle.jitter_ns
                .map(|ns| format!("jitter {}", wording::ns(ns))),
        );
        lines.push(parts.join(", "));
    }

    let one_way = |delay: Option<Delay>, name: &str| {
        let error = delay?
            .error_ns
            .filter(|_| !is_one_clock)
            .map_or_else(String::new, |ns| format!(" ± {}", wording::ns(ns)));
        Some(wording::median(delay, name)? + &error)
    };
    let clock = if is_one_clock {
        " (both ends on one clock)"
    } else {
        ""
    };
    let ways = wording::joined([
        one_way(idle.one_way_down, "down"),
        one_way(idle.one_way_up, "up"),
    ]);
    lines.extend(ways.map(|ways| format!("one-way p50 {ways}{clock}")));

    lines
}

/// `UDP probes under load: down 0.69 %, up 0.63 %`, of loads that lost at least this share.
pub(super) fn lost_probes(report: &PathReport, share_min: f64) -> Option<String> {
    let share = |phase: &LoadPhase| {
        let rtt = phase.rtt?;
        let probes = rtt.n.saturating_add(rtt.lost);
        let share = rtt.lost as f64 / probes.max(1) as f64;
        let is_shown = probes > 0 && share >= share_min;
        is_shown.then(|| format!("{} {}", phase.kind.name(), percent(share)))
    };
    let shares = wording::joined(report.phases.iter().map(share))?;
    let probes = wording::probes_of(report);
    Some(format!("{probes} under load: {shares}"))
}

fn call(report: &PathReport) -> Option<String> {
    let call = report.voice?;
    let score = |mos: Option<f64>, when: &str| mos.map(|mos| format!("{mos:.1} {when}"));
    let scores = wording::joined([
        score(call.idle_mos, "without load"),
        score(call.loaded_mos, "under load"),
    ])?;
    Some(format!("MOS {scores} (G.711, ITU-T G.107)"))
}

/// MTU, DSCP and ECN.
fn path(report: &PathReport) -> Option<String> {
    let (dscp, ecn) = changed_marks(report);
    let mut parts = mtus(&report.size);
    if let Some(marks) = &report.marks {
        for (is_known, changed, kept) in [
            (!marks.dscp.is_empty(), dscp, "DSCP kept"),
            (!marks.ecn.is_empty(), ecn, "ECN kept"),
        ] {
            let is_kept = is_known && changed.is_empty();
            parts.extend(changed);
            parts.extend(is_kept.then(|| kept.to_owned()));
        }
    }

    (!parts.is_empty()).then(|| parts.join(", "))
}

/// An MTU below that of the interface, and marks that the path changes.
pub(super) fn unusual(report: &PathReport) -> Option<String> {
    let sizes = [report.size.down, report.size.up];
    let is_limited =
        |size: &SizeResult| matches!(size.how, SizeSignal::Reported | SizeSignal::BlackHole);
    let is_limited = sizes.iter().flatten().any(is_limited);

    let mut parts = Vec::new();
    if is_limited {
        parts = mtus(&report.size);
    }
    let (dscp, ecn) = changed_marks(report);
    parts.extend(dscp);
    parts.extend(ecn);

    (!parts.is_empty()).then(|| parts.join(", "))
}

/// DSCP and ECN that arrive with another value than they were sent with.
fn changed_marks(report: &PathReport) -> (Vec<String>, Vec<String>) {
    let Some(marks) = &report.marks else {
        return Default::default();
    };
    let dscp = marks
        .dscp
        .iter()
        .filter(|(_, sent, arrived)| sent != arrived)
        .map(|(way, sent, arrived)| {
            let place = first_changed(&report.path, *way, PathHops::DSCP, sent << 2);
            format!("DSCP {sent} arrives as {arrived} {}{place}", way.name())
        });
    let ecn = marks
        .ecn
        .iter()
        .filter(|(_, treatment)| *treatment != EcnTreatment::Kept)
        .map(|(way, treatment)| {
            let place = first_changed(&report.path, *way, PathHops::ECN, PathHops::ECT_0);
            format!("ECN {} {}{place}", stored_name(treatment), way.name())
        });

    (dscp.collect(), ecn.collect())
}

/// `MTU 1500 bytes both ways`, or each by itself.
pub(super) fn mtus(size: &PathMtu) -> Vec<String> {
    match (size.down, size.up) {
        (Some(down), Some(up)) if (down.mtu, down.how) == (up.mtu, up.how) => {
            vec![format!("MTU {} both ways", mtu(down))]
        }
        (down, up) => {
            let down = down.map(|size| format!("MTU down {}", mtu(size)));
            down.into_iter()
                .chain(up.map(|size| format!("MTU up {}", mtu(size))))
                .collect()
        }
    }
}

/// `1400 bytes (limit known by ICMP)`
fn mtu(size: SizeResult) -> String {
    let how = match size.how {
        SizeSignal::Interface => " (that of the sender's interface)",
        SizeSignal::Reported => " (limit known by ICMP)",
        SizeSignal::BlackHole => " (larger packets disappear without ICMP)",
        SizeSignal::Unlimited => " or more",
    };
    format!("{} bytes{how}", size.mtu)
}

fn clocks(report: &PathReport) -> Option<String> {
    let clock = report.clock?;
    if clock.method == ClockMethod::OneClock {
        return Some("both ends on one clock".to_owned());
    }

    let offset = format!(
        "{} ± {}",
        wording::change_ns(clock.offset_ns),
        wording::ns(clock.error_ns)
    );
    Some(format!(
        "server {offset}, {} ppb faster ({})",
        clock.skew_ppb,
        stored_name(clock.method)
    ))
}

/// `load down: 0.40 CPUs here (3.44 CPU-s/GiB), 0.51 at the server (4.38 CPU-s/GiB)`
fn cpu(phase: &LoadPhase) -> Option<String> {
    let (here, there) = phase.cpu_cores?;
    let bps: f64 = phase.down_bps.into_iter().chain(phase.up_bps).sum();
    let cost = |cores: f64| {
        if bps > 0.0 {
            format!(" ({:.2} CPU-s/GiB)", cores * GIB_BITS / bps)
        } else {
            String::new()
        }
    };
    let there = there.map_or_else(String::new, |there| {
        format!(", {there:.2} at the server{}", cost(there))
    });

    Some(format!(
        "load {}: {here:.2} CPUs here{}{there}",
        phase.kind.name(),
        cost(here)
    ))
}

/// Where the method differs from the draft.
fn deviations(phase: &LoadPhase) -> Option<String> {
    // The report of a speed test has no number of streams.
    if phase.streams == 0 {
        return None;
    }

    let load = phase.kind.name();
    let streams = counted(phase.streams as usize, "stream");
    let deviations = phase.deviations.join(", ");
    let other = if deviations.is_empty() {
        String::new()
    } else {
        format!("; other than the draft: {deviations}")
    };

    let each = if phase.kind == PhaseKind::Both {
        " per direction"
    } else {
        ""
    };
    Some(format!("load {load}: {streams}{each}{other}"))
}

fn server(report: &PathReport) -> Option<String> {
    let target = &report.target;
    let program = target
        .program
        .clone()
        .unwrap_or_else(|| stored_name(target.dialect));

    // Some speed tests do not report it.
    let address = if target.address.is_empty() {
        &target.host
    } else {
        &target.address
    };
    let mut parts = vec![format!(
        "{program} at {}",
        wording::endpoint(address, target.port)
    )];

    if let Some(identity) = wording::identity(report) {
        let key = target
            .fingerprint
            .as_ref()
            .map_or_else(String::new, |key| format!(" {key}"));
        parts.push(format!("key{key} ({identity})"));
    }

    parts.extend(
        target
            .connect_ns
            .map(|ns| format!("connected in {}", wording::ns(ns))),
    );
    if report.concurrent_max == Some(0) {
        parts.push("no other tests at the same time".to_owned());
    }

    Some(parts.join(", "))
}

fn test(report: &PathReport) -> String {
    let mut parts = vec![
        format!("profile {}", stored_name(report.profile)),
        wording::ns(report.elapsed_ns),
    ];
    // Payload of loads and datagrams, which not every test has.
    let payload = [
        (report.bytes_received, "received"),
        (report.bytes_sent, "sent"),
    ];
    let payload = payload.into_iter().filter(|(count, _)| *count > 0);
    parts.extend(payload.map(|(count, word)| format!("{} {word}", bytes(count as f64))));

    if report.resumed > 0 {
        parts.push(format!(
            "control connection resumed {}",
            counted(report.resumed as usize, "time")
        ));
    }

    parts.join(", ")
}

/// A line for each reason why results are absent; what the protocol of the server lacks comes last.
pub(super) fn absent(report: &PathReport) -> Vec<Block> {
    let mut by_reason: BTreeMap<(bool, &str), Vec<&str>> = BTreeMap::new();
    for (what, reason) in &report.absent {
        by_reason
            .entry((
                [absent::IPERF3_ONLY, absent::NDT7_ONLY].contains(&&**reason),
                reason,
            ))
            .or_default()
            .push(what);
    }

    let mut texts: Vec<String> = by_reason
        .into_iter()
        .map(|((_, reason), what)| format!("{}: {reason}", what.join(", ")))
        .collect();
    if texts.is_empty() && report.state == PathState::Complete && !report.phases.is_empty() {
        texts.push("nothing".to_owned());
    }

    let mut blocks = Vec::new();
    lines(&mut blocks, "Absent", texts);
    blocks
}
