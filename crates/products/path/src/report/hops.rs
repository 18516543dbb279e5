//! The hops of the path as tables.

use linerate_doctor::path::place;
use linerate_document::table::Table;
use linerate_model::path::{Hop, HopRtt, PathDirection, PathHops};

use super::wording;

/// Tables of the hops as the client and as the server see them; none where no hop answered.
pub(super) fn tables(path: &PathHops) -> Vec<Table> {
    let ends = [
        ("Hops", &path.from_client),
        ("Hops from the server", &path.from_server),
    ];
    let known = ends.into_iter().filter(|(_, hops)| !hops.is_empty());
    known
        .map(|(title, hops)| {
            let mut table = table(title, hops);
            if title == "Hops" {
                table.notes.extend(queues(path));
            }
            table
        })
        .collect()
}

/// `queue up: hop 2 (192.0.2.1) to hop 3 (192.0.2.9), +20.3 ms, seen by client and server`
fn queues(path: &PathHops) -> impl Iterator<Item = String> + '_ {
    path.queues.iter().map(|queue| {
        let seen_by = match queue.seen_by.join(" and ") {
            ends if ends.is_empty() => "the ends differ on the place".to_owned(),
            ends => format!("seen by {ends}"),
        };
        format!(
            "queue {}: {}, {}, {seen_by}",
            queue.direction.name(),
            place(queue, path),
            wording::change_ns(queue.added_ns)
        )
    })
}

/// Columns of loads that were not run are left out.
fn table(title: &str, hops: &[Hop]) -> Table {
    let mut table = Table::of("", title, hops)
        .number("hop", |hop| hop.hop.to_string())
        .text("address", address)
        .number("latency", |hop| {
            hop.idle.as_ref().map_or_else(String::new, median)
        });
    for direction in [PathDirection::Down, PathDirection::Up] {
        if hops.iter().any(|hop| hop.under(direction).is_some()) {
            table = table.number(direction.name(), |hop| loaded(hop, direction));
        }
    }
    table.number("answers", answers).text("", remarks).table()
}

fn address(hop: &Hop) -> String {
    match (hop.address, &hop.name) {
        (Some(address), Some(name)) => format!("{name} ({address})"),
        (Some(address), None) => address.to_string(),
        (None, _) => "no answer".to_owned(),
    }
}

fn median(rtt: &HopRtt) -> String {
    wording::ns(rtt.p50_ns)
}

/// What the load adds to the median; the median itself of a hop without one before.
fn loaded(hop: &Hop, direction: PathDirection) -> String {
    match (hop.added_ns(direction), hop.under(direction)) {
        (Some(added_ns), _) => wording::added_ns(added_ns),
        (None, Some(rtt)) => median(rtt),
        (None, None) => String::new(),
    }
}

/// `31 of 40`: of probes that were answered or awaited long enough.
fn answers(hop: &Hop) -> String {
    let phases = [&hop.idle, &hop.down, &hop.up, &hop.both];
    let all = phases.into_iter().flatten();
    let (answers, sent) = all.fold((0, 0), |(answers, sent), rtt| {
        (answers + rtt.answers, sent + rtt.sent)
    });
    match sent {
        0 => String::new(),
        _ => format!("{answers} of {sent}"),
    }
}

fn remarks(hop: &Hop) -> String {
    let addresses: Vec<String> = hop.other_flows.iter().map(ToString::to_string).collect();
    let labels: Vec<String> = hop.mpls_labels.iter().map(ToString::to_string).collect();
    let remarks = [
        hop.is_end.then(|| "the other end".to_owned()),
        hop.mtu_bytes.map(|bytes| format!("MTU {bytes}")),
        (!addresses.is_empty()).then(|| format!("also {}", addresses.join(", "))),
        (!labels.is_empty()).then(|| format!("MPLS {}", labels.join("/"))),
    ];
    let remarks: Vec<String> = remarks.into_iter().flatten().collect();
    remarks.join(", ")
}
