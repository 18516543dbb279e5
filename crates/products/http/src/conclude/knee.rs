//! Throughput and latency over the connections of one payload: where throughput stops growing,
//! where latency jumps, and which number of connections is best.

use linerate_model::http::units::{percent, rounded};
use linerate_model::http::{Medians, Position, Row};

use crate::plan::Objective;

/// Throughputs closer than this are equal, however little the runs differ.
const TOLERANCE_MIN: f64 = 0.03;
/// Throughputs closer than this multiple of the usual spread of the runs are equal.
const TOLERANCE_SPREADS: f64 = 1.5;
/// Latency has grown when the 99th percentile is this multiple of that at the knee …
const P99_GROWTH: f64 = 2.0;
/// … and the median rises at least so steeply with the connections: 1 is in proportion, as in a
/// queue.
const P50_SLOPE: f64 = 0.7;
/// Latency has jumped when the 99th percentile is this multiple of that at the knee …
const CLIFF_P99: f64 = 5.0;
/// … or when this share of the requests is not answered in time.
const CLIFF_TIMEOUTS: f64 = 0.001;
/// Runs of a stable cell differ by at most this.
const STABLE_SPREAD: f64 = 0.05;
/// Least ratio of an added cell to its neighbours.
const REFINEMENT_STEP: f64 = 1.1;

/// One cell of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Point {
    /// Connections.
    pub connections: u32,
    /// Requests at a time on each of them.
    pub streams: u32,
    /// Medians of its runs.
    pub medians: Medians,
    /// Requests that were not answered in time, as a share of all that ended.
    pub timeout_share: Option<f64>,
    /// The runs are valid.
    pub is_valid: bool,
    /// One of the hosts was at a limit of its own.
    pub is_limited: bool,
}

impl Point {
    /// Complete 2xx responses per second; 0 for an unknown rate, which no valid point has.
    fn ok_per_s(&self) -> f64 {
        self.medians.ok_per_s.unwrap_or(0.0)
    }
}

/// The cells of one payload together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    /// The reported row.
    pub row: Row,
    /// Valid points with a rate, by connections.
    valid: Vec<Point>,
    /// Connections of all points.
    connections: Vec<u32>,
}

impl Shape {
    /// Finds the knee of the cells of a payload, in any order.
    pub(super) fn of(payload_bytes: u64, mut points: Vec<Point>, objective: &Objective) -> Self {
        points.sort_by_key(|point| point.connections);
        let connections = points.iter().map(|point| point.connections).collect();
        let valid: Vec<Point> = points
            .into_iter()
            .filter(|point| point.is_valid && point.medians.ok_per_s.is_some())
            .collect();
        let tolerance = tolerance(&valid);
        let mut row = Row {
            payload_bytes,
            tolerance,
            ..Row::default()
        };

        if let Some((best_per_s, knee)) = knee(&valid, tolerance) {
            row.best_per_s = Some(best_per_s);
            row.knee_connections = Some(knee.connections);
            row.predicted_connections =
                valid.first().and_then(|least| predicted(best_per_s, least));

            let past = valid
                .iter()
                .filter(|cell| is_queueing(cell, &knee, tolerance));
            row.queueing_connections = past.map(|cell| cell.connections).collect();
            let jumped = valid.iter().find(|cell| is_cliff(cell, &knee));
            row.cliff = jumped.map(|cell| cliff(&knee, cell));
            row.cliff_connections = jumped.map(|cell| cell.connections);

            let stable = best_stable(&valid, best_per_s, tolerance, objective);
            row.best_stable_connections = stable.map(|(connections, _)| connections);
            row.is_limited_by_objective = stable.is_some_and(|(_, is_limited)| is_limited);
        }

        Self {
            row,
            valid,
            connections,
        }
    }

    /// Where a cell lies among the others; the cell itself may be one beyond them.
    pub(super) fn position(&self, point: &Point) -> Position {
        let best = |is_wanted: &dyn Fn(u32) -> bool| {
            let cells = self.valid.iter().filter(|cell| is_wanted(cell.connections));
            cells.map(Point::ok_per_s).reduce(f64::max)
        };
        let knee =
            knee(&self.valid, self.row.tolerance).filter(|_| point.medians.ok_per_s.is_some());

        Position {
            is_queueing: knee
                .is_some_and(|(_, knee)| is_queueing(point, &knee, self.row.tolerance)),
            best_larger_per_s: best(&|connections| connections > point.connections),
            best_smaller_per_s: best(&|connections| connections < point.connections),
            predicted_connections: self.row.predicted_connections,
            best_stable_connections: self.row.best_stable_connections,
        }
    }

    /// The number of connections that narrows the knee most: a smaller one where the first cell is
    /// the knee already, else one between the knee and the cell before it. `None` where it would be
    /// too close to another.
    pub(super) fn refinement(&self) -> Option<u32> {
        let valid = &self.valid;
        let knee_at = valid
            .iter()
            .position(|cell| Some(cell.connections) == self.row.knee_connections)?;
        let knee = valid.get(knee_at)?.connections;

        let (below, wanted) = match knee_at.checked_sub(1).and_then(|before| valid.get(before)) {
            None => (0, self.row.predicted_connections?),
            Some(before) => {
                let before = before.connections;
                // The geometric mean lies halfway between both on a logarithmic axis.
                (before, (f64::from(before) * f64::from(knee)).sqrt())
            }
        };
        let wanted = wanted.round().max(1.0);
        let is_new = wanted * REFINEMENT_STEP <= f64::from(knee)
            && wanted >= f64::from(below) * REFINEMENT_STEP
            && self
                .connections
                .iter()
                .all(|connections| f64::from(*connections) != wanted);

        is_new.then_some(wanted as u32)
    }
}

/// Difference up to which throughputs count as equal: 3 %, or half as much again as the runs of a
/// cell usually differ.
fn tolerance(valid: &[Point]) -> f64 {
    let spreads: Vec<f64> = valid
        .iter()
        .filter_map(|cell| cell.medians.spread)
        .collect();
    linerate_model::stats::median(&spreads).map_or(TOLERANCE_MIN, |spread| {
        TOLERANCE_MIN.max(TOLERANCE_SPREADS * spread)
    })
}

/// The best throughput, and the first cell that reaches it within the tolerance.
fn knee(valid: &[Point], tolerance: f64) -> Option<(f64, Point)> {
    let best_per_s = valid
        .iter()
        .map(Point::ok_per_s)
        .reduce(f64::max)
        .filter(|best| *best > 0.0)?;
    // Cells are in the order of their connections, so the first one has the fewest.
    let knee = valid
        .iter()
        .find(|cell| cell.ok_per_s() >= (1.0 - tolerance) * best_per_s)?;
    Some((best_per_s, *knee))
}

/// Little's law: the connections whose requests in flight the best throughput needs at the latency
/// of the least loaded cell.
fn predicted(best_per_s: f64, least: &Point) -> Option<f64> {
    let in_flight = best_per_s * least.medians.p50_ns? as f64 / 1e9;
    Some(in_flight / f64::from(least.streams.max(1)))
}

/// Past the knee, no faster, and slower to answer.
fn is_queueing(cell: &Point, knee: &Point, tolerance: f64) -> bool {
    cell.connections > knee.connections
        && cell.ok_per_s() <= (1.0 + 2.0 * tolerance) * knee.ok_per_s()
        && has_grown(cell, knee).unwrap_or(false)
}

fn has_grown(cell: &Point, knee: &Point) -> Option<bool> {
    let ratio = |cell: u64, knee: u64| cell as f64 / knee.max(1) as f64;
    let more_connections = f64::from(cell.connections) / f64::from(knee.connections.max(1));
    let slope = ratio(cell.medians.p50_ns?, knee.medians.p50_ns?).ln() / more_connections.ln();
    Some(ratio(cell.medians.p99_ns?, knee.medians.p99_ns?) >= P99_GROWTH && slope >= P50_SLOPE)
}

fn is_cliff(cell: &Point, knee: &Point) -> bool {
    cell.connections > knee.connections
        && (p99_ratio(cell, knee).is_some_and(|ratio| ratio >= CLIFF_P99)
            || cell
                .timeout_share
                .is_some_and(|share| share > CLIFF_TIMEOUTS))
}

fn p99_ratio(cell: &Point, knee: &Point) -> Option<f64> {
    Some(cell.medians.p99_ns? as f64 / knee.medians.p99_ns?.max(1) as f64)
}

fn cliff(knee: &Point, cell: &Point) -> String {
    let gain = cell.ok_per_s() / knee.ok_per_s() - 1.0;
    let sign = if gain >= 0.0 { "+" } else { "−" };
    let mut text = format!(
        "c{} → c{}: {sign}{} throughput",
        knee.connections,
        cell.connections,
        percent(gain.abs())
    );

    if let Some(ratio) = p99_ratio(cell, knee) {
        text += &format!(", {} × p99", rounded(ratio));
    }

    if let Some(share) = cell.timeout_share.filter(|share| *share > CLIFF_TIMEOUTS) {
        text += &format!(", {} not answered in time", percent(share));
    }

    text
}

/// The fewest connections that are fast, steady, within the wanted latency and without failures.
/// Where the wanted latency excludes them all: the fastest within it, and `true`.
fn best_stable(
    valid: &[Point],
    best_per_s: f64,
    tolerance: f64,
    objective: &Objective,
) -> Option<(u32, bool)> {
    let is_stable = |cell: &&Point| {
        !cell.is_limited
            && cell
                .medians
                .error_share
                .is_some_and(|share| share <= objective.error_share)
            && cell
                .medians
                .spread
                .is_none_or(|spread| spread <= STABLE_SPREAD)
    };
    let is_fast = |cell: &&Point| cell.ok_per_s() >= (1.0 - tolerance) * best_per_s;

    let is_within = |cell: &&Point| {
        objective.p99.is_none_or(|most| {
            cell.medians
                .p99_ns
                .is_some_and(|p99_ns| u128::from(p99_ns) <= most.as_nanos())
        })
    };
    let stable = || valid.iter().filter(is_stable);
    if let Some(cell) = stable().filter(is_fast).find(is_within) {
        return Some((cell.connections, false));
    }

    let excluded_by_objective = stable().any(|cell| is_fast(&cell));
    let fastest = stable()
        .filter(is_within)
        .max_by(|a, b| a.ok_per_s().total_cmp(&b.ok_per_s()));
    fastest
        .filter(|_| excluded_by_objective)
        .map(|cell| (cell.connections, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const ANY: Objective = Objective {
        p99: None,
        error_share: 1e-4,
    };

    /// A saturated server behind a fixed latency: throughput grows to `best_per_s` and then stays,
    /// latency follows Little's law.
    fn saturating(best_per_s: f64, latency_ns: f64, connections: &[u32]) -> Vec<Point> {
        let point = |connections: &u32| {
            let c = f64::from(*connections);
            let ok_per_s = (c / latency_ns * 1e9).min(best_per_s);
            let p50_ns = (c / ok_per_s * 1e9) as u64;
            let medians = Medians {
                ok_per_s: Some(ok_per_s),
                p50_ns: Some(p50_ns),
                p99_ns: Some(2 * p50_ns),
                spread: Some(0.01),
                error_share: Some(0.0),
                ..Medians::default()
            };

            Point {
                connections: *connections,
                streams: 1,
                medians,
                timeout_share: Some(0.0),
                is_valid: true,
                is_limited: false,
            }
        };
        connections.iter().map(point).collect()
    }

    /// The row after changes of some points.
    fn changed(points: &[Point], change: impl Fn(&mut [Point])) -> Row {
        let mut points = points.to_vec();
        change(&mut points);
        row(points)
    }

    fn row(points: Vec<Point>) -> Row {
        Shape::of(1024, points, &ANY).row
    }

    #[test]
    fn the_knee_is_where_throughput_stops_growing_and_little_predicts_it() {
        let row = row(saturating(100_000.0, 400_000.0, &[16, 32, 64, 128, 256]));
        assert_eq!(row.knee_connections, Some(64));
        assert_eq!(row.best_stable_connections, Some(64));
        assert_eq!(row.queueing_connections, [128, 256]);

        let predicted = row.predicted_connections.expect("known");
        assert!((predicted - 40.0).abs() < 0.1, "{predicted}");
        assert_eq!(row.cliff, None);
        assert!((row.tolerance - 0.03).abs() < 1e-9);
    }

    #[test]
    fn streams_share_what_little_predicts() {
        let mut points = saturating(100_000.0, 400_000.0, &[16, 32, 64]);
        points.iter_mut().for_each(|point| point.streams = 8);
        let predicted = row(points).predicted_connections.expect("known");
        assert!((predicted - 5.0).abs() < 0.1, "{predicted}");
    }

    #[test]
    fn runs_that_differ_widen_what_counts_as_equal() {
        let mut points = saturating(100_000.0, 600_000.0, &[32, 58, 64]);
        assert_eq!(row(points.clone()).knee_connections, Some(64));
        points
            .iter_mut()
            .for_each(|point| point.medians.spread = Some(0.04));

        let row = row(points);
        assert!((row.tolerance - 0.06).abs() < 1e-9);
        assert_eq!(row.knee_connections, Some(58));
    }

    #[test]
    fn a_cliff_is_a_jump_of_latency_or_timeouts() {
        let mut points = saturating(100_000.0, 400_000.0, &[64, 128, 256, 512]);
        let text = row(points.clone())
            .cliff
            .expect("eight times the connections");
        assert_eq!(text, "c64 → c512: +0 % throughput, 8 × p99");
        points[1].timeout_share = Some(0.02);
        points[1].medians.ok_per_s = Some(90_000.0);

        let text = row(points).cliff.expect("timeouts");
        assert_eq!(
            text,
            "c64 → c128: −10 % throughput, 2 × p99, 2 % not answered in time"
        );
    }

    #[test]
    fn latency_that_does_not_grow_is_no_queue() {
        let mut points = saturating(100_000.0, 400_000.0, &[64, 128]);
        points[1].medians.p99_ns = points[0].medians.p99_ns;
        assert!(row(points.clone()).queueing_connections.is_empty());
        points[1].medians.p99_ns = None;
        assert!(row(points).queueing_connections.is_empty());
    }

    #[test]
    fn invalid_cells_are_ignored_and_limited_ones_are_not_best() {
        let points = saturating(100_000.0, 400_000.0, &[16, 64, 128]);
        let invalid = changed(&points, |points| {
            (points[2].medians.ok_per_s, points[2].is_valid) = (Some(900_000.0), false);
        });
        assert_eq!(invalid.best_per_s, Some(100_000.0));

        let spoiled: [fn(&mut Point); 3] = [
            |point| point.is_limited = true,
            |point| point.medians.spread = Some(0.06),
            |point| point.medians.error_share = Some(0.001),
        ];
        for spoil in spoiled {
            let row = changed(&points, |points| spoil(&mut points[1]));
            assert_eq!(row.best_stable_connections, Some(128));
        }

        let none = row(Vec::new());
        assert_eq!(
            (
                none.best_per_s,
                none.knee_connections,
                none.best_stable_connections
            ),
            (None, None, None)
        );
    }

    #[test]
    fn objective_that_excludes_all_fast_cells_leaves_the_fastest_within_it() {
        let points = saturating(100_000.0, 400_000.0, &[8, 16, 64, 128]);
        let within = |p99_us: u64| Objective {
            p99: Some(Duration::from_micros(p99_us)),
            ..ANY
        };

        for (p99_us, expected) in [
            (1300, (Some(64), false)),
            (1000, (Some(16), true)),
            (100, (None, false)),
        ] {
            let row = Shape::of(1024, points.clone(), &within(p99_us)).row;
            assert_eq!(
                (row.best_stable_connections, row.is_limited_by_objective),
                expected,
                "{p99_us} us"
            );
        }
    }

    #[test]
    fn cells_are_added_between_the_knee_and_its_lower_neighbour() {
        let shape = |connections: &[u32]| {
            Shape::of(1024, saturating(100_000.0, 400_000.0, connections), &ANY)
        };
        assert_eq!(shape(&[16, 64, 128]).refinement(), Some(32));

        // Half of the connections would do by the latency of the first cell: 64 / 100,000 s.
        let mut first = saturating(100_000.0, 400_000.0, &[64, 128]);
        first[0].medians.p50_ns = Some(300_000);
        assert_eq!(Shape::of(1024, first, &ANY).refinement(), Some(30));
        assert_eq!(shape(&[64, 128]).refinement(), None);
        assert_eq!(shape(&[38, 40]).refinement(), None);
        assert_eq!(shape(&[]).refinement(), None);
    }

    #[test]
    fn position_is_relative_to_the_other_cells_of_the_payload() {
        let points = saturating(100_000.0, 400_000.0, &[16, 64, 256]);
        let shape = Shape::of(1024, points.clone(), &ANY);
        let first = shape.position(&points[0]);
        assert_eq!(
            (first.best_larger_per_s, first.best_smaller_per_s),
            (Some(100_000.0), None)
        );

        let medians = Medians {
            ok_per_s: Some(80_000.0),
            p50_ns: Some(125_000_000),
            p99_ns: Some(250_000_000),
            ..Medians::default()
        };

        let beyond = shape.position(&Point {
            connections: 10_000,
            medians,
            ..points[2]
        });
        assert!(beyond.is_queueing);
        assert_eq!(
            (beyond.best_larger_per_s, beyond.best_stable_connections),
            (None, Some(64))
        );
    }
}
