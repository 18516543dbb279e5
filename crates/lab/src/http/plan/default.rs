//! The plan of those who say nothing.

use std::time::Duration;

use linerate_model::http::Arrivals;

use super::{
    ActivePhase, Close, Defaults, Direction, IdlePhase, LowRatePhase, MatrixPhase, Objective, PayloadPhase, Plan,
    Ports, Protocol, Ramp, Source, TcpPhase,
};

const KIB: u64 = 1024;

impl Default for Plan {
    fn default() -> Self {
        Self {
            target: None,
            control: None,
            dev: None,
            seed: 1,
            protocol: Protocol::default(),
            defaults: Defaults::default(),
            tcp: TcpPhase {
                directions: vec![Direction::Forward, Direction::Reverse],
                streams: vec![1, 4],
                duration: Duration::from_secs(10),
            },
            payloads: PayloadPhase {
                payloads_bytes: vec![KIB, 10 * KIB, 100 * KIB],
                connections: 64,
            },
            matrix: MatrixPhase {
                payloads_bytes: vec![KIB, 10 * KIB, 100 * KIB],
                connections: vec![16, 64, 128, 256, 512, 1024],
                refine_knee: true,
            },
            idle: IdlePhase {
                steps: vec![1000, 5000, 10_000, 20_000],
                hold: Duration::from_secs(30),
                heartbeat: None,
                touch: true,
            },
            low_rate: LowRatePhase {
                connections: 10_000,
                rate_per_s: 1000,
                payload_bytes: KIB,
                duration: Duration::from_secs(60),
                arrivals: Arrivals::Poisson,
            },
            active: ActivePhase {
                connections: 10_000,
                payloads_bytes: vec![KIB],
                duration: Duration::from_secs(30),
            },
            objective: Objective {
                p99: None,
                error_share: 1e-4,
            },
            source: Source {
                addresses: Vec::new(),
                ports: Ports::Auto,
                close: Close::Auto,
            },
        }
    }
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            warmup: Duration::from_secs(2),
            duration: Duration::from_secs(10),
            timeout: Duration::from_secs(5),
            cooldown: Duration::from_secs(3),
            repeats: 3,
            ramp: Ramp::PerSecond(2000),
            threads: None,
        }
    }
}
