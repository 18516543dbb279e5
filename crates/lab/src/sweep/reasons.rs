//! Why some settings of a network test are worse than others.
//!
//! Every reason rests on stats of the runs. Where a figure is missing the reason is not given, and what could not be
//! checked is listed: [`Reason::NotKnown`].

use linerate_model::event::Endpoint;

/// Metrics of one setting: medians of its runs. `None` was not reported.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SettingMetrics {
    /// Streams.
    pub streams: u32,
    /// Requested socket buffer in bytes.
    pub window_bytes: Option<u64>,
    /// Rate limit of each stream at the sender, in bit/s.
    pub stream_rate_bps: Option<u64>,
    /// What arrived of all streams, in bit/s.
    pub received_bps: f64,
    /// CPU time of the client in percent of one core.
    pub cpu_client_percent: Option<f64>,
    /// CPU time of the server in percent of one core.
    pub cpu_server_percent: Option<f64>,
    /// Retransmitted segments per second.
    pub retransmits_per_s: Option<f64>,
    /// Smoothed round-trip time in µs.
    pub rtt_us: Option<f64>,
    /// Lost datagrams in percent.
    pub lost_percent: Option<f64>,
}

/// The hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hosts {
    /// Cores the client may use.
    pub client_cores: Option<u32>,
    /// Cores of the server, where it reports them.
    pub server_cores: Option<u32>,
    /// Client and server run on the same host and share its cores.
    pub is_same_host: bool,
}

/// A reason, with the stats it rests on.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// More streams than cores, on a host whose cores are busy.
    StreamsBeyondCores {
        /// Whose cores.
        end: Endpoint,
        /// Streams.
        streams: u32,
        /// Cores.
        cores: u32,
    },
    /// All cores of a host are busy.
    CoresBusy {
        /// Whose cores; of both where they share a host.
        ends: &'static [Endpoint],
        /// CPU time in percent of one core.
        percent: f64,
        /// Cores.
        cores: u32,
    },
    /// A program uses one core wholly, and no other.
    CoreSaturated {
        /// Whose core.
        end: Endpoint,
        /// CPU time in percent of one core.
        percent: f64,
        /// Streams it serves with it.
        streams: u32,
    },
    /// The window holds less than what is in flight at the best rate.
    WindowBelowBdp {
        /// The window in bytes.
        window_bytes: u64,
        /// Round-trip time with it, in µs.
        rtt_us: f64,
        /// What one stream carried at the best setting, in bit/s.
        wanted_bps: f64,
        /// Bandwidth-delay product of the two, in bytes.
        bdp_bytes: f64,
    },
    /// Retransmissions become more.
    RetransmitsRise {
        /// At the best setting, per second.
        best_per_s: f64,
        /// Here, per second.
        here_per_s: f64,
    },
    /// Datagrams are lost.
    Loss {
        /// At the best setting, in percent.
        best_percent: f64,
        /// Here, in percent.
        here_percent: f64,
    },
    /// The sender is at its rate limit.
    SenderLimited {
        /// Rate of each stream in bit/s.
        stream_rate_bps: u64,
        /// Streams.
        streams: u32,
    },
    /// None of the reasons above holds.
    NotKnown {
        /// What could not be looked at.
        unchecked: Vec<Unchecked>,
    },
}

/// Something that could not be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unchecked {
    /// The server does not report its number of cores.
    ServerCores,
    /// An endpoint does not report its CPU time.
    Cpu(Endpoint),
    /// The round-trip time is known to the sender alone.
    RoundTripTime,
    /// The sender does not report retransmissions.
    Retransmits,
}

/// From here on a core counts as saturated, in percent: a program never gets all of it.
const CORE_FULL_PERCENT: f64 = 95.0;
/// Up to here a program uses one core and no other, in percent: CPU times are counted in ticks, and a thread of ours that
/// looks after the others adds a little.
const ONE_CORE_PERCENT: f64 = 112.0;
/// From here on streams wait for cores, as a share of all of them.
const CORES_CROWDED: f64 = 0.7;
/// Retransmissions below this, per second, hold no test back.
const RETRANSMITS_PER_S_MIN: f64 = 10.0;
/// Retransmissions have risen when they are this many times as many.
const RETRANSMITS_RISE: f64 = 2.0;
/// Loss below this, in percent, is no reason.
const LOSS_PERCENT_MIN: f64 = 0.1;
/// A sender that reaches this share of its limit is held back by it.
const LIMIT_REACHED: f64 = 0.95;

/// Why `here` is worse than `best`.
#[must_use]
pub fn of_degradation(best: &SettingMetrics, here: &SettingMetrics, hosts: &Hosts) -> Vec<Reason> {
    // What keeps bytes back explains nothing where more of them arrived.
    let is_slower = here.received_bps < best.received_bps;
    let mut reasons: Vec<Reason> = sender_limited(here)
        .into_iter()
        .chain(window_below_bdp(best, here))
        .filter(|_| is_slower)
        .chain(streams_beyond_cores(best, here, hosts))
        .chain(busy(here, hosts))
        .chain(retransmits_rise(best, here))
        .chain(loss(best.lost_percent, here))
        .collect();
    if reasons.is_empty() {
        reasons.push(Reason::NotKnown {
            unchecked: unchecked(best, here, hosts),
        });
    }
    reasons
}

/// What holds the best setting where it is; nothing when that is not known, as with a link that is full.
#[must_use]
pub fn of_limit(best: &SettingMetrics, hosts: &Hosts) -> Vec<Reason> {
    sender_limited(best)
        .into_iter()
        .chain(busy(best, hosts))
        .chain(loss(Some(0.0), best))
        .collect()
}

fn sender_limited(here: &SettingMetrics) -> Option<Reason> {
    let stream_rate_bps = here.stream_rate_bps?;
    let limit = stream_rate_bps as f64 * f64::from(here.streams);
    (here.received_bps >= LIMIT_REACHED * limit).then_some(Reason::SenderLimited {
        stream_rate_bps,
        streams: here.streams,
    })
}

/// RFC 6349, section 3.3.1: a window below the bandwidth-delay product cannot fill the path.
fn window_below_bdp(best: &SettingMetrics, here: &SettingMetrics) -> Option<Reason> {
    let (window_bytes, rtt_us) = (here.window_bytes?, here.rtt_us?);
    let wanted_bps = best.received_bps / f64::from(best.streams.max(1));
    let bdp_bytes = wanted_bps / 8.0 * rtt_us / 1e6;
    ((window_bytes as f64) < bdp_bytes).then_some(Reason::WindowBelowBdp {
        window_bytes,
        rtt_us,
        wanted_bps,
        bdp_bytes,
    })
}

fn streams_beyond_cores(best: &SettingMetrics, here: &SettingMetrics, hosts: &Hosts) -> Vec<Reason> {
    if here.streams <= best.streams {
        return Vec::new();
    }
    [Endpoint::Client, Endpoint::Server]
        .into_iter()
        .filter_map(|end| {
            let cores = hosts.cores(end).filter(|cores| here.streams > *cores)?;
            let percent = hosts.load_percent(here, end)?;
            (percent >= CORES_CROWDED * 100.0 * f64::from(cores)).then_some(Reason::StreamsBeyondCores {
                end,
                streams: here.streams,
                cores,
            })
        })
        .collect()
}

fn busy(here: &SettingMetrics, hosts: &Hosts) -> Vec<Reason> {
    if hosts.is_same_host {
        let shared = hosts.cores(Endpoint::Client).and_then(|cores| {
            let percent = hosts.load_percent(here, Endpoint::Client)?;
            let is_full = percent >= CORE_FULL_PERCENT * f64::from(cores);
            is_full.then_some(Reason::CoresBusy {
                ends: &[Endpoint::Client, Endpoint::Server],
                percent,
                cores,
            })
        });
        if let Some(shared) = shared {
            return vec![shared];
        }
    }
    [
        (Endpoint::Client, &[Endpoint::Client][..]),
        (Endpoint::Server, &[Endpoint::Server]),
    ]
    .into_iter()
    .filter_map(|(end, ends)| {
        let percent = here.cpu_percent(end)?;
        match hosts.cores(end) {
            Some(cores) if percent >= CORE_FULL_PERCENT * f64::from(cores) => {
                Some(Reason::CoresBusy { ends, percent, cores })
            }
            _ if (CORE_FULL_PERCENT..=ONE_CORE_PERCENT).contains(&percent) => Some(Reason::CoreSaturated {
                end,
                percent,
                streams: here.streams,
            }),
            _ => None,
        }
    })
    .collect()
}

fn retransmits_rise(best: &SettingMetrics, here: &SettingMetrics) -> Option<Reason> {
    let (best_per_s, here_per_s) = (best.retransmits_per_s?, here.retransmits_per_s?);
    let has_risen = here_per_s >= RETRANSMITS_PER_S_MIN && here_per_s > RETRANSMITS_RISE * best_per_s;
    has_risen.then_some(Reason::RetransmitsRise { best_per_s, here_per_s })
}

fn loss(best_percent: Option<f64>, here: &SettingMetrics) -> Option<Reason> {
    let (best_percent, here_percent) = (best_percent?, here.lost_percent?);
    (here_percent >= best_percent + LOSS_PERCENT_MIN).then_some(Reason::Loss {
        best_percent,
        here_percent,
    })
}

fn unchecked(best: &SettingMetrics, here: &SettingMetrics, hosts: &Hosts) -> Vec<Unchecked> {
    let is_tcp = here.lost_percent.is_none();
    let rows = [
        (
            here.streams > best.streams && hosts.cores(Endpoint::Server).is_none(),
            Unchecked::ServerCores,
        ),
        (here.cpu_client_percent.is_none(), Unchecked::Cpu(Endpoint::Client)),
        (here.cpu_server_percent.is_none(), Unchecked::Cpu(Endpoint::Server)),
        (
            here.window_bytes.is_some() && here.rtt_us.is_none(),
            Unchecked::RoundTripTime,
        ),
        (is_tcp && here.retransmits_per_s.is_none(), Unchecked::Retransmits),
    ];
    rows.into_iter()
        .filter(|(is_open, _)| *is_open)
        .map(|(_, what)| what)
        .collect()
}

impl SettingMetrics {
    fn cpu_percent(&self, end: Endpoint) -> Option<f64> {
        match end {
            Endpoint::Client => self.cpu_client_percent,
            Endpoint::Server => self.cpu_server_percent,
        }
    }
}

impl Hosts {
    fn cores(&self, end: Endpoint) -> Option<u32> {
        match end {
            Endpoint::Client => self.client_cores,
            Endpoint::Server if self.is_same_host => self.server_cores.or(self.client_cores),
            Endpoint::Server => self.server_cores,
        }
    }

    /// What the cores of this end's host are used by the test.
    fn load_percent(&self, seen: &SettingMetrics, end: Endpoint) -> Option<f64> {
        if self.is_same_host {
            return Some(seen.cpu_client_percent? + seen.cpu_server_percent?);
        }
        seen.cpu_percent(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTS: Hosts = Hosts {
        client_cores: Some(16),
        server_cores: None,
        is_same_host: false,
    };

    fn not_known<const N: usize>(unchecked: [Unchecked; N]) -> Reason {
        Reason::NotKnown {
            unchecked: unchecked.to_vec(),
        }
    }

    fn is_not_known(reasons: &[Reason]) -> bool {
        matches!(reasons, [Reason::NotKnown { .. }])
    }

    fn seen(streams: u32, received_bps: f64) -> SettingMetrics {
        SettingMetrics {
            streams,
            received_bps,
            cpu_client_percent: Some(40.0),
            cpu_server_percent: Some(50.0),
            retransmits_per_s: Some(0.0),
            rtt_us: Some(200.0),
            ..SettingMetrics::default()
        }
    }

    #[test]
    fn a_single_threaded_server_is_named() {
        let with_cpu = |percent| SettingMetrics {
            cpu_server_percent: Some(percent),
            ..seen(20, 4e9)
        };
        let (end, percent, streams) = (Endpoint::Server, 99.2, 20);
        let saturated = [Reason::CoreSaturated { end, percent, streams }];
        assert_eq!(of_degradation(&seen(4, 5e9), &with_cpu(99.2), &HOSTS), saturated);
        assert_eq!(of_limit(&with_cpu(99.2), &HOSTS).len(), 1);
        // A program that uses two cores is held back by none.
        assert_eq!(of_limit(&with_cpu(190.0), &HOSTS), []);
    }

    #[test]
    fn streams_beyond_cores_need_cores_that_are_known_and_busy() {
        let here = |percent| SettingMetrics {
            cpu_client_percent: Some(percent),
            ..seen(32, 2e9)
        };
        let (end, streams, cores) = (Endpoint::Client, 32, 16);
        let crowded = of_degradation(&seen(8, 5e9), &here(1500.0), &HOSTS);
        assert_eq!(crowded[0], Reason::StreamsBeyondCores { end, streams, cores });
        let idle = of_degradation(&seen(8, 5e9), &here(300.0), &HOSTS);
        assert_eq!(idle, [not_known([Unchecked::ServerCores])]);
        // Fewer streams than at the best setting have no such excuse.
        let fewer = of_degradation(&seen(64, 5e9), &here(1200.0), &HOSTS);
        assert_eq!(fewer, [not_known([])]);
    }

    #[test]
    fn both_ends_on_one_host_share_its_cores() {
        let hosts = Hosts {
            client_cores: Some(2),
            is_same_host: true,
            ..Hosts::default()
        };
        let here = SettingMetrics {
            cpu_client_percent: Some(105.0),
            cpu_server_percent: Some(90.0),
            ..seen(8, 4e9)
        };
        let (ends, percent, cores) = (&[Endpoint::Client, Endpoint::Server], 195.0, 2);
        assert_eq!(of_limit(&here, &hosts), [Reason::CoresBusy { ends, percent, cores }]);
        let reasons = of_degradation(&seen(1, 6e9), &here, &hosts);
        assert!(matches!(reasons[0], Reason::StreamsBeyondCores { cores: 2, .. }));
    }

    #[test]
    fn a_window_is_compared_with_the_bandwidth_delay_product() {
        let best = seen(2, 8e9);
        let here = |window_bytes| SettingMetrics {
            window_bytes: Some(window_bytes),
            ..seen(2, 1e9)
        };
        // 4 Gbit/s per stream times 200 µs.
        assert_eq!(
            of_degradation(&best, &here(65_536), &HOSTS),
            [Reason::WindowBelowBdp {
                window_bytes: 65_536,
                rtt_us: 200.0,
                wanted_bps: 4e9,
                bdp_bytes: 100_000.0
            }]
        );
        assert!(is_not_known(&of_degradation(&best, &here(131_072), &HOSTS)));
        let unmeasured = SettingMetrics {
            rtt_us: None,
            ..here(65_536)
        };
        let reasons = of_degradation(&best, &unmeasured, &HOSTS);
        assert_eq!(reasons, [not_known([Unchecked::RoundTripTime])]);
    }

    #[test]
    fn retransmits_loss_and_limits_of_the_sender() {
        let retransmits = |per_s| SettingMetrics {
            retransmits_per_s: Some(per_s),
            ..seen(4, 1e9)
        };
        let reasons = |best: f64, here: f64| of_degradation(&retransmits(best), &retransmits(here), &HOSTS);
        assert!(matches!(reasons(1.0, 50.0)[0], Reason::RetransmitsRise { .. }));
        for (best, here) in [(1.0, 5.0), (40.0, 60.0)] {
            assert!(is_not_known(&reasons(best, here)), "{best} {here}");
        }
        let lossy = |percent| SettingMetrics {
            lost_percent: Some(percent),
            retransmits_per_s: None,
            ..seen(1, 1e9)
        };
        let (best_percent, here_percent) = (0.0, 3.0);
        let loss = Reason::Loss {
            best_percent,
            here_percent,
        };
        assert_eq!(of_degradation(&lossy(0.0), &lossy(3.0), &HOSTS), [loss]);
        assert!(is_not_known(&of_degradation(&lossy(0.0), &lossy(0.01), &HOSTS)));
        let limited = SettingMetrics {
            stream_rate_bps: Some(100_000_000),
            ..seen(2, 199e6)
        };
        assert!(matches!(
            of_limit(&limited, &HOSTS)[0],
            Reason::SenderLimited { streams: 2, .. }
        ));
        let slower = SettingMetrics {
            received_bps: 150e6,
            ..limited
        };
        assert_eq!(of_limit(&slower, &HOSTS), []);
    }

    #[test]
    fn unreported_metrics_are_listed() {
        let silent = SettingMetrics {
            cpu_server_percent: None,
            retransmits_per_s: None,
            ..seen(8, 1e9)
        };
        let unchecked = [
            Unchecked::ServerCores,
            Unchecked::Cpu(Endpoint::Server),
            Unchecked::Retransmits,
        ];
        assert_eq!(of_degradation(&seen(2, 2e9), &silent, &HOSTS), [not_known(unchecked)]);
    }
}
