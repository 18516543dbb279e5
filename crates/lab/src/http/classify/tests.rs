use super::*;
use crate::http::ceiling::Link;
use crate::http::fixture::{done, latency, load, observed, run};
use crate::http::medians::medians;
use linerate_model::http::{Arrivals, EndpointStats, Peak};

const CEILING_PER_S: f64 = 101_461.0;
pub(super) const GIGABIT: Network = Network::Link {
    bps: 1e9,
    bits_per_response: Some(1e9 / CEILING_PER_S),
};

pub(super) fn judge_on(network: Network, runs: &[CellRun], position: &Position) -> CellVerdict {
    let (link, ceiling) = match network {
        Network::Link { bps, .. } => (Some(Link::of_speed(bps)), Some(CEILING_PER_S)),
        Network::Loopback | Network::Unknown => (None, None),
    };
    let medians = medians(runs, link.as_ref(), ceiling);
    let key = run(load(1.0)).key;
    classify(&Facts::of(key, runs, &medians, network, 8080), position)
}

fn judge(runs: &[CellRun]) -> CellVerdict {
    judge_on(GIGABIT, runs, &Position::default())
}

/// A run with room everywhere, spoilt.
pub(super) fn spoilt(spoil: impl FnOnce(&mut CellRun)) -> CellRun {
    let mut run = observed(done(1, 50_000.0));
    spoil(&mut run);
    run
}

pub(super) fn server(run: &mut CellRun) -> &mut EndpointStats {
    run.server.as_mut().expect("an agent")
}

/// The server's own program keeps all CPUs this busy.
fn fill(side: &mut EndpointStats, share: f64) {
    side.cpu_busy = Some(share);
    side.process_cpu_ns = Some((share * 4.0 * side.window_ns as f64) as u64);
}

fn fill_link(run: &mut CellRun) {
    let load = run.load.as_mut().unwrap();
    load.ok = 1_014_000;
    load.http_bytes = Some(load.ok * 1142);
    run.client.nic.as_mut().unwrap().rx_bytes = load.ok * (1142 + 66);
    run.client.nic.as_mut().unwrap().rx_packets = load.ok;
}

pub(super) fn text(verdict: &CellVerdict) -> String {
    format!("{verdict:?}")
}

fn fail(run: &mut CellRun, class: ErrorClass, times: u32) {
    for _ in 0..times {
        run.load.as_mut().unwrap().errors.add(class, String::new);
    }
}

fn full(peak: u64, limit: u64) -> Option<Peak> {
    Some(Peak {
        peak,
        limit: Some(limit),
    })
}

/// A defect, and its expected evidence.
type Case = (fn(&mut CellRun), &'static str);

fn assert_all(class: VerdictClass, cases: &[Case]) {
    for (spoil, expected) in cases {
        let verdict = judge(&[spoilt(spoil)]);
        assert_eq!(verdict.primary.class, class, "{expected}: {verdict:?}");
        assert!(text(&verdict).contains(expected), "{expected} in {verdict:?}");
        assert!(!verdict.primary.evidence.is_empty() && !verdict.primary.advice.is_empty());
    }
}

#[test]
fn defective_runs_are_invalid() {
    assert_all(
        VerdictClass::Invalid,
        &[
            (|run| run.load = None, "no finished run"),
            (|run| run.load.as_mut().unwrap().connections.opened = 63, "open 0.984"),
            (|run| run.flags.push(Flag::ControlLost), "control channel was lost: 1"),
            (|run| run.flags.push(Flag::Unsteady), "differ by more than 5 %: 1"),
            (
                |run| server(run).cpu_steal = Some(0.06),
                "the server's time that the hypervisor",
            ),
            (|run| run.client.throttled = Some(0.02), "the client's control group"),
            (|run| fail(run, ErrorClass::Protocol, 1), "no HTTP"),
        ],
    );
}

#[test]
fn limits_of_the_client_are_named_with_their_remedy() {
    assert_all(
        VerdictClass::ClientLimit,
        &[
            (|run| fail(run, ErrorClass::AddrNotAvail, 1), "--ports explicit"),
            (|run| fail(run, ErrorClass::NoBuffers, 1), "net.ipv4.tcp_mem"),
            (|run| fail(run, ErrorClass::FdLimit, 1), "LimitNOFILE=200000"),
            (
                |run| run.client.fds = full(1020, 1024),
                "sudo prlimit --pid $$ --nofile=200000:200000",
            ),
            (|run| run.flags.push(Flag::GeneratorLate), "woke it late"),
            (
                |run| run.client.busiest_cpu_busy = Some(0.98),
                "busiest processor of the client 0.98",
            ),
            (|run| run.client.busiest_thread_busy = Some(0.98), "--threads"),
        ],
    );
}

#[test]
fn limits_of_the_server_are_named_with_their_remedy() {
    assert_all(
        VerdictClass::ServerLimit,
        &[
            (
                |run| server(run).counters.listen_overflows = Some(3),
                "sudo sysctl -w net.core.somaxconn=65535",
            ),
            (
                |run| fail(run, ErrorClass::Eof, 1002),
                "0.2 % reset or closed by the server",
            ),
            (|run| fail(run, ErrorClass::Status5xx, 1002), "0.2 % answered with 5xx"),
            (|run| server(run).fds = full(1024, 1024), "descriptors of the server"),
            (
                |run| server(run).conntrack = full(65_536, 65_536),
                "sudo nft add rule ip lr_raw pre tcp dport 8080 notrack",
            ),
            (
                |run| server(run).counters.tcp_memory_pressures = Some(1),
                "TCPMemoryPressures",
            ),
        ],
    );
    let few = judge(&[spoilt(|run| fail(run, ErrorClass::Eof, 400))]);
    assert_ne!(few.primary.class, VerdictClass::ServerLimit);
}

/// A shaper, a slower hop: TCP alone shows what the path carries.
#[test]
fn a_path_slower_than_the_link_is_full_before_the_link() {
    let path = Network::Link {
        bps: 1e10,
        bits_per_response: Some(1e9 / CEILING_PER_S),
    };
    let run = spoilt(|run| {
        fill_link(run);
        fill(server(run), 0.95);
    });
    let verdict = judge_on(path, &[run], &Position::default());
    assert_eq!(verdict.primary.class, VerdictClass::NetworkBound);
    assert!(text(&verdict).contains("at least 9.86 Mbit/s for each"), "{verdict:#?}");
    assert!(verdict.contributing.is_empty(), "{verdict:#?}");
}

#[test]
fn a_link_is_full_or_loses() {
    assert_all(
        VerdictClass::NetworkBound,
        &[
            (fill_link, "at least 9.86 Mbit/s for each 1,000 answers"),
            (
                |run| run.client.nic.as_mut().unwrap().tx_bytes = 1_220_000_000,
                "share of 1 Gbit/s in use 0.976",
            ),
        ],
    );
    assert_all(
        VerdictClass::NetworkLoss,
        &[(
            |run| server(run).counters.retrans_segs = Some(3000),
            "0.3 % of the server's segments sent again",
        )],
    );
}

#[test]
fn processors_of_the_server_are_full_all_or_one() {
    assert_all(
        VerdictClass::CpuBoundTotal,
        &[(|run| fill(server(run), 0.97), "all processors of the server 0.97")],
    );
    assert_all(
        VerdictClass::CpuBoundCore,
        &[
            (
                |run| server(run).busiest_cpu_busy = Some(1.0),
                "processor 2 of the server 1, at least 0.95",
            ),
            (
                |run| server(run).busiest_thread_busy = Some(0.99),
                "busiest thread of the server 0.99",
            ),
        ],
    );
}

#[test]
fn a_core_is_named_with_what_it_does() {
    let advice = |spoil: fn(&mut EndpointStats)| {
        let run = spoilt(|run| {
            server(run).busiest_cpu_busy = Some(1.0);
            spoil(server(run));
        });
        judge(&[run]).primary.advice
    };
    assert!(advice(|server| server.busiest_cpu_softirq = Some(0.6)).contains("60 % in interrupts"));
    assert!(advice(|server| server.threads = Some(1)).contains("has one thread"));
    assert!(advice(|server| server.thread_imbalance = Some(1.8)).contains("unevenly"));
    assert!(advice(|_| ()).contains("SO_REUSEPORT"));
}

#[test]
fn a_busy_client_is_not_the_limit_where_the_server_or_the_link_is_full_as_well() {
    let busy = |spoil: fn(&mut CellRun)| {
        let run = spoilt(|run| {
            run.client.busiest_cpu_busy = Some(1.0);
            spoil(run);
        });
        judge(&[run]).primary.class
    };
    assert_eq!(busy(|_| ()), VerdictClass::ClientLimit);
    assert_eq!(
        busy(|run| server(run).busiest_cpu_busy = Some(0.99)),
        VerdictClass::CpuBoundCore
    );
    assert_eq!(busy(fill_link), VerdictClass::NetworkBound);
    let foreign = judge(&[spoilt(|run| {
        run.client.busiest_cpu_busy = Some(1.0);
        run.server = None;
    })]);
    assert_eq!(
        (foreign.primary.class, foreign.confidence),
        (VerdictClass::ClientLimit, Confidence::Low)
    );
}

#[test]
fn the_first_that_fits_is_the_verdict_and_later_ones_contribute() {
    let verdict = judge(&[spoilt(|run| {
        fill(server(run), 0.99);
        server(run).counters.listen_drops = Some(1);
        server(run).counters.retrans_segs = Some(9000);
    })]);
    let contributing: Vec<VerdictClass> = verdict.contributing.iter().map(|judgement| judgement.class).collect();
    assert_eq!(verdict.primary.class, VerdictClass::ServerLimit);
    assert_eq!(contributing, [VerdictClass::NetworkLoss, VerdictClass::CpuBoundTotal]);
}

#[test]
fn connections_that_this_host_had_no_ports_for_are_its_limit_and_not_an_invalid_run() {
    let verdict = judge(&[spoilt(|run| {
        let load = run.load.as_mut().unwrap();
        load.connections.opened = 10;
        load.errors.add(ErrorClass::AddrNotAvail, String::new);
    })]);
    assert_eq!(verdict.primary.class, VerdictClass::ClientLimit);
    let refused = judge(&[spoilt(|run| {
        let load = run.load.as_mut().unwrap();
        load.connections.opened = 10;
        load.errors
            .add(ErrorClass::ConnectRefused, || "nobody there".to_owned());
    })]);
    assert_eq!(refused.primary.class, VerdictClass::Invalid);
    assert!(
        refused.primary.advice.contains("connect_refused (nobody there)"),
        "{refused:?}"
    );
}

#[test]
fn one_unsteady_run_of_three_leaves_the_middle_one_good() {
    let mut runs: Vec<CellRun> = (1..=3)
        .map(|repeat| CellRun {
            repeat,
            ..spoilt(|_| ())
        })
        .collect();
    runs[0].flags.push(Flag::Unsteady);
    assert_ne!(judge(&runs).primary.class, VerdictClass::Invalid);
    runs[1].flags.push(Flag::Unsteady);
    assert_eq!(judge(&runs).primary.class, VerdictClass::Invalid);
}

#[test]
fn without_an_agent_verdicts_about_the_server_are_unknown() {
    let verdict = judge(&[spoilt(|run| run.server = None)]);
    assert_eq!(verdict.primary.class, VerdictClass::Unknown);
    assert!(text(&verdict).contains("no agent there") && verdict.primary.advice.contains("linerate http agent"));
    let queue = Position {
        is_queueing: true,
        ..Position::default()
    };
    let verdict = judge_on(GIGABIT, &[spoilt(|run| run.server = None)], &queue);
    assert_eq!(verdict.primary.class, VerdictClass::Unknown);
    assert_eq!(verdict.contributing[0].class, VerdictClass::QueueingBound);
    // A full link is seen from the client alone.
    let full = judge(&[spoilt(|run| {
        run.server = None;
        run.load.as_mut().unwrap().ok = 1_014_000;
    })]);
    assert_eq!(
        (full.primary.class, full.confidence),
        (VerdictClass::NetworkBound, Confidence::High)
    );
}

#[test]
fn one_host_has_no_full_link() {
    let run = spoilt(|run| {
        run.load.as_mut().unwrap().ok = 1_014_000;
        run.client.nic.as_mut().unwrap().is_loopback = true;
        server(run).counters.retrans_segs = Some(900_000);
        fill(server(run), 0.99);
    });
    let verdict = judge_on(Network::Loopback, &[run], &Position::default());
    assert_eq!(
        (verdict.primary.class, verdict.confidence),
        (VerdictClass::CpuBoundTotal, Confidence::High)
    );
}

#[test]
fn a_link_of_unknown_speed_makes_other_verdicts_unsure() {
    let run = spoilt(|run| {
        run.client.nic.as_mut().unwrap().link_bps = None;
        fill(server(run), 0.99);
    });
    let verdict = judge_on(Network::Unknown, &[run], &Position::default());
    assert_eq!(
        (verdict.primary.class, verdict.confidence),
        (VerdictClass::CpuBoundTotal, Confidence::Low)
    );
}

#[test]
fn connections_are_busy_only_when_all_their_streams_are() {
    let verdict = |times: u64| {
        let run = spoilt(|run| {
            let load = run.load.as_mut().expect("done");
            load.mode = Mode::Closed {
                pipeline: 8,
                think_ns: 0,
            };
            let p50 = load.latency.p50.as_mut().expect("enough");
            p50.ns *= times;
        });
        let fewer = Position {
            best_larger_per_s: Some(100_000.0),
            ..Position::default()
        };
        judge_on(GIGABIT, &[run], &fewer).primary.class
    };
    assert_eq!(verdict(8), VerdictClass::ConcurrencyLimited);
    assert_ne!(verdict(1), VerdictClass::ConcurrencyLimited);
}

#[test]
fn too_few_connections_and_an_internal_wait_have_different_verdicts() {
    let run = spoilt(|_| ());
    let fewer = Position {
        best_larger_per_s: Some(100_000.0),
        predicted_connections: Some(127.3),
        ..Position::default()
    };
    let verdict = judge_on(GIGABIT, std::slice::from_ref(&run), &fewer);
    assert_eq!(verdict.primary.class, VerdictClass::ConcurrencyLimited);
    assert!(verdict.primary.advice.contains("predicts 128"), "{verdict:?}");
    for position in [
        Position {
            best_larger_per_s: Some(51_000.0),
            ..Position::default()
        },
        Position {
            best_smaller_per_s: Some(49_000.0),
            ..Position::default()
        },
    ] {
        let verdict = judge_on(GIGABIT, std::slice::from_ref(&run), &position);
        assert_eq!(verdict.primary.class, VerdictClass::ServerInternal, "{position:?}");
    }
    let alone = judge(&[run]);
    assert_eq!(alone.primary.class, VerdictClass::Unknown);
    assert!(text(&alone).contains("one number of them was tried"));
}

#[test]
fn connections_that_do_not_wait_are_not_too_few() {
    let mut run = spoilt(|_| ());
    run.load.as_mut().unwrap().latency = latency(100_000);
    let position = Position {
        best_larger_per_s: Some(100_000.0),
        ..Position::default()
    };
    assert_eq!(
        judge_on(GIGABIT, &[run], &position).primary.class,
        VerdictClass::Unknown
    );
}

fn open_loop(run: &mut CellRun) {
    run.load.as_mut().unwrap().mode = Mode::Open {
        rate_per_s: 50_000.0,
        arrivals: Arrivals::Poisson,
    };
}

#[test]
fn an_open_loop_whose_rate_is_met_is_not_saturated_with_or_without_an_agent() {
    let met = judge(&[spoilt(open_loop)]);
    assert_eq!(met.primary.class, VerdictClass::NotSaturated);
    assert!(met.primary.advice.contains("used to"), "{met:?}");
    let foreign = judge(&[spoilt(|run| {
        open_loop(run);
        run.server = None;
    })]);
    assert_eq!(foreign.primary.class, VerdictClass::NotSaturated);
    let missed = judge(&[spoilt(|run| {
        open_loop(run);
        run.load.as_mut().unwrap().requests = 600_000;
    })]);
    assert_eq!(missed.primary.class, VerdictClass::ServerInternal);
}

#[test]
fn stats_that_break_littles_law_make_no_sure_verdict() {
    let run = spoilt(|run| {
        run.flags.push(Flag::Little);
        fill(server(run), 1.0);
    });
    assert_eq!(judge(&[run]).confidence, Confidence::Low);
}

#[test]
fn no_stats_at_all_are_no_panic() {
    let empty = CellRun {
        load: Some(LoadResult {
            ok: u64::MAX,
            window_ns: 0,
            ..load(1.0)
        }),
        ..run(load(1.0))
    };
    let position = Position {
        best_larger_per_s: Some(0.0),
        best_smaller_per_s: Some(f64::NAN),
        ..Position::default()
    };
    for network in [GIGABIT, Network::Loopback, Network::Unknown] {
        let _ = judge_on(network, &[empty.clone(), empty.clone()], &position);
        let _ = judge_on(network, &[], &position);
    }
}
