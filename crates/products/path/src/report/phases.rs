//! Results of datagrams, of requests and of searches for the highest rate, a line for each.

use linerate_document::number::{counted, percent};
use linerate_model::numbers::rate;
use linerate_model::path::{Datagrams, Delay, LossByPlace, PhaseKind, RateLadder, Transactions};

use super::wording;

/// Rate, loss and its place, reordering and jitter of one direction.
pub(super) fn datagrams(datagrams: &Datagrams) -> Vec<String> {
    let loss = &datagrams.loss;
    let lost = loss.sent.saturating_sub(loss.received);
    let mut parts = vec![match lost {
        0 => format!("0 of {} lost", loss.sent),
        _ => format!(
            "{lost} of {} lost ({})",
            loss.sent,
            percent(lost as f64 / loss.sent as f64)
        ),
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

    std::iter::once(line).chain(places(loss, lost)).collect()
}

/// `lateness p50 300 ns, p99 131 us`
fn median_and_p99(name: &str, delay: Option<Delay>) -> Option<String> {
    let p99 = delay?
        .p99_ns
        .map(|ns| format!("p99 {}", wording::signed_ns(ns)));
    let known = wording::joined([wording::median(delay, "p50"), p99])?;
    Some(format!("{name} {known}"))
}

/// `lost: at the sender 0, in the network at least 10, ...`
fn places(loss: &LossByPlace, lost: u64) -> Option<String> {
    let place = |name: &str, words: &str, bound: &str, count: u64| {
        let bound = if count == 0 || loss.exact.iter().any(|exact| exact == name) {
            ""
        } else {
            bound
        };
        format!("{words} {bound}{count}")
    };
    let parts = [
        place("sender", "sending host", "at most ", loss.sender),
        place("network", "network", "at least ", loss.network),
        place(
            "nic",
            "receiving host before the socket",
            "at most ",
            loss.nic,
        ),
        place("socket", "receive socket", "at most ", loss.socket),
    ];
    (lost > 0).then(|| format!("lost by place: {}", parts.join(", ")))
}

/// `rr, 64 flows: 121000/s, p50 510 us, p99 900 us`
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

/// `cps: 24300/s without failures; SYN queue`
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
