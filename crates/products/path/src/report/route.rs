//! The path as a line of the page: client, routers, server, with the narrowest part and the queues.

use linerate_doctor::path::place;
use linerate_doctor::report as doctor;
use linerate_document::frame::{Queue, Route, Segment, Station};
use linerate_document::number::counted;
use linerate_document::table::Table;
use linerate_model::finding::Diagnosis;
use linerate_model::path::{Hop, HopQueue, HopRtt, LoadPhase, PathDirection, PathHops, PathReport};
use linerate_model::record::RunRecord;

use super::{charts, wording};

/// Verdicts whose limit lies between the two hosts.
const BETWEEN: [&str; 11] = [
    "path-rate",
    "path",
    "path-or-receiver",
    "policer",
    "slower-link",
    "one-direction",
    "path-mtu",
    "reordering",
    "loss-or-congestion",
    "loss-on-path",
    "radio",
];
/// Routers that are all shown; of more, only those beside a queue.
const ROUTERS_SHOWN: usize = 3;

/// The path of a test.
pub(super) fn route(
    record: &RunRecord,
    report: &PathReport,
    diagnosis: Option<&Diagnosis>,
) -> Route {
    let name = |name: &Option<String>, or: &str| name.clone().unwrap_or_else(|| or.to_owned());
    let limit = diagnosis.and_then(|diagnosis| Some((diagnosis, doctor::limiting(diagnosis)?)));
    let [client, path, server] = limit.map_or([false; 3], |(diagnosis, finding)| {
        let is_between = BETWEEN.contains(&diagnosis.verdict.verdict.as_str());
        let is_server = !is_between && finding.subject.starts_with("server");
        [!is_between && !is_server, is_between, is_server]
    });

    let mut stations = vec![Station {
        name: name(&record.path.client, "this host"),
        detail: "client".to_owned(),
        is_narrowest: client,
    }];
    // A limit of the path without a place is one of the whole path.
    let is_somewhere = path && report.path.queues.is_empty();
    let routers = if is_somewhere {
        Vec::new()
    } else {
        routers(report)
    };
    let segments = segments(report, &routers, path);
    stations.extend(routers.iter().map(|hop| station(hop)));
    stations.push(Station {
        name: report.target.host.clone(),
        detail: name(&report.target.program, "server"),
        is_narrowest: server,
    });
    Route { stations, segments }
}

fn station(hop: &Hop) -> Station {
    let address = hop.address.map(|address| address.to_string());
    Station {
        name: hop
            .name
            .clone()
            .or(address)
            .unwrap_or_else(|| "no answer".to_owned()),
        detail: format!("hop {}", hop.hop),
        is_narrowest: false,
    }
}

/// Hops between the hosts that the line shows.
fn routers(report: &PathReport) -> Vec<&Hop> {
    let all: Vec<&Hop> = report
        .path
        .from_client
        .iter()
        .filter(|hop| !hop.is_end)
        .collect();
    if all.len() <= ROUTERS_SHOWN {
        return all;
    }

    let is_beside = |hop: &&Hop| {
        let mut links = report.path.queues.iter().map(link);
        links.any(|(from, to)| [from, to].contains(&hop.hop))
    };
    all.into_iter().filter(is_beside).collect()
}

/// The hops between which a queue is, the nearer one first; 0 is the client.
fn link(queue: &HopQueue) -> (u8, u8) {
    match queue.direction {
        PathDirection::Up => (queue.first_hop, queue.last_hop.saturating_add(1)),
        PathDirection::Down => (queue.first_hop.saturating_sub(1), queue.last_hop),
    }
}

/// What lies between each two stations. The rates stand in the first part, and a queue in the one
/// that it belongs to; without a place it is somewhere on the path.
fn segments(report: &PathReport, routers: &[&Hop], is_narrowest: bool) -> Vec<Segment> {
    let has_places = !report.path.queues.is_empty();
    let ends = routers.iter().map(|hop| hop.hop).chain([u8::MAX]);
    let mut near = 0;

    let parts = ends.map(|far| {
        let part = near..far;
        near = far;
        let queues: Vec<&HopQueue> = report
            .path
            .queues
            .iter()
            .filter(|queue| part.contains(&link(queue).0))
            .collect();
        let mut lines = if part.start == 0 {
            charts::directions(report)
        } else {
            Vec::new()
        };
        let hidden = report
            .path
            .from_client
            .iter()
            .filter(|hop| !hop.is_end && part.contains(&hop.hop) && hop.hop > part.start);
        let hidden = hidden.count();
        if hidden > 0 {
            lines.push(counted(hidden, "more hop"));
        }

        Segment {
            lines,
            is_narrowest: is_narrowest && (!queues.is_empty() || routers.is_empty()),
            queues: match has_places {
                true => bars(
                    queues
                        .into_iter()
                        .map(|queue| (queue.added_ns, text(queue))),
                ),
                false if routers.is_empty() => somewhere(report),
                false => Vec::new(),
            },
        }
    });
    parts.collect()
}

fn text(queue: &HopQueue) -> String {
    let added = wording::signed_ns(queue.added_ns);
    format!("queue {} {added}", queue.direction.name())
}

/// The queue of each direction under the load that fills it most; where the clocks of both ends are
/// not related, what a load adds to the round trip.
fn somewhere(report: &PathReport) -> Vec<Queue> {
    let longest = |name: &str, ns: fn(&LoadPhase) -> Option<i64>| {
        let found = report
            .phases
            .iter()
            .filter_map(|phase| Some((ns(phase)?, phase.kind)));
        let (ns, kind) = found.max_by_key(|(ns, _)| *ns)?;
        let text = format!("{name} {}, load {}", wording::signed_ns(ns), kind.name());
        (ns > 0).then_some((ns, text))
    };
    let ways = [
        longest("queue down", |phase| phase.queue_down?.p50_ns),
        longest("queue up", |phase| phase.queue_up?.p50_ns),
    ];
    let mut found: Vec<(i64, String)> = ways.into_iter().flatten().collect();
    if found.is_empty() {
        found.extend(longest("queue", |phase| phase.added_p50_ns));
    }

    bars(found)
}

/// Bars of queues by their delays, ns.
fn bars(queues: impl IntoIterator<Item = (i64, String)>) -> Vec<Queue> {
    let queues: Vec<(i64, String)> = queues.into_iter().collect();
    let longest_ns = queues.iter().map(|(ns, _)| *ns).max().unwrap_or(1);
    let full_ns = longest_ns.max(QUEUE_FULL_NS);
    let bar = |(ns, text)| Queue {
        text,
        share: ns as f64 / full_ns as f64,
    };
    queues.into_iter().map(bar).collect()
}

/// A queue of this length fills its bar: the grade C begins there, and a short queue is no fault.
const QUEUE_FULL_NS: i64 = 60_000_000;

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
