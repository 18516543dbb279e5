//! Hops of the path, and the place of the queue that a load fills.
//!
//! Probes of the end that sends a load pass the queue with it, and meet it at all hops behind the
//! queue; the queue is at the exit of the last hop that is not delayed. Answers to the end that
//! receives the load pass the queue on their way back, those of the router with the queue too; it
//! is the first hop that is delayed. Each end makes its own statement.

use std::net::IpAddr;

use linerate_model::path::{
    EndpointPhase, Hop, HopAnswers, HopQueue, HopRtt, LoadPhase, PathDirection, PathHops,
    PhaseKind, PhaseResult, SizeResult, SizeSignal,
};

use super::ConcludeInput;

/// Added delay from which a queue has a place, ns. Less is within what routers take to answer.
const ADDED_MIN_NS: i64 = 3_000_000;
/// Answers under load below which a hop counts as silent. A load of the quick profile has four of
/// a Linux router: `net.ipv4.icmp_ratelimit`.
const ANSWERS_MIN: u64 = 4;
/// Part of the added delay of a hop that all later ones must have: routers may answer slowly for
/// reasons of their own.
const STANDING_SHARE: f64 = 0.9;
/// Part of the whole added delay from which a step is a queue.
const STEP_SHARE: f64 = 0.25;

/// The hops as both ends see them, and the queues of the loads.
pub(super) fn hops(input: &ConcludeInput, loads: &[LoadPhase]) -> PathHops {
    let mut path = PathHops {
        from_client: rows(&input.phases, |phase| Some(&phase.local)),
        from_server: rows(&input.phases, |phase| phase.remote.as_ref()),
        queues: Vec::new(),
    };
    name_mtu(&mut path.from_client, PathDirection::Up, &input.phases);
    name_mtu(&mut path.from_server, PathDirection::Down, &input.phases);

    for load in loads {
        let [direction] = load.kind.load_directions() else {
            continue;
        };
        // A server of iperf3 answers few probes beside a load, or none.
        let to_end = path.from_client.last().filter(|hop| hop.is_end);
        let to_end_ns = || to_end.and_then(|hop| hop.added_ns(*direction));
        if let Some(added_ns) = load.added_p50_ns.or_else(to_end_ns) {
            let found = queues(&path, *direction, added_ns);
            path.queues.extend(found);
        }
    }
    path
}

fn rows<'a>(
    phases: &'a [PhaseResult],
    end: impl Fn(&'a PhaseResult) -> Option<&'a EndpointPhase>,
) -> Vec<Hop> {
    let of_phases: Vec<(PhaseKind, &[HopAnswers])> = phases
        .iter()
        .filter_map(|phase| Some((phase.spec.kind, end(phase)?.hops.as_slice())))
        .collect();
    let distances = of_phases.iter().flat_map(|(_, answers)| *answers);
    let last = distances.map(|answers| answers.ttl).max().unwrap_or(0);

    (1..=last)
        .map(|distance| {
            let here = || {
                let all = of_phases.iter();
                all.flat_map(|(kind, answers)| answers.iter().map(move |answer| (*kind, answer)))
                    .filter(|(_, answers)| answers.ttl == distance)
            };
            row(distance, &here().collect::<Vec<_>>())
        })
        .collect()
}

fn row(distance: u8, answers: &[(PhaseKind, &HopAnswers)]) -> Hop {
    let latest = answers.last().map(|(_, answers)| *answers);
    let address = latest.and_then(|answers| answers.addresses.last().copied());
    let mut other_flows: Vec<IpAddr> = latest.map_or_else(Vec::new, |answers| {
        let earlier = answers.addresses.iter().rev().skip(1);
        answers.other_flows.iter().chain(earlier).copied().collect()
    });
    other_flows.retain(|other| Some(*other) != address);
    other_flows.sort_unstable();
    other_flows.dedup();
    let under = |kind: PhaseKind| rtt(answers, |of| of == kind);

    Hop {
        hop: distance,
        address,
        name: None,
        other_flows,
        is_end: answers.iter().any(|(_, answers)| answers.is_end),
        // Hops are found in the first phase, whatever its kind; none of these has a load.
        idle: rtt(answers, |kind| kind.load_directions().is_empty()),
        down: under(PhaseKind::Down),
        up: under(PhaseKind::Up),
        both: under(PhaseKind::Both),
        mtu_bytes: None,
        mpls_labels: latest.map_or_else(Vec::new, |answers| answers.mpls_labels.clone()),
        tos: latest.map_or_else(Vec::new, |answers| answers.tos.clone()),
    }
}

/// Round trips of the phases of a kind; `None` without an answer.
fn rtt(
    answers: &[(PhaseKind, &HopAnswers)],
    is_wanted: impl Fn(PhaseKind) -> bool,
) -> Option<HopRtt> {
    let wanted = || answers.iter().filter(|(kind, _)| is_wanted(*kind));
    let mut sorted: Vec<u64> = wanted()
        .flat_map(|(_, answers)| answers.rtt_ns.iter().copied())
        .collect();
    sorted.sort_unstable();

    // Nearest rank: the fewest samples that are this part of all.
    let at = |percent: usize| sorted.get((sorted.len() * percent).div_ceil(100).max(1) - 1);
    Some(HopRtt {
        sent: wanted().map(|(_, answers)| u64::from(answers.sent)).sum(),
        answers: sorted.len() as u64,
        p50_ns: *at(50)?,
        p90_ns: *at(90)?,
    })
}

/// The router that reported that a packet of a direction is too large forwards no larger ones than
/// it states. Its address is the one that the sending end sees.
fn name_mtu(hops: &mut [Hop], direction: PathDirection, phases: &[PhaseResult]) {
    let sizes = phases.iter().flat_map(|phase| &phase.size);
    let reported = |(of, size): &&(PathDirection, SizeResult)| {
        *of == direction && size.how == SizeSignal::Reported
    };
    for (_, size) in sizes.filter(reported) {
        let Some(reporter) = size.reported_by else {
            continue;
        };
        // Its flow may take another branch than that of the trace.
        let is_reporter =
            |hop: &&mut Hop| hop.address == Some(reporter) || hop.other_flows.contains(&reporter);
        if let Some(hop) = hops.iter_mut().find(is_reporter) {
            hop.mtu_bytes = Some(size.mtu);
        }
    }
}

/// Queues that a load in this direction fills, which adds `added_ns` from end to end.
fn queues(path: &PathHops, direction: PathDirection, added_ns: i64) -> Vec<HopQueue> {
    if added_ns < ADDED_MIN_NS {
        return Vec::new();
    }
    let length = path.length().unwrap_or_else(|| {
        // The server is behind the last router that answered.
        path.from_client
            .last()
            .map_or(1, |hop| hop.hop.saturating_add(1))
    });
    let client = steps(&path.from_client, direction, length, added_ns);
    let client: Vec<Place> = client
        .into_iter()
        .map(|step| step.place(direction == PathDirection::Up))
        .collect();

    let server = match path.from_server.last() {
        // Hops count from both ends alike only on a path that is the same both ways.
        Some(last) if !last.is_end || last.hop == length => {
            let found = steps(&path.from_server, direction, length, added_ns);
            let places = found.into_iter().map(|step| {
                step.place(direction == PathDirection::Down)
                    .mirrored(length)
            });
            places.rev().collect()
        }
        _ => Vec::new(),
    };

    combined(&client, &server)
        .into_iter()
        .map(|(place, seen_by)| HopQueue {
            direction,
            first_hop: place.first,
            last_hop: place.last,
            added_ns: place.added_ns,
            seen_by,
        })
        .collect()
}

/// Growth of the added delay between two hops that answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    /// The last hop before it; 0 is the end that probes.
    before: u8,
    /// The first hop behind it.
    behind: u8,
    added_ns: i64,
}

/// Routers one of which has a queue at its exit. 0 and the length of the path are the ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    first: u8,
    last: u8,
    added_ns: i64,
}

impl Step {
    fn place(self, is_sender: bool) -> Place {
        let Self {
            before,
            behind,
            added_ns,
        } = self;
        let (first, last) = if is_sender {
            (before, behind - 1)
        } else {
            (before + 1, behind)
        };
        Place {
            first,
            last,
            added_ns,
        }
    }
}

impl Place {
    /// The same place, counted from the other end.
    fn mirrored(self, length: u8) -> Self {
        Self {
            first: length.saturating_sub(self.last),
            last: length.saturating_sub(self.first),
            ..self
        }
    }

    fn common(self, other: Self) -> Option<Self> {
        let first = self.first.max(other.first);
        let last = self.last.min(other.last);
        (first <= last).then_some(Self {
            first,
            last,
            ..self
        })
    }

    fn hull(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            added_ns: self.added_ns.max(other.added_ns),
        }
    }
}

/// The largest steps of the added delay on the way to the other end, at most two, in the order of
/// the hops.
fn steps(hops: &[Hop], load: PathDirection, length: u8, end_added_ns: i64) -> Vec<Step> {
    let routers = hops.iter().filter(|hop| hop.hop < length);
    let answering = routers.filter_map(|hop| {
        let has_answers = hop.under(load)?.answers >= ANSWERS_MIN;
        Some((hop.hop, hop.added_ns(load).filter(|_| has_answers)?))
    });
    let mut delays: Vec<(u8, i64)> = answering.chain([(length, end_added_ns)]).collect();

    // From the end: a delay that a later hop does not have is one of the router's own answers.
    let mut later_ns = i64::MAX;
    for (_, added_ns) in delays.iter_mut().rev() {
        if (later_ns as f64) < *added_ns as f64 * STANDING_SHARE {
            *added_ns = later_ns;
        }
        later_ns = later_ns.min(*added_ns);
    }

    let mut before = 0;
    let mut known_ns = 0;
    let mut steps = Vec::new();
    for (hop, added_ns) in delays {
        steps.push(Step {
            before,
            behind: hop,
            added_ns: added_ns - known_ns,
        });
        before = hop;
        known_ns = known_ns.max(added_ns);
    }

    let least_ns = (end_added_ns as f64 * STEP_SHARE) as i64;
    steps.retain(|step| step.added_ns > least_ns);
    steps.sort_by_key(|step| std::cmp::Reverse(step.added_ns));
    steps.truncate(2);
    steps.sort_by_key(|step| step.behind);
    steps
}

/// What both ends say of the queues, with the ends that say it. Where they contradict each other,
/// the queue is somewhere between their places.
fn combined(client: &[Place], server: &[Place]) -> Vec<(Place, Vec<String>)> {
    let seen_by = |ends: &[&str]| ends.iter().map(|end| (*end).to_owned()).collect();
    let all_by = |places: &[Place], end| {
        let places = places.iter();
        places.map(|place| (*place, seen_by(&[end]))).collect()
    };
    match (client, server) {
        ([], places) => all_by(places, "server"),
        (places, []) => all_by(places, "client"),
        (client, server) if client.len() == server.len() => {
            let pairs = client.iter().zip(server);
            pairs
                .map(|(ours, theirs)| match ours.common(*theirs) {
                    Some(place) => (place, seen_by(&["client", "server"])),
                    None => (ours.hull(*theirs), Vec::new()),
                })
                .collect()
        }
        (client, server) => {
            let all = client.iter().chain(server).copied();
            all.reduce(Place::hull)
                .map(|place| (place, Vec::new()))
                .into_iter()
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Hops with 0.1 ms without load, and this much more in ms under load; `None` is silent. The
    /// last one is the other end.
    fn traced(added_ms: &[Option<u64>], load: PathDirection) -> Vec<Hop> {
        let rtt = |p50_ns| HopRtt {
            sent: 10,
            answers: 10,
            p50_ns,
            p90_ns: p50_ns,
        };
        let hop = |(number, added_ms): (u8, &Option<u64>)| {
            let loaded = added_ms.map(|ms| rtt(MS / 10 + ms * MS));
            let (down, up) = match load {
                PathDirection::Down => (loaded, None),
                PathDirection::Up => (None, loaded),
            };
            Hop {
                hop: number,
                idle: loaded.map(|_| rtt(MS / 10)),
                down,
                up,
                ..Hop::default()
            }
        };
        let mut hops: Vec<Hop> = (1..).zip(added_ms).map(hop).collect();
        if let Some(last) = hops.last_mut() {
            last.is_end = true;
        }
        hops
    }

    /// Places as first and last hop, and the number of ends that show each.
    fn places(
        direction: PathDirection,
        client: &[Option<u64>],
        server: &[Option<u64>],
        end_ms: i64,
    ) -> Vec<(u8, u8, usize)> {
        let path = PathHops {
            from_client: traced(client, direction),
            from_server: traced(server, direction),
            queues: Vec::new(),
        };
        let found = queues(&path, direction, end_ms * 1_000_000);
        found
            .iter()
            .map(|queue| (queue.first_hop, queue.last_hop, queue.seen_by.len()))
            .collect()
    }

    #[test]
    fn a_queue_is_where_the_added_delay_begins() {
        use PathDirection::{Down, Up};

        let (x, o) = (Some(20), Some(0));
        for (direction, client, server, end_ms, expected) in [
            // At the exit of hop 2 of four, as both ends see it.
            (
                Up,
                &[o, o, x, x][..],
                &[o, x, x, x][..],
                20,
                vec![(2, 2, 2)],
            ),
            (Down, &[o, x, x, x], &[o, o, x, x], 20, vec![(2, 2, 2)]),
            // Of this host and of the server.
            (Up, &[x, x, x, x], &[o, o, o, x], 20, vec![(0, 0, 2)]),
            (Down, &[o, o, o, x], &[x, x, x, x], 20, vec![(4, 4, 2)]),
            // One end alone; silent hops widen the place.
            (Up, &[o, None, None, x, x], &[], 20, vec![(1, 3, 1)]),
            (
                Up,
                &[o, None, None, x, x],
                &[o, None, x, x, x],
                20,
                vec![(2, 3, 2)],
            ),
            // A router that answers slowly, and a delay too small to have a place.
            (Up, &[o, Some(50), o, x], &[], 20, vec![(3, 3, 1)]),
            (Up, &[o, Some(2), Some(2), Some(2)], &[], 2, vec![]),
            // Two queues; and ends that contradict each other.
            (
                Up,
                &[o, Some(15), Some(15), Some(40)],
                &[],
                40,
                vec![(1, 1, 1), (3, 3, 1)],
            ),
            (Up, &[o, x, x, x], &[x, x, x, x], 20, vec![(1, 3, 0)]),
        ] {
            let found = places(direction, client, server, end_ms);
            assert_eq!(found, expected, "{direction:?} {client:?} {server:?}");
        }
    }

    #[test]
    fn fewer_than_five_answers_under_load_are_no_statement() {
        let mut hops = traced(&[Some(0), Some(0), Some(20)], PathDirection::Up);
        for hop in hops.iter_mut().take(2) {
            if let Some(up) = &mut hop.up {
                up.answers = ANSWERS_MIN - 1;
            }
        }
        let found = steps(&hops, PathDirection::Up, 3, 20_000_000);
        let expected = Step {
            before: 0,
            behind: 3,
            added_ns: 20_000_000,
        };
        assert_eq!(found, [expected]);
    }
}
