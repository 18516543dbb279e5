//! Why a setting of a sweep is worse than the best one, and what limits the best one.

use linerate_model::event::Endpoint::{self, Client, Server};
use linerate_model::numbers::{bytes, rate};
use linerate_model::sweep::ReasonName::*;
use linerate_model::sweep::{Hosts, Reason, SettingFacts, WindowDeficit};

use crate::rules::prelude::*;

/// From here on a CPU is saturated, in percent: a program never gets all of it.
const CORE_FULL_PERCENT: f64 = 95.0;
/// Up to here a program uses one CPU and no other, in percent: CPU times are counted in ticks, and
/// a control thread adds a little.
const ONE_CORE_PERCENT: f64 = 112.0;
/// From here on streams wait for CPUs, as a share of all of them.
const CORES_CROWDED: f64 = 0.7;
/// Retransmissions below this, per second, limit no test.
const RETRANSMITS_PER_S_MIN: f64 = 10.0;
/// Retransmissions have risen when they are this many times as many.
const RETRANSMITS_RISE: f64 = 2.0;
/// Loss below this, in percent, is no reason.
const LOSS_PERCENT_MIN: f64 = 0.1;
/// From here on a wait is what limits a sender, as a share of the time.
const LIMITED_SHARE_MIN: f64 = 0.5;
/// A sender that reaches this share of its limit is limited by it.
const LIMIT_REACHED: f64 = 0.95;

/// Facts that may be missing, in the order in which they are listed.
const SERVER_CORES: &str = "number of CPUs of the server";
const CLIENT_CPU: &str = "the client's CPU time";
const SERVER_CPU: &str = "the server's CPU time";
const RTT: &str = "the round-trip time";
const RETRANSMITS: &str = "retransmissions";
const LISTED: [&str; 5] = [SERVER_CORES, CLIENT_CPU, SERVER_CPU, RTT, RETRANSMITS];

/// Why `here` is worse than `best`, with the facts that are missing where no rule matches. Without
/// `best`: what limits `here`; empty where that is not known, as with a full link.
pub fn sweep_reasons(
    best: Option<&SettingFacts>,
    here: &SettingFacts,
    hosts: &Hosts,
) -> Vec<Reason> {
    let case = Case { best, here, hosts };
    let rulings = [
        (SenderLimited, case.sender_limited()),
        (SenderBackPressure, case.sender_back_pressure()),
        (WindowBelowBdp, case.window_below_bdp()),
        (SendBuffer, case.send_buffer()),
        (StreamsBeyondCores, case.streams_beyond_cores(Client)),
        (StreamsBeyondCores, case.streams_beyond_cores(Server)),
        (CoresBusy, case.shared_cores_busy()),
        (CoresBusy, case.cores_busy(Client)),
        (CoreSaturated, case.core_saturated(Client)),
        (CoresBusy, case.cores_busy(Server)),
        (CoreSaturated, case.core_saturated(Server)),
        (RetransmitsRise, case.retransmits_rise()),
        (Loss, case.loss()),
    ];
    let mut reasons = Vec::new();
    let mut missing = Vec::new();

    for (name, ruling) in rulings {
        match ruling {
            Ok(found) => reasons.extend(found.evidence.iter().map(|evidence| {
                let window = case.window_deficit().ok();
                Reason {
                    window: window.filter(|_| name == WindowBelowBdp),
                    ..Reason::new(name, evidence.to_string())
                }
            })),
            Err(NoMatch::Unknown(unknown)) => missing.extend(unknown.missing),
            Err(NoMatch::Clear(_) | NoMatch::NotApplicable(..)) => {}
        }
    }

    if reasons.is_empty() && best.is_some() {
        let listed = LISTED
            .into_iter()
            .filter(|fact| missing.iter().any(|(known, _)| known == fact));
        let listed: Vec<&str> = listed.collect();
        let separator = if listed.is_empty() {
            ""
        } else {
            "; not reported: "
        };
        let sentence = format!("not known{separator}{}", listed.join(", "));
        reasons.push(Reason::new(NotKnown, sentence));
    }

    reasons
}

/// A setting beside the best one.
struct Case<'a> {
    best: Option<&'a SettingFacts>,
    here: &'a SettingFacts,
    hosts: &'a Hosts,
}

fn reason(sentence: String) -> Ruling {
    Ok(matched().because_all(vec![Evidence::statement(sentence)]))
}

fn read<T>(fact: &str, value: Option<T>) -> Result<T, NoMatch> {
    value.or_unknown(fact, "not reported")
}

fn given<T>(value: Option<T>) -> Result<T, NoMatch> {
    value.or_clear("not given")
}

impl Case<'_> {
    /// A limit on what is sent explains nothing where more was received.
    fn is_slower(&self) -> Result<(), NoMatch> {
        let is_slower = self
            .best
            .is_none_or(|best| self.here.metrics.received_bps < best.metrics.received_bps);
        require(is_slower, "not slower")
    }

    fn sender_limited(&self) -> Ruling {
        self.is_slower()?;
        let each_bps = given(self.here.stream_rate_bps)? as f64;
        let limit_bps = each_bps * f64::from(self.here.streams);
        require(
            self.here.metrics.received_bps >= LIMIT_REACHED * limit_bps,
            "below the limit",
        )?;

        reason(format!(
            "each stream is at its rate limit of {}",
            rate(each_bps)
        ))
    }

    /// A sender of datagrams that sends less than it was asked for, and has the CPU time for more,
    /// waits for its socket buffer: the queue of its own device is full.
    fn sender_back_pressure(&self) -> Ruling {
        // Only tests of datagrams have a loss in per cent.
        given(self.here.metrics.lost_percent)?;
        let limit_bps = given(self.here.stream_rate_bps)? as f64 * f64::from(self.here.streams);
        let sent_bps = given(self.here.metrics.sent_bps)?;
        require(sent_bps < LIMIT_REACHED * limit_bps, "at the limit")?;

        for end in [Client, Server] {
            require(
                self.core_saturated(end).is_err() && self.cores_busy(end).is_err(),
                "CPU",
            )?;
        }

        require(self.shared_cores_busy().is_err(), "CPU")?;
        reason(format!(
            "the sender's host transmits {} of {}: back-pressure of a shaper or of its link",
            rate(sent_bps),
            rate(limit_bps)
        ))
    }

    /// RFC 6349, section 3.3.1: a window below the bandwidth-delay product cannot fill the path.
    fn window_below_bdp(&self) -> Ruling {
        let window = self.window_deficit()?;
        self.is_slower()?;
        reason(format!(
            "the window of {} is below the bandwidth-delay product of {} ({} per stream x {:.0} us)",
            bytes(window.window_bytes as f64),
            bytes(window.bdp_bytes),
            rate(window.stream_rate_bps),
            window.rtt_us
        ))
    }

    fn window_deficit(&self) -> Result<WindowDeficit, NoMatch> {
        let best = given(self.best)?;
        let window_bytes = given(self.window_bytes())?;
        let rtt_us = read(RTT, self.here.metrics.rtt_us)?;
        let stream_rate_bps = best.metrics.received_bps / f64::from(self.here.streams.max(1));
        let deficit = WindowDeficit::new(window_bytes, rtt_us, stream_rate_bps);
        require(
            (window_bytes as f64) < deficit.bdp_bytes,
            "the window suffices",
        )?;

        Ok(deficit)
    }

    /// The window that was asked for, or the announced one where senders waited for it.
    fn window_bytes(&self) -> Option<u64> {
        let metrics = &self.here.metrics;
        let announced = metrics
            .window_bytes
            .filter(|_| is_limit(metrics.window_limited_share));
        let requested = self.here.requested_window_bytes;
        requested.or(announced.map(|bytes| bytes as u64))
    }

    fn send_buffer(&self) -> Ruling {
        given(self.best)?;
        self.is_slower()?;
        require(self.window_deficit().is_err(), "the window")?;

        let share = given(self.here.metrics.buffer_limited_share)?;
        require(is_limit(Some(share)), "room in the send buffer")?;
        reason(format!(
            "senders wait for room in their send buffers for {:.0} % of the time: \
             net.ipv4.tcp_wmem limits them",
            share * 100.0
        ))
    }

    fn streams_beyond_cores(&self, end: Endpoint) -> Ruling {
        let streams = self.here.streams;
        require(streams > given(self.best)?.streams, "no more streams")?;
        let cores = match end {
            Client => given(self.cores(end))?,
            Server => read(SERVER_CORES, self.cores(end))?,
        };
        require(streams > cores, "a CPU for each stream")?;

        let is_crowded = self.load_percent(end)? >= CORES_CROWDED * 100.0 * f64::from(cores);
        require(is_crowded, "the CPUs are not fully used")?;
        let name = name(end);
        reason(format!(
            "{streams} streams are more than the {cores} CPUs of the {name}, which are busy"
        ))
    }

    fn shared_cores_busy(&self) -> Ruling {
        require(self.hosts.is_same_host, "two hosts")?;
        let percent = self.load_percent(Client)?;
        let cores = given(self.cores(Client))?;
        all_busy("host that is both client and server", percent, cores)
    }

    fn cores_busy(&self, end: Endpoint) -> Ruling {
        require(
            self.shared_cores_busy().is_err(),
            "the CPUs of the host are fully used",
        )?;
        let percent = self.cpu_percent(end)?;
        all_busy(name(end), percent, given(self.cores(end))?)
    }

    /// A program that uses one CPU wholly, and no other.
    fn core_saturated(&self, end: Endpoint) -> Ruling {
        let is_host_full = self.shared_cores_busy().is_ok() || self.cores_busy(end).is_ok();
        require(!is_host_full, "all CPUs are busy")?;
        let percent = self.cpu_percent(end)?;
        require(
            (CORE_FULL_PERCENT..=ONE_CORE_PERCENT).contains(&percent),
            format!("{percent:.0} % of one CPU"),
        )?;

        let name = name(end);
        reason(match self.here.streams {
            1 => format!("one CPU of the {name} is fully used ({percent:.0} %) by one stream"),
            streams => format!(
                "the program of the {name} uses one whole CPU ({percent:.0} %) and no other for \
                 {streams} streams, as iperf3 before 3.16 does"
            ),
        })
    }

    fn retransmits_rise(&self) -> Ruling {
        let best = given(self.best)?;
        require(self.here.metrics.lost_percent.is_none(), "not TCP")?;
        let here_per_s = read(RETRANSMITS, self.here.metrics.retransmits_per_s)?;
        let best_per_s = given(best.metrics.retransmits_per_s)?;
        let has_risen =
            here_per_s >= RETRANSMITS_PER_S_MIN && here_per_s > RETRANSMITS_RISE * best_per_s;
        require(has_risen, format!("{here_per_s:.0} per second"))?;

        reason(format!(
            "retransmissions rise from {best_per_s:.0} to {here_per_s:.0} per second"
        ))
    }

    fn loss(&self) -> Ruling {
        // Without a best setting any loss counts.
        let best = given(
            self.best
                .map_or(Some(0.0), |best| best.metrics.lost_percent),
        )?;
        let here = given(self.here.metrics.lost_percent)?;
        require(here >= best + LOSS_PERCENT_MIN, format!("{here:.2} % lost"))?;

        let at_best = if best > 0.0 {
            format!(", {best:.2} % at the best setting")
        } else {
            String::new()
        };
        reason(format!("{here:.2} % of the datagrams are lost{at_best}"))
    }

    fn cpu_percent(&self, end: Endpoint) -> Result<f64, NoMatch> {
        match end {
            Client => read(CLIENT_CPU, self.here.metrics.cpu_client_percent),
            Server => read(SERVER_CPU, self.here.metrics.cpu_server_percent),
        }
    }

    fn cores(&self, end: Endpoint) -> Option<u32> {
        let Hosts {
            client_cores,
            server_cores,
            is_same_host,
            ..
        } = *self.hosts;
        match end {
            Client => client_cores,
            // Both ends of one host have the same CPUs.
            Server => server_cores.or(client_cores.filter(|_| is_same_host)),
        }
    }

    /// CPU time of the test on this end's host.
    fn load_percent(&self, end: Endpoint) -> Result<f64, NoMatch> {
        if self.hosts.is_same_host {
            return Ok(self.cpu_percent(Client)? + self.cpu_percent(Server)?);
        }
        self.cpu_percent(end)
    }
}

fn is_limit(share: Option<f64>) -> bool {
    share.is_some_and(|share| share >= LIMITED_SHARE_MIN)
}

fn all_busy(whose: &str, percent: f64, cores: u32) -> Ruling {
    require(
        percent >= CORE_FULL_PERCENT * f64::from(cores),
        format!("{percent:.0} % of {cores} CPUs"),
    )?;
    let (all, are) = match cores {
        1 => ("the only CPU".to_owned(), "is"),
        cores => (format!("all {cores} CPUs"), "are"),
    };
    reason(format!(
        "{all} of the {whose} {are} busy ({percent:.0} % of {cores}00 %)"
    ))
}

const fn name(end: Endpoint) -> &'static str {
    match end {
        Client => "client",
        Server => "server",
    }
}
