//! Many connections: what an idle one costs, whether a low rate is served in time, what is left
//! when all are busy.

use linerate_model::http::units::{bytes_name, grouped, percent, rounded, time_name};
use linerate_model::http::{
    Cell, CellRun, EndpointStats, Idle, IdleStep, Medians, MemoryLine, Pass, Phase, Row, RunState,
};

use super::medians::{counted, cpus};

/// A line describes the points from this coefficient of determination on.
const LINEAR: f64 = 0.99;
/// So little memory for each connection exhausts no host.
const LITTLE_BYTES: f64 = 256.0;
/// CPU time of 10,000 idle connections, as a share of one CPU: more are timers or polling.
const IDLE_CPU_OF_10K: f64 = 0.01;
/// Descriptors in use, as a share of the limit, from which on the next step would fail.
const FDS_FULL: f64 = 0.98;
/// Most of the 99th percentile at a low rate in a local network.
const LOW_RATE_P99_NS: u64 = 10_000_000;
/// Least share of the offered rate.
const LOW_RATE_ACHIEVED: f64 = 0.999;
/// Points a line needs, or it fits whatever they are.
const POINTS_MIN: usize = 3;

/// The idle steps of an experiment and the lines through them; `None` without any.
pub(crate) fn idle(runs: &[CellRun]) -> Option<Idle> {
    let mut steps: Vec<IdleStep> = idle_runs(runs).filter_map(step).collect();
    steps.sort_by_key(|step| step.wanted);
    let line = |bytes| line_of(&steps, bytes);
    let idle = Idle {
        server_user: line(|step| step.server_rss_bytes),
        server_kernel: line(|step| step.server_kernel_bytes),
        client_user: line(|step| step.client_rss_bytes),
        steps,
    };

    (!idle.steps.is_empty()).then_some(idle)
}

fn line_of(steps: &[IdleStep], bytes: fn(&IdleStep) -> Option<u64>) -> Option<MemoryLine> {
    let points = steps
        .iter()
        .filter_map(|step| Some((step.open as f64, bytes(step)? as f64)));
    memory_line(&points.collect::<Vec<_>>())
}

fn idle_runs(runs: &[CellRun]) -> impl Iterator<Item = &CellRun> {
    let idle = runs.iter().filter(|run| run.key.phase == Phase::Idle);
    // A step that was made again replaces the one before.
    idle.filter(|run| run.state == RunState::Done)
        .filter(move |run| {
            let again = runs
                .iter()
                .rfind(|other| other.key == run.key && other.state == RunState::Done);
            again.is_some_and(|last| std::ptr::eq(last, *run))
        })
}

fn step(run: &CellRun) -> Option<IdleStep> {
    let load = run.load.as_ref()?;
    let server = run.server.as_ref();
    let held = load
        .connections
        // The kernel of the server completes handshakes that its program may never accept
        // (listen(2)), so only a connection with a response counts as held.
        .answered_at_end
        .unwrap_or(load.connections.open_at_end);
    Some(IdleStep {
        wanted: run.key.connections,
        open: held,
        dropped: load.connections.dropped,
        server_rss_bytes: server.and_then(|server| server.rss_bytes),
        server_kernel_bytes: server.and_then(kernel_bytes),
        server_cpus: server.and_then(cpus),
        client_rss_bytes: run.client.rss_bytes,
        client_cpus: cpus(&run.client),
    })
}

fn kernel_bytes(side: &EndpointStats) -> Option<u64> {
    Some(
        side.socket_memory_bytes?
            .saturating_add(side.slab_unreclaimable_bytes?),
    )
}

/// Least squares through points of connections and bytes; `None` of fewer than three different
/// numbers of connections.
pub(crate) fn memory_line(points: &[(f64, f64)]) -> Option<MemoryLine> {
    let mut connections: Vec<f64> = points.iter().map(|(connections, _)| *connections).collect();
    connections.sort_unstable_by(f64::total_cmp);
    connections.dedup();

    if connections.len() < POINTS_MIN {
        return None;
    }

    let n = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / n;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / n;
    let sum = |of: &dyn Fn(f64, f64) -> f64| {
        points
            .iter()
            .map(|(x, y)| of(x - mean_x, y - mean_y))
            .sum::<f64>()
    };
    let xx = sum(&|x, _| x * x);
    let xy = sum(&|x, y| x * y);
    let yy = sum(&|_, y| y * y);
    let slope = xy / xx;

    // Points on a level line are all on it.
    let r2 = if yy > 0.0 { xy * xy / (xx * yy) } else { 1.0 };
    Some(MemoryLine {
        bytes_per_connection: slope,
        base_bytes: mean_y - slope * mean_x,
        r2,
    })
}

/// Demands on the idle steps.
pub(crate) fn idle_passes(idle: &Idle, runs: &[CellRun]) -> Vec<Pass> {
    let mut passes = vec![nothing_dropped(idle), little_cpu(idle)];
    passes.extend(
        idle.server_user
            .map(|line| linear("the server's program", &line)),
    );
    passes.extend(
        idle.server_kernel
            .map(|line| linear("the server's kernel", &line)),
    );
    passes.extend(descriptors_left(runs));

    passes
}

fn nothing_dropped(idle: &Idle) -> Pass {
    let lost: u64 = idle
        .steps
        .iter()
        .map(|step| step.dropped)
        .fold(0, u64::saturating_add);
    let missing = idle
        .steps
        .iter()
        .filter(|step| step.open < u64::from(step.wanted))
        .count();

    let most = idle.steps.iter().map(|step| step.open).max().unwrap_or(0);
    let evidence = format!(
        "{} open at most, {} lost, {missing} of {} steps incomplete",
        grouped(most),
        grouped(lost),
        idle.steps.len()
    );
    Pass::new(
        "idle connections stay open",
        Some(lost == 0 && missing == 0),
        evidence,
    )
}

/// Demand on the CPU of the largest step: with a thousand connections the CPU's other work is
/// larger.
fn little_cpu(idle: &Idle) -> Pass {
    let largest = idle
        .steps
        .iter()
        .filter(|step| step.open > 0)
        .max_by_key(|step| step.open);
    let found = largest.and_then(|step| Some((step.open, step.server_cpus?)));
    // Fewer connections are not extrapolated: the other work of the CPU would grow with them.
    let of_10k = found.map(|(open, cpus)| cpus * (10_000.0 / open as f64).min(1.0));
    let what = format!(
        "idle connections cost at most {} of a CPU per 10,000",
        percent(IDLE_CPU_OF_10K)
    );
    let evidence = match found {
        Some((open, cpus)) => format!("{} of a CPU with {} open", percent(cpus), grouped(open)),
        None => "the server's CPU time is not known".to_owned(),
    };

    Pass::new(
        what,
        of_10k.map(|of_10k| of_10k <= IDLE_CPU_OF_10K),
        evidence,
    )
}

fn linear(whose: &str, line: &MemoryLine) -> Pass {
    // Of a few bytes for each connection the line is lost in what else a program does with its
    // memory.
    let is_little = line.bytes_per_connection <= LITTLE_BYTES;
    let what = format!("memory of {whose} grows in proportion to the connections, or hardly");

    let evidence = if line.grows() {
        format!(
            "{} for each and {} without any, R² {}",
            bytes_name(line.bytes_per_connection),
            bytes_name(line.base_bytes),
            rounded(line.r2)
        )
    } else {
        "it did not grow with the connections".to_owned()
    };
    Pass::new(what, Some(is_little || line.r2 >= LINEAR), evidence)
}

fn descriptors_left(runs: &[CellRun]) -> Option<Pass> {
    let peaks = idle_runs(runs).filter_map(|run| run.server.as_ref()?.fds);
    let peak = peaks.max_by_key(|peak| peak.peak)?;
    let limit = peak.limit.filter(|limit| *limit > 0)?;
    let is_met = peak.peak as f64 <= FDS_FULL * limit as f64;
    let evidence = format!("{} of {} in use", grouped(peak.peak), grouped(limit));

    Some(Pass::new(
        "descriptors of the server suffice",
        Some(is_met),
        evidence,
    ))
}

/// Demand on a low rate on many connections: every request answered, in time, at the rate that was
/// offered.
///
/// The rate is that of the requests that were due: with random arrivals these differ from the
/// plan's rate by chance.
pub(crate) fn low_rate_pass(cell: &Cell) -> Pass {
    let loads: Vec<_> = counted(&cell.runs)
        .into_iter()
        .filter_map(|run| run.load.as_ref())
        .collect();
    let sum = |figure: fn(&linerate_model::http::LoadResult) -> u64| {
        loads
            .iter()
            .map(|load| figure(load))
            .fold(0, u64::saturating_add)
    };
    let due = sum(|load| load.requests);
    let ok = sum(|load| load.ok);
    let failed = sum(|load| load.errors.total());

    let what = format!(
        "{} connections at {} requests per second: all answered, 99 % within {}",
        grouped(u64::from(cell.key.connections)),
        grouped(u64::from(cell.key.rate_per_s.unwrap_or(0))),
        time_name(LOW_RATE_P99_NS as f64)
    );
    let Some(p99_ns) = cell.median.p99_ns.filter(|_| due > 0) else {
        return Pass::new(what, None, "no finished run with enough answers");
    };
    let achieved = ok as f64 / due as f64;
    let is_met = failed == 0 && achieved >= LOW_RATE_ACHIEVED && p99_ns < LOW_RATE_P99_NS;

    let evidence = format!(
        "{} of {} answered, {} failed, 99 % within {}",
        grouped(ok),
        grouped(due),
        grouped(failed),
        time_name(p99_ns as f64)
    );
    Pass::new(what, Some(is_met), evidence)
}

/// Share of a payload's best throughput that remains when very many connections are busy, in words;
/// `None` where either is not known.
pub(crate) fn retained(active: &Cell, row: &Row, best: &Medians) -> Option<String> {
    let kept = active.median.ok_per_s? / row.best_per_s.filter(|best| *best > 0.0)?;
    let mut text = format!(
        "{} busy connections keep {} of the best throughput of {}",
        grouped(u64::from(active.key.connections)),
        percent(kept),
        linerate_model::http::units::payload_name(row.payload_bytes)
    );

    if let Some(here) = active.median.p99_ns
        && let Some(there) = best.p99_ns.filter(|p99_ns| *p99_ns > 0)
    {
        text += &format!(
            "; their 99th percentile is {} times that of the best stable case",
            rounded(here as f64 / there as f64)
        );
    }

    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conclude::medians::medians;
    use crate::conclude::tests::fixture::{load_of, observed, resting, run};
    use linerate_model::finding::Confidence;
    use linerate_model::http::{
        CellKey, CellVerdict, ErrorClass, Judgement, Mode, Peak, VerdictClass,
    };

    const KIB: u64 = 1024;
    const MIB: u64 = 1 << 20;

    fn held(connections: u32, rss_bytes: u64) -> CellRun {
        let mut held = observed(run(load_of(0, connections, 1.0)));
        held.key = CellKey::new(Phase::Idle, 0, connections);
        held.load.as_mut().expect("done").mode = Mode::Idle { heartbeat_ns: None };

        let mut server = resting();
        server.rss_bytes = Some(rss_bytes);
        server.process_cpu_ns = Some(40_000_000);
        held.server = Some(server);

        held
    }

    /// The published memory: 209 MB with 10,000 and 407 MB with 20,000 connections, 20.5 kB each.
    #[test]
    fn memory_of_idle_connections_lies_on_a_line() {
        let each = 20 * KIB + 200;
        let runs =
            [5000, 1000, 10_000, 20_000].map(|n: u32| held(n, 4 * MIB + u64::from(n) * each));
        let idle = idle(&runs).expect("steps");
        let wanted: Vec<u32> = idle.steps.iter().map(|step| step.wanted).collect();
        assert_eq!(wanted, [1000, 5000, 10_000, 20_000]);

        let line = idle.server_user.expect("four steps");
        assert!(
            (line.bytes_per_connection - each as f64).abs() < 1e-3,
            "{line:?}"
        );
        assert!((line.base_bytes - 4.0 * MIB as f64).abs() < 1.0 && line.r2 > 0.999_999);
        assert_eq!(idle.server_kernel.expect("constant").r2, 1.0);

        let passes = idle_passes(&idle, &runs);
        assert!(
            passes.iter().all(|pass| pass.is_met == Some(true)),
            "{passes:#?}"
        );
    }

    #[test]
    fn a_line_needs_three_points_and_scatter_is_seen() {
        assert_eq!(memory_line(&[(1.0, 1.0), (2.0, 2.0), (2.0, 3.0)]), None);
        let scattered = |scale: f64| {
            let points = [(1.0, 1.0), (2.0, 9.0), (3.0, 2.0), (4.0, 8.0)];
            memory_line(&points.map(|(x, y)| (x, y * scale))).expect("four")
        };
        assert!(scattered(1024.0).r2 < 0.5);
        assert_eq!(linear("x", &scattered(1024.0)).is_met, Some(false));
        assert_eq!(
            linear("x", &scattered(16.0)).is_met,
            Some(true),
            "of next to nothing"
        );
    }

    #[test]
    fn lost_connections_polling_and_full_descriptors_are_seen() {
        let mut busy = held(10_000, MIB);
        busy.load.as_mut().expect("done").connections.dropped = 3;
        let server = busy.server.as_mut().expect("agent");
        server.process_cpu_ns = Some(200_000_000);
        server.fds = Some(Peak {
            peak: 10_100,
            limit: Some(10_240),
        });

        let runs = [busy];
        let passes = idle_passes(&idle(&runs).expect("a step"), &runs);
        let failed = passes.iter().filter(|pass| pass.is_met == Some(false));
        let failed: Vec<&str> = failed.map(|pass| pass.evidence.as_str()).collect();

        let expected = [
            "10,000 open at most, 3 lost, 0 of 1 steps incomplete",
            "2 % of a CPU with 10,000 open",
            "10,100 of 10,240 in use",
        ];
        assert_eq!(failed, expected);
    }

    #[test]
    fn what_the_server_spent_is_unknown_without_an_agent() {
        let mut held = held(1000, MIB);
        held.server = None;
        let runs = [held];
        let idle = idle(&runs).expect("a step");
        assert_eq!(little_cpu(&idle).is_met, None);
        assert_eq!(nothing_dropped(&idle).is_met, Some(true));
        assert!(super::idle(&[]).is_none());
    }

    #[test]
    fn a_step_that_was_made_again_replaces_the_first() {
        let mut first = held(1000, 9 * MIB);
        first.load.as_mut().expect("done").connections.dropped = 9;
        let idle = idle(&[first, held(1000, MIB)]).expect("a step");
        assert_eq!((idle.steps.len(), idle.steps[0].dropped), (1, 0));
    }

    fn low_rate(spoil: impl FnOnce(&mut CellRun)) -> Pass {
        let mut served = run(load_of(KIB, 10_000, 1000.0));
        served.key = CellKey::new(Phase::LowRate, KIB, 10_000);
        served.key.rate_per_s = Some(1000);
        served.load.as_mut().expect("done").latency =
            crate::conclude::tests::fixture::latency(495_000);
        spoil(&mut served);
        low_rate_pass(&cell(served))
    }

    fn cell(run: CellRun) -> Cell {
        let runs = vec![run];
        let unknown = Judgement {
            class: VerdictClass::Unknown,
            evidence: Vec::new(),
            advice: String::new(),
        };
        let mut cell = Cell::new(runs[0].key, CellVerdict::new(unknown, Confidence::Low));
        cell.median = medians(&runs, None, None);
        cell.runs = runs;
        cell
    }

    #[test]
    fn a_low_rate_is_served_when_all_is_answered_in_time() {
        use crate::conclude::tests::fixture::latency;
        type Row = (fn(&mut CellRun), Option<bool>);

        fn load(run: &mut CellRun) -> &mut linerate_model::http::LoadResult {
            run.load.as_mut().expect("done")
        }

        let served = low_rate(|_| ());
        assert_eq!(served.is_met, Some(true));
        assert_eq!(
            served.evidence,
            "10,000 of 10,000 answered, 0 failed, 99 % within 990 µs"
        );

        let rows: [Row; 4] = [
            (|run| load(run).latency = latency(5_000_000), Some(false)),
            (
                |run| load(run).errors.add(ErrorClass::Timeout, String::new),
                Some(false),
            ),
            (|run| load(run).requests = 10_020, Some(false)),
            (|run| run.state = RunState::Aborted, None),
        ];
        for (spoil, expected) in rows {
            let pass = low_rate(spoil);
            assert_eq!(pass.is_met, expected, "{pass:?}");
        }
    }

    #[test]
    fn retained_throughput_of_busy_connections_is_a_share_of_the_best() {
        let active = cell(run(load_of(KIB, 10_000, 75_000.0)));
        let row = Row {
            payload_bytes: KIB,
            best_per_s: Some(100_000.0),
            best_stable_connections: Some(64),
            ..Row::default()
        };

        let best = medians(&[run(load_of(KIB, 64, 100_000.0))], None, None);
        let text = retained(&active, &row, &best).expect("both are known");
        assert!(
            text.contains("keep 75 % of the best throughput of 1k"),
            "{text}"
        );
        assert!(text.contains("208.3 times"), "{text}");

        let mut unknown = row;
        unknown.best_per_s = None;
        assert_eq!(retained(&active, &unknown, &best), None);
    }
}
