//! The place of a queue on the path, in words.

use linerate_document::number::time;
use linerate_model::finding::{Evidence, Finding, Verdict};
use linerate_model::path::{HopQueue, PathDirection, PathHops, PhaseKind};

use super::conclusion::parted;
use crate::limit::PATH_RATE;
use crate::report;
use crate::rules::latency::likely_place;

/// Rule about a queue that delays packets.
const LONG_QUEUE: &str = "LAT-02";

/// `hop 2 (192.0.2.1) to hop 3 (192.0.2.9)`; where the place is not known exactly, `between hop 2
/// (192.0.2.1) and the server`.
pub fn place(queue: &HopQueue, path: &PathHops) -> String {
    let [from, to] = ends(queue, path);
    if is_exact(queue) {
        format!("{from} to {to}")
    } else {
        format!("between {from} and {to}")
    }
}

/// `, first seen at hop 3 (192.0.2.9)`: the hop that first received these bits of the TOS byte with
/// another value than `sent`. It or the hop before changed them. Empty where no router quotes it.
pub fn first_changed(path: &PathHops, direction: PathDirection, bits: u8, sent: u8) -> String {
    let Some(hop) = path.first_changed(direction, bits, sent) else {
        return String::new();
    };
    let from_client = match direction {
        PathDirection::Up => Some(hop.hop),
        PathDirection::Down => path.length().and_then(|len| len.checked_sub(hop.hop)),
    };
    match (from_client, hop.address) {
        (Some(number), _) => format!(", first seen at {}", station(number, path)),
        (None, Some(address)) => format!(", first seen at {address}"),
        (None, None) => String::new(),
    }
}

/// The hop that has the queue, or from which it is reached, and the hop behind it.
fn ends(queue: &HopQueue, path: &PathHops) -> [String; 2] {
    let first = queue.first_hop;
    let last = queue.last_hop;
    let (from, to) = match queue.direction {
        PathDirection::Up => (first, last.saturating_add(1)),
        PathDirection::Down => (last, first.saturating_sub(1)),
    };
    [from, to].map(|hop| station(hop, path))
}

const fn is_exact(queue: &HopQueue) -> bool {
    queue.first_hop == queue.last_hop
}

/// A hop in words; 0 is the client.
fn station(number: u8, path: &PathHops) -> String {
    if number == 0 {
        return "this host".to_owned();
    }
    if path.length().is_none_or(|length| number >= length)
        && !path
            .from_client
            .iter()
            .any(|hop| hop.hop == number && !hop.is_end)
    {
        return "the server".to_owned();
    }

    let hop = path.from_client.iter().find(|hop| hop.hop == number);
    let address = hop.and_then(|hop| hop.address);
    let address = address.map_or_else(String::new, |address| format!(" {address}"));
    match number {
        1 => format!("your own router (hop 1{})", address.replacen(' ', ", ", 1)),
        _ if address.is_empty() => format!("hop {number}"),
        _ => format!("hop {number} ({})", address.trim_start()),
    }
}

/// Names the place of the queue that sets the rate in the verdict of each load.
pub(super) fn name_places(verdicts: &mut [(PhaseKind, Verdict)], path: &PathHops) {
    for (kind, verdict) in verdicts {
        let [direction] = kind.load_directions() else {
            continue;
        };
        let mut queues = path
            .queues
            .iter()
            .filter(|queue| queue.direction == *direction);
        let Some(first) = queues.next().filter(|_| verdict.verdict == PATH_RATE) else {
            continue;
        };

        let part = if is_exact(first) { "" } else { "a hop " };
        let mut sentence = format!(
            "{part}{} sets the rate, its queue adds {}",
            place(first, path),
            time(first.added_ns as f64)
        );
        if let Some(second) = queues.next() {
            sentence += &format!(
                ", and one at {} adds {}",
                place(second, path),
                time(second.added_ns as f64)
            );
        }
        let finding = parted(&verdict.sentence).1;
        verdict.sentence = sentence + finding;
    }
}

/// Adds the place to the findings about a queue of one direction, and to what is to be done there.
pub(super) fn add_places(findings: &mut [Finding], path: &PathHops) {
    for finding in findings
        .iter_mut()
        .filter(|finding| finding.id == LONG_QUEUE)
    {
        let of_load = |queue: &&HopQueue| report::place(finding) == queue.direction.name();
        if let Some(queue) = path.queues.iter().find(of_load) {
            let seen = Evidence::new("place", place(queue, path), "");
            finding.evidence.push(seen);

            let at = if is_exact(queue) {
                format!("on {}", ends(queue, path)[0])
            } else {
                place(queue, path)
            };
            let usual = likely_place(queue.direction.name());
            finding.advice = finding
                .advice
                .as_ref()
                .map(|advice| advice.replace(usual, &at));
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::path::Hop;

    use super::*;

    fn path() -> PathHops {
        let hop = |number| Hop {
            hop: number,
            address: Some([192, 0, 2, number].into()).filter(|_| number != 3),
            is_end: number == 4,
            ..Hop::default()
        };
        PathHops {
            from_client: (1..=4).map(hop).collect(),
            ..PathHops::default()
        }
    }

    #[test]
    fn the_remedy_of_a_queue_is_at_its_hop() {
        let mut findings = ["client to server", "server to client"].map(|direction| {
            let finding = serde_json::json!({
                "id": LONG_QUEUE, "severity": "medium", "confidence": "high",
                "subject": format!("client test, {direction}"), "title": "", "evidence": [],
                "explanation": "", "remedy": [], "undo": [], "reference": "",
                "advice": format!("fq_codel {}", likely_place("up")),
            });
            serde_json::from_value(finding).expect("a finding")
        });
        let queues = vec![HopQueue {
            direction: PathDirection::Up,
            first_hop: 2,
            last_hop: 2,
            added_ns: 20_000_000,
            seen_by: Vec::new(),
        }];

        add_places(&mut findings, &PathHops { queues, ..path() });

        let [up, down]: [Finding; 2] = findings;
        assert_eq!(up.advice.as_deref(), Some("fq_codel on hop 2 (192.0.2.2)"));
        assert_eq!(up.evidence[0].value, "hop 2 (192.0.2.2) to hop 3");
        assert!(down.evidence.is_empty(), "{down:?}");
    }

    #[test]
    fn places_are_links_or_parts_of_the_path() {
        use PathDirection::{Down, Up};

        for (direction, first_hop, last_hop, expected) in [
            (Up, 0, 0, "this host to your own router (hop 1, 192.0.2.1)"),
            (
                Up,
                1,
                1,
                "your own router (hop 1, 192.0.2.1) to hop 2 (192.0.2.2)",
            ),
            (
                Down,
                2,
                2,
                "hop 2 (192.0.2.2) to your own router (hop 1, 192.0.2.1)",
            ),
            (Up, 2, 2, "hop 2 (192.0.2.2) to hop 3"),
            (Up, 3, 3, "hop 3 to the server"),
            (Down, 4, 4, "the server to hop 3"),
            (Up, 2, 3, "between hop 2 (192.0.2.2) and the server"),
            (
                Down,
                2,
                3,
                "between hop 3 and your own router (hop 1, 192.0.2.1)",
            ),
        ] {
            let queue = HopQueue {
                direction,
                first_hop,
                last_hop,
                added_ns: 20_000_000,
                seen_by: Vec::new(),
            };
            assert_eq!(place(&queue, &path()), expected);
        }
    }
}
