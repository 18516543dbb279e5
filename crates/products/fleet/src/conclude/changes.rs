//! Which hosts and pairs explain cells that changed: the rule for outliers among rates, applied to
//! the rate of each cell in relation to that before.

use std::collections::BTreeMap;

use linerate_history::conclude::episodes::{CellRatio, Group};
use linerate_model::finding::Finding;
use linerate_model::fleet::{Cell, CellOutcome, FleetMode, HostId, Measurement, Task};

use super::effects::Analysis;
use super::{analyse, findings, is_slow};

/// Rate of a cell that has not changed, in bit/s.
const UNCHANGED_BPS: f64 = 1e9;

/// The hosts, pairs and uplinks of racks that got slower, of each path and factor.
pub fn group(cells: &[CellRatio<'_>], racks: &BTreeMap<HostId, String>) -> Vec<Group> {
    let mut treatments: BTreeMap<&str, Vec<(usize, Cell)>> = BTreeMap::new();
    for (place, of) in cells.iter().enumerate() {
        // Records of others may have any text as the name of a host.
        let (Ok(source), Ok(sink)) = (of.key.source.parse(), of.key.sink.parse()) else {
            continue;
        };
        let measured = Measurement {
            goodput_bps: of.ratio * UNCHANGED_BPS,
            ..Measurement::default()
        };
        let task = Task::new(source, sink, "");
        let cell = Cell::new(task, FleetMode::Rounds, CellOutcome::Measured(measured));
        let of_treatment = treatments.entry(&of.key.treatment).or_default();
        of_treatment.push((place, cell));
    }

    let mut groups = Vec::new();
    for cells in treatments.into_values() {
        let all: Vec<&Cell> = cells.iter().map(|(_, cell)| cell).collect();
        if let Some(analysis) = analyse(&all, racks) {
            for finding in findings(&analysis, racks) {
                groups.push(of_finding(&analysis, racks, &cells, finding));
            }
        }
    }

    groups
}

fn of_finding(
    analysis: &Analysis,
    racks: &BTreeMap<HostId, String>,
    cells: &[(usize, Cell)],
    finding: Finding,
) -> Group {
    let effects = &analysis.effects;
    let mut uplinks = analysis.uplinks.iter();
    let uplink = uplinks.find(|uplink| uplink.name() == finding.subject);
    let mut hosts = effects.hosts.iter().filter(|host| is_slow(host));
    let host = hosts.find(|host| host.host.as_str() == finding.subject);
    // `a and b`, `a or b`; the finding about many pairs names none.
    let ends: Vec<&str> = finding.subject.split(' ').collect();
    let is_named = |id: &HostId| ends.len() != 3 || ends.contains(&id.as_str());

    let mut members = Vec::new();
    for (place, Cell { task, .. }) in cells {
        let is_member = match (host, uplink) {
            (Some(of), _) => {
                of.sends.is_slow && task.source == of.host
                    || of.receives.is_slow && task.sink == of.host
            }
            (None, Some(uplink)) => uplink.carries(racks.get(&task.source), racks.get(&task.sink)),
            (None, None) => {
                let mut pairs = effects.pairs.iter();
                pairs.any(|pair| pair.source == task.source && pair.sink == task.sink)
                    && is_named(&task.source)
                    && is_named(&task.sink)
            }
        };
        if is_member {
            members.push(*place);
        }
    }

    let host = host.map(|of| of.host.to_string());
    Group {
        subject: match &host {
            Some(host) => format!("host {host}"),
            None => finding.subject,
        },
        host,
        finding: Some(finding.id),
        members,
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use linerate_history::conclude::episodes::{Episode, episodes};
    use linerate_history::conclude::grid::{CELL_MEASURE, Grid, RowKey};

    use super::*;

    /// Rounds of a mesh of six hosts at 941 Mbit/s; `change` is the share of a cell in a round, or
    /// that it has no result.
    fn mesh(
        rounds: usize,
        seed: u64,
        change: impl Fn(usize, &str, &str) -> Option<f64>,
    ) -> Vec<Episode> {
        episodes(&grid(&HOSTS[..6], rounds, seed, change), group)
    }

    const HOSTS: [&str; 9] = [
        "c01", "c02", "c03", "c04", "c05", "c06", "c07", "c08", "c09",
    ];

    fn grid(
        hosts: &[&str],
        rounds: usize,
        seed: u64,
        change: impl Fn(usize, &str, &str) -> Option<f64>,
    ) -> Grid {
        let mut rng = Rng::with_seed(seed);
        let mut entries = Vec::new();
        for round in 1..=rounds {
            for (source, sink) in hosts
                .iter()
                .flat_map(|a| hosts.iter().map(move |b| (*a, *b)))
            {
                if source == sink {
                    continue;
                }
                // From one part in a thousand to two in a hundred.
                let noise = 1.0
                    + 0.02 / [1.0, 4.0, 20.0][seed as usize % 3]
                        * ((0..12).map(|_| rng.f64()).sum::<f64>() - 6.0);
                let key = RowKey {
                    source: source.to_owned(),
                    sink: sink.to_owned(),
                    treatment: "lab".to_owned(),
                };
                let share = change(round, source, sink);
                entries.push((round - 1, key, share.map(|share| 941e6 * share * noise)));
            }
        }

        let starts = (0..rounds as u64).map(|round| round * 600_000).collect();
        Grid::new(CELL_MEASURE, starts, entries)
    }

    /// Subject, first round, round after which it was found, and the same of its end.
    fn brief(episode: &Episode) -> (&str, usize, usize, Option<(usize, usize)>) {
        let ended = episode.ended.map(|(began, found)| (began + 1, found + 1));
        (
            &episode.subject,
            episode.began + 1,
            episode.found + 1,
            ended,
        )
    }

    #[test]
    fn cable_that_becomes_slow_is_one_episode_of_its_host_with_its_round_and_one_recovery() {
        for seed in 0..40 {
            let found = mesh(30, seed, |round, a, b| {
                let is_slow = (12..20).contains(&round) && (a == "c03" || b == "c03");
                Some(if is_slow { 0.1 } else { 1.0 })
            });
            let [episode] = found.as_slice() else {
                panic!("{seed}: {found:?}")
            };
            let (subject, began, found, ended) = brief(episode);
            let (back, seen) = ended.expect("a recovery");
            assert_eq!((subject, began, back), ("host c03", 12, 20), "{seed}");
            assert!(
                (15..=16).contains(&found) && (23..=24).contains(&seen),
                "{seed}: {found} {seen}"
            );

            let sentence = episode.sentence(|at| format!("round {}", at + 1));
            let (start, rest) = sentence.split_once("fell to 9").expect("a rate");
            assert_eq!(start, "host c03: 5 of 5 pairs ");
            assert!(rest.ends_with("Mbit/s at round 12 (FLT-01)"), "{sentence}");
        }
    }

    #[test]
    fn changes_are_those_of_what_got_slower_and_of_nothing_else() {
        type Change = fn(usize, &str, &str) -> Option<f64>;
        let cases: [(&str, Change, &[&str]); 7] = [
            ("steady", |_, _, _| Some(1.0), &[]),
            (
                "receiver",
                |at, _, b| Some(if at > 11 && b == "c05" { 0.4 } else { 1.0 }),
                &["host c05"],
            ),
            (
                "pair",
                |at, a, b| {
                    Some(if at > 11 && a.min(b) == "c01" && a.max(b) == "c04" {
                        0.5
                    } else {
                        1.0
                    })
                },
                &["c01 and c04"],
            ),
            (
                "all",
                |at, _, _| Some(if at > 11 { 0.5 } else { 1.0 }),
                &["15 pairs"],
            ),
            (
                "unplugged",
                |at, a, b| (at < 12 || a != "c02" && b != "c02").then_some(1.0),
                &["host c02"],
            ),
            (
                "slow from the start",
                |_, a, b| Some(if a == "c06" || b == "c06" { 0.1 } else { 1.0 }),
                &[],
            ),
            (
                "two hosts",
                |at, a, b| {
                    let is = |host: &str, from: usize| at >= from && (a == host || b == host);
                    Some(if is("c01", 12) || is("c02", 22) {
                        0.1
                    } else {
                        1.0
                    })
                },
                &["host c01", "host c02"],
            ),
        ];
        for (name, change, subjects) in cases {
            for seed in 0..10 {
                let found = mesh(40, seed, change);
                let found: Vec<&str> = found.iter().map(|one| &*one.subject).collect();
                assert_eq!(found, subjects, "{name}, seed {seed}");
            }
        }
    }

    #[test]
    fn uplink_that_becomes_slow_is_named_where_the_racks_are_known() {
        let rack = |host: &str| HOSTS.iter().position(|one| *one == host).map(|at| at / 3);
        let mut grid = grid(&HOSTS, 20, 1, |at, a, b| {
            let passes = rack(a) != rack(b) && (rack(a) == Some(0) || rack(b) == Some(0));
            Some(if at > 11 && passes { 0.2 } else { 1.0 })
        });
        let without = episodes(&grid, group);
        assert!(
            !without.iter().any(|one| one.subject.contains("uplink")),
            "{without:?}"
        );

        let racks = HOSTS.iter().filter_map(|host| {
            let name = format!("r{}", rack(host)?);
            Some((host.parse().ok()?, name))
        });
        grid.racks = racks.collect();
        let found = episodes(&grid, group);
        let [episode] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(
            (&*episode.subject, episode.rows.len()),
            ("uplink of r0", 36)
        );
    }

    #[test]
    fn pairs_without_a_result_are_those_of_an_unplugged_host() {
        let found = mesh(20, 1, |at, a, b| {
            (!(14..18).contains(&at) || a != "c02" && b != "c02").then_some(1.0)
        });
        let [episode] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(brief(episode), ("host c02", 14, 16, Some((18, 18))));
        assert_eq!(
            episode.sentence(|at| format!("round {}", at + 1)),
            "host c02: 5 of 5 pairs without a result at round 14 (FLT-01)"
        );
    }
}
