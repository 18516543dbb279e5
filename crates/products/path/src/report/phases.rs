//! Results of datagrams, of requests and of searches for the highest rate, a line for each.

use linerate_document::number::{counted, percent};
use linerate_model::numbers::rate;
use linerate_model::path::{Datagrams, Delay, LossByPlace, PhaseKind, RateLadder, Transactions};

use super::wording;
use crate::conclude::network_and_uncounted;

/// Rate, loss and its place, reordering and jitter of one direction.
pub(super) fn datagrams(datagrams: &Datagrams) -> Vec<String> {
    let loss = &datagrams.loss;
    let lost = lost(loss);
    let mut parts = vec![match lost {
        0 => format!("0 of {} lost", loss.sent),
        _ => format!("{lost} of {} lost ({})", loss.sent, share(loss)),
    }];
    parts.push(match datagrams.reordering_extent {
        Some(0) => "0 reordered".to_owned(),
        None if datagrams.reordered_share > 0.0 => {
            format!(
                "{} reordered or duplicated",
                percent(datagrams.reordered_share)
            )
        }
        None => "0 reordered or duplicated".to_owned(),
        Some(extent) => format!(
            "{} reordered by up to {extent}",
            percent(datagrams.reordered_share)
        ),
    });
    parts.extend(
        datagrams
            .duplicate_share
            .filter(|share| *share > 0.0)
            .map(|share| format!("{} twice", percent(share))),
    );
    parts.extend(
        datagrams
            .jitter_ns
            .map(|ns| format!("jitter {}", wording::ns(ns))),
    );

    let kind_is_paced = datagrams.kind == PhaseKind::Pace;
    parts.extend(median_and_p99("lateness", datagrams.lateness));
    parts.extend(median_and_p99("gaps", datagrams.gaps));
    parts.extend(
        datagrams
            .longest_train
            .filter(|_| kind_is_paced)
            .map(|train| format!("longest train {train}")),
    );

    let kind = if datagrams.kind == PhaseKind::Datagrams {
        ""
    } else {
        datagrams.kind.name()
    };
    let packets = datagrams.received_per_s.filter(|_| !kind.is_empty());
    let packets = packets.map_or_else(String::new, |per_s| format!(" ({})", wording::per_s(per_s)));
    let head = format!(
        "{kind} {} {}{packets}",
        datagrams.direction.name(),
        rate(datagrams.received_bps)
    );
    let line = format!("{}: {}", head.trim_start(), parts.join(", "));

    let mut lines = vec![line];
    let places: Vec<String> = places(loss).into_iter().map(|(_, text)| text).collect();
    if lost > 0 && !places.is_empty() {
        lines.push(format!("lost by place: {}", places.join(", ")));
    }

    lines
}

/// `datagrams down: 121 of 4121 (2.94 %), network at least 90, receive socket 20`: loss alone, and
/// its places.
pub(super) fn lost_datagrams(datagrams: &Datagrams) -> String {
    let loss = &datagrams.loss;
    let places = places(loss).into_iter().filter(|(count, _)| *count > 0);
    let places: String = places.map(|(_, text)| format!(", {text}")).collect();
    format!(
        "{} {}: {} of {} ({}){places}",
        datagrams.kind.name(),
        datagrams.direction.name(),
        lost(loss),
        loss.sent,
        share(loss)
    )
}

fn lost(loss: &LossByPlace) -> u64 {
    loss.sent.saturating_sub(loss.received)
}

fn share(loss: &LossByPlace) -> String {
    percent(lost(loss) as f64 / loss.sent.max(1) as f64)
}

/// `lateness p50 300 ns, p99 131 us`
fn median_and_p99(name: &str, delay: Option<Delay>) -> Option<String> {
    let p99 = delay?
        .p99_ns
        .map(|ns| format!("p99 {}", wording::signed_ns(ns)));
    let known = wording::joined([wording::median(delay, "p50"), p99])?;
    Some(format!("{name} {known}"))
}

/// `sending host 0`, `network at least 10`, ...: each place that has a counter, with what it lost,
/// and the network. Nothing where no place has one.
fn places(loss: &LossByPlace) -> Vec<(u64, String)> {
    let counted = [loss.sender, loss.nic, loss.socket];
    if counted == [None; 3] {
        return Vec::new();
    }

    let place = |name: &str, words: &str, bound: &str, count: Option<u64>| {
        let count = count?;
        let bound = if count == 0 || loss.exact.iter().any(|exact| exact == name) {
            ""
        } else {
            bound
        };
        Some((count, format!("{words} {bound}{count}")))
    };
    let network = network_and_uncounted(loss);
    // A counter that other traffic shares may hold its drops, which then are not the network's.
    let is_bound = counted.into_iter().flatten().any(|count| count > 0);
    let network_bound = if is_bound { "at least " } else { "" };

    let places = [
        place("sender", "sending host", "at most ", loss.sender),
        place("network", &network, network_bound, Some(loss.network)),
        place(
            "nic",
            "receiving host before the socket",
            "at most ",
            loss.nic,
        ),
        place("socket", "receive socket", "at most ", loss.socket),
    ];
    places.into_iter().flatten().collect()
}

/// `rr, 64 flows: 121,000/s, p50 510 us, p99 900 us`
pub(super) fn transactions(done: &Transactions) -> String {
    let mut parts = vec![wording::per_s(done.per_s)];
    parts.extend(wording::percentiles("latency", &done.latency));
    let cpu = |ns: Option<u64>, end: &str| ns.map(|ns| format!("{} {end}", wording::ns(ns)));
    let cpus = wording::joined([
        cpu(done.client_cpu_ns, "here"),
        cpu(done.server_cpu_ns, "at the server"),
    ]);
    parts.extend(cpus.map(|cpus| format!("CPU per request {cpus}")));

    format!(
        "{}, {}: {}",
        done.kind.name(),
        counted(done.flows as usize, "flow"),
        parts.join(", ")
    )
}

/// `cps: 24,300/s without failures; SYN queue`
pub(super) fn ladder(ladder: &RateLadder) -> String {
    let direction = ladder
        .direction
        .map_or_else(String::new, |way| format!(" {}", way.name()));
    let highest = match (ladder.highest, ladder.kind) {
        (None, _) => "no clean rate was found".to_owned(),
        (Some(bps), PhaseKind::Capacity) => format!("{} of IP packets (RFC 9097)", rate(bps)),
        (Some(per_s), _) => format!("{} without failures", wording::per_s(per_s)),
    };

    let limit = ladder
        .limit
        .as_ref()
        .map_or_else(String::new, |limit| format!("; {limit}"));
    format!("{}{direction}: {highest}{limit}", ladder.kind.name())
}
