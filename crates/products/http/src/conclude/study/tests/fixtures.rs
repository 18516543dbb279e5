//! A published experiment as runs: a gigabit between two small hosts, payloads of 1, 10 and 100
//! KiB.
//!
//! Published are the best throughput of each payload in MB/s of bodies (103.8, 115.5, 117.5), that
//! of 1 KiB with 16 connections (47.5), the server's CPU time in phase 1 (382, 73 and 13 % of a
//! core), and that 1024 connections are network-bound and only wait. Everything else is a model:
//! throughput of the other cells is the best or just below it, latency follows Little's law, the
//! server has eight CPUs, its time is in proportion to the answers.

use linerate_model::http::{Baseline, CellKey, CellRun, Environment, Phase, Study};

use super::{Kept, Setup, StudyInput, study};
use crate::conclude::tests::fixture::{idle_nic, load_of, observed, resting, run};
use crate::plan::Plan;
use crate::plan::cells::Phases;

pub(crate) const KIB: u64 = 1024;
const CONNECTIONS: [u32; 6] = [16, 64, 128, 256, 512, 1024];

/// Input of a study that owns all of it.
pub(crate) struct OwnedInput {
    pub setup: Setup,
    pub kept: Kept,
}

pub(crate) fn input(owned: &OwnedInput) -> StudyInput<'_> {
    StudyInput {
        setup: &owned.setup,
        elapsed_ns: 900_000_000_000,
        is_complete: true,
        kept: &owned.kept,
    }
}

pub(crate) fn study_of(owned: &OwnedInput) -> Study {
    study(&input(owned))
}

/// MB/s of bodies: best of a payload, and its share of that with 16 connections.
struct SeedRow {
    payload_bytes: u64,
    best_mb_per_s: f64,
    share_at_16: f64,
    /// Server's CPU time at the best throughput; 1 is one CPU.
    server_cpus: f64,
}

const SEED: [SeedRow; 3] = [
    SeedRow {
        payload_bytes: KIB,
        best_mb_per_s: 103.8,
        share_at_16: 47.5 / 103.8,
        server_cpus: 3.82,
    },
    SeedRow {
        payload_bytes: 10 * KIB,
        best_mb_per_s: 115.5,
        share_at_16: 0.99,
        server_cpus: 0.73,
    },
    SeedRow {
        payload_bytes: 100 * KIB,
        best_mb_per_s: 117.5,
        share_at_16: 0.999,
        server_cpus: 0.13,
    },
];

pub(crate) fn seed_input() -> OwnedInput {
    let host = Environment {
        device: Some("enp1s0".to_owned()),
        link_bps: Some(1_000_000_000),
        mtu_bytes: Some(1500),
        timestamps: Some(1),
        ..Environment::default()
    };

    let mut runs = Vec::new();
    for row in &SEED {
        for connections in CONNECTIONS {
            let share = if connections == 16 {
                row.share_at_16
            } else {
                1.0
            };
            // Three runs, a third of a percent apart.
            for (repeat, of_best) in [(1, 0.997), (2, 1.0), (3, 0.998)] {
                runs.push(seed_run(row, connections, repeat, share * of_best));
            }
        }
    }

    OwnedInput {
        setup: Setup {
            target: "http://192.168.5.2:8080".to_owned(),
            port: 8080,
            is_ipv6: false,
            plan: Plan::default(),
            phases: Phases::ALL,
            started_unix_ms: 1_700_000_000_000,
            checks: Vec::new(),
            client: host.clone(),
            server: Some(host),
            judge: linerate_doctor::http::cell_verdict,
        },
        kept: Kept {
            baseline: vec![tcp(false), tcp(true)],
            runs,
            notes: Vec::new(),
        },
    }
}

fn tcp(is_reverse: bool) -> Baseline {
    Baseline {
        is_reverse,
        streams: 1,
        goodput_bps: 941.4e6,
        of_theory: Some(0.9999),
        ..Baseline::default()
    }
}

fn seed_run(row: &SeedRow, connections: u32, repeat: u32, share_of_best: f64) -> CellRun {
    const SERVER_CPUS: f64 = 8.0;

    let ok_per_s = share_of_best * row.best_mb_per_s * 1e6 / row.payload_bytes as f64;
    let load = load_of(row.payload_bytes, connections, ok_per_s);
    let http_bytes = load.http_bytes.expect("plain text");
    let frames = (http_bytes / load.ok).div_ceil(1448) * load.ok;
    let mut run = observed(run(load));
    let cpus = row.server_cpus * share_of_best;

    run.key = CellKey::new(Phase::Matrix, row.payload_bytes, connections);
    run.repeat = repeat;
    let mut server = resting();
    server.cpus = Some(8);
    server.cpu_busy = Some(cpus / SERVER_CPUS);
    server.busiest_cpu_busy = Some((cpus / SERVER_CPUS + 0.05).min(1.0));
    server.process_cpu_ns = Some((cpus * server.window_ns as f64) as u64);
    run.server = Some(server);

    let mut nic = idle_nic();
    nic.rx_packets = frames;
    nic.rx_bytes = http_bytes + 66 * frames;
    run.client.nic = Some(nic);

    run
}
