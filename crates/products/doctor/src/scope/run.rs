//! One test run a snapshot contains.

use linerate_model::finding::Inapplicable;

use super::host::{Facts, Host};
use super::nic::Nic;
use super::reading::Reading;
use crate::ruling::{Needed, NoMatch, clear, inapplicable, require, unknown};

/// A round trip that grows this many times under load shows a queue, unless it is shorter than what
/// schedulers add.
pub(crate) const QUEUE_INFLATION_MIN: f64 = 3.0;
pub(crate) const QUEUE_RTT_MIN_US: f64 = 5_000.0;

/// Retransmitted segments or missing datagrams that show loss, of all.
const LOSS_MIN: f64 = 1e-3;
/// Payload in a rate of packets of 1,500 bytes with their Ethernet headers, with some slack: 1,448
/// of 1,514 bytes.
const PACED_PAYLOAD: f64 = 0.93;
/// Part of the retransmitted segments from which on they were late and not lost.
const SPURIOUS_MIN: f64 = 0.5;
/// Fewer are a chance event.
const SPURIOUS_SEGMENTS_MIN: f64 = 10.0;

/// One test run a snapshot contains.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'a> {
    pub host: Host<'a>,
    pub index: usize,
}

/// Growth of the round trip under load.
#[derive(Debug)]
pub(crate) struct Inflation {
    /// The round trip under load, of that without.
    pub times: f64,
    /// Measurement that it was concluded from beside the round trip under load: the growth itself,
    /// or the round trip without load.
    pub read: Reading<f64>,
    /// Round trip under load, microseconds.
    pub loaded: Result<Reading<f64>, NoMatch>,
}

/// Runs one snapshot may contain.
const RUNS_MAX: usize = 10_000;

impl<'a> Host<'a> {
    pub(crate) fn runs(&self) -> impl Iterator<Item = Run<'a>> + use<'a> {
        let host = *self;
        (0..RUNS_MAX)
            .map(move |index| Run { host, index })
            .take_while(move |run| host.value(&format!("run.{}.tool", run.index)).is_some())
    }
}

impl<'a> Facts<'a> for Run<'a> {
    fn host(&self) -> &Host<'a> {
        &self.host
    }

    fn key(&self, fact: &str) -> String {
        format!("run.{}.{fact}", self.index)
    }
}

impl<'a> Run<'a> {
    /// Limit for most of the time, if that is known.
    pub(crate) fn limit(&self) -> Option<&'a str> {
        self.text("limit").ok().map(|reading| reading.value)
    }

    /// Continues when this is what limited it for most of the time.
    pub(crate) fn concluded(&self, limit: &str) -> Result<Reading<&'a str>, NoMatch> {
        let concluded = self.text("limit")?;
        require(concluded == limit, format!("the limit is {concluded}"))?;
        Ok(concluded)
    }

    /// True if one of these limited it for most of the time. Ends a rule where something else did.
    pub(crate) fn is_limited_by(&self, names: &[&str]) -> Result<bool, NoMatch> {
        match self.limit() {
            Some(limit) if names.contains(&limit) => Ok(true),
            Some(limit) => clear(format!("the limit is {limit}")),
            None => Ok(false),
        }
    }

    /// Growth of the round trip under load: of probes, where there were any; otherwise of the
    /// test's own segments.
    pub(crate) fn inflation(&self) -> Result<Inflation, NoMatch> {
        let idle = self.number("rtt_idle_us");
        let loaded = self.number("rtt_loaded_us");
        if idle.is_err() && loaded.is_err() {
            let times = self.number("rtt_inflation")?;
            let loaded = self.number("rtt_us");
            return Ok(Inflation {
                times: times.value,
                read: times,
                loaded,
            });
        }

        // A round trip with load decides nothing without the one that it grew from.
        let idle = idle?;
        let loaded = loaded?;
        let times = if idle > 0.0 {
            loaded.value / idle.value
        } else {
            1.0
        };
        Ok(Inflation {
            times,
            read: idle,
            loaded: Ok(loaded),
        })
    }

    /// Growth of the round trip under load where it shows a queue.
    pub(crate) fn queue(&self) -> Option<Inflation> {
        let is_long = |grown: &Inflation| {
            grown
                .loaded
                .as_ref()
                .is_ok_and(|rtt| *rtt >= QUEUE_RTT_MIN_US)
        };
        self.inflation()
            .ok()
            .filter(|grown| grown.times >= QUEUE_INFLATION_MIN && is_long(grown))
    }

    /// A round trip that grows more than the work of the hosts explains, also where the queue is
    /// short.
    pub(crate) fn has_growing_queue(&self) -> bool {
        // A short queue that overflows was taken for random loss (PATH-06).
        const TIMES_MIN: f64 = 1.3;
        const GROWTH_MIN_US: f64 = 1_000.0;

        self.inflation().is_ok_and(|grown| {
            // Loaded less idle, from the quotient, which is known where the idle one is not.
            let growth = grown
                .loaded
                .map_or(0.0, |rtt| rtt.value * (1.0 - 1.0 / grown.times.max(1.0)));
            grown.times >= TIMES_MIN && growth >= GROWTH_MIN_US
        })
    }

    /// Retransmitted segments that the receiver had already, and all of them, where the former are
    /// most: those came late and were not lost.
    fn undone(&self) -> Option<(Reading<f64>, Reading<f64>)> {
        // DSACK (RFC 2883) reports segments that arrived twice: 93 % of 68,000 retransmissions over
        // a quiet veth pair.
        let (twice, repeated) = self
            .number("dsack_segments")
            .ok()
            .zip(self.number("retransmits").ok())?;
        (repeated > 0.0 && twice >= SPURIOUS_MIN * repeated.value).then_some((twice, repeated))
    }

    /// Retransmitted segments that the receiver had already, and all of them, where there are
    /// enough to show reordering.
    pub(crate) fn spurious(&self) -> Option<(Reading<f64>, Reading<f64>)> {
        // Five retransmitted segments of a test in a guest were taken for reordering.
        self.undone()
            .filter(|(_, repeated)| *repeated >= SPURIOUS_SEGMENTS_MIN)
    }

    /// The share of the segments that was retransmitted, where it shows loss.
    pub(crate) fn loss(&self) -> Option<Reading<f64>> {
        let share = self
            .number("retransmit_share")
            .ok()
            .filter(|share| *share >= LOSS_MIN);
        share.filter(|_| self.undone().is_none())
    }

    /// The part of the datagrams that was lost, where it shows more than a chance event.
    pub(crate) fn datagram_loss(&self) -> Option<Reading<f64>> {
        self.number("loss_share")
            .ok()
            .filter(|share| *share >= LOSS_MIN)
    }

    /// True if the send buffer takes no whole block: each write sleeps until acknowledgements make
    /// room.
    pub(crate) fn is_buffer_below_block(&self) -> bool {
        let sizes = self
            .number("sndbuf_bytes")
            .ok()
            .zip(self.number("block_len_bytes").ok());
        sizes.is_some_and(|(buffer, block)| buffer < block)
    }

    /// Part of this host in it, where both ends were watched: `sender` or `receiver`.
    pub(crate) fn part(&self) -> Option<&'a str> {
        self.text("end").ok().map(|reading| reading.value)
    }

    /// True if the host received in it. The output of a server names no direction.
    pub(crate) fn receives(&self) -> Option<bool> {
        match self.part() {
            Some(part) => Some(part == "receiver"),
            None => {
                let reverse = self.flag("reverse").ok()?;
                // A client receives in reverse, a server in the forward direction.
                Some(reverse.value != self.is("server"))
            }
        }
    }

    /// True if this host was the client, where both ends were watched.
    pub(crate) fn is_client(&self) -> bool {
        (self.part() == Some("sender")) != self.is("reverse")
    }

    /// The host that was this end, `sender` or `receiver`, where its facts are known.
    pub(crate) fn end(&self, end: &str) -> Option<Host<'a>> {
        let own = match self.part() {
            Some(part) => part,
            // A client sends in the forward direction, a server in reverse.
            None if self.is("server") == self.is("reverse") => "sender",
            None => "receiver",
        };
        match self.host.other.filter(|_| own != end) {
            // Also of one machine, where each end has its network namespace.
            Some(snapshot) => Some(Host {
                snapshot,
                period: None,
                other: Some(self.host.snapshot),
            }),
            None => (own == end || self.is_over_loopback()).then_some(self.host),
        }
    }

    /// Both ends are in one network namespace. Ends of one machine in different ones share its
    /// CPUs, but no interface.
    fn is_over_loopback(&self) -> bool {
        self.is("same_host") && self.host.text_is("route.peer.dev", "lo")
    }

    /// A load of `linerate test`, which has fewer options than iperf3.
    pub(crate) fn is_examined(&self) -> bool {
        self.text("phase").is_ok()
    }

    /// This run as the other host has it.
    pub(crate) fn at(&self, host: Host<'a>) -> Self {
        Self {
            host,
            index: self.index,
        }
    }

    /// Time that an amount of data takes at the rate of this run, microseconds.
    pub(crate) fn time_us(&self, bytes: f64) -> Result<f64, NoMatch> {
        // From bytes to bits, and from seconds to microseconds.
        Ok(bytes * 8.0 / self.goodput_bps()?.value * 1e6)
    }

    /// Continues only for a UDP test.
    pub(crate) fn over_udp(&self) -> Result<(), NoMatch> {
        match self.text("transport")?.value {
            "udp" => Ok(()),
            _ => inapplicable(Inapplicable::Test, "not UDP"),
        }
    }

    /// Continues unless it is a UDP test.
    pub(crate) fn over_tcp(&self) -> Result<(), NoMatch> {
        if self.is_udp() {
            inapplicable(Inapplicable::Test, "not TCP")
        } else {
            Ok(())
        }
    }

    pub(crate) fn is_udp(&self) -> bool {
        self.text_is("transport", "udp")
    }

    /// A target rate of payload, or a pacing rate of packets, was given and reached.
    pub(crate) fn reaches_its_target(&self) -> bool {
        self.reaches_of_its_target(0.97)
    }

    /// A target rate of payload was reached up to a part of it, or a pacing rate of packets was
    /// reached.
    pub(crate) fn reaches_of_its_target(&self, share: f64) -> bool {
        // iperf3(1): `-b` and `--fq-rate` are rates of each stream.
        let streams = self.number("streams").map_or(1.0, |streams| streams.value);
        let reaches = |fact: &str, part: f64| {
            let target = self.number(fact).ok().filter(|target| *target > 0.0);
            target.is_some_and(|target| {
                self.goodput_bps()
                    .is_ok_and(|rate| rate >= part * target.value * streams)
            })
        };
        reaches("target_bps", share) || reaches("fq_rate_bps", PACED_PAYLOAD)
    }

    /// Goodput at the receiver; at the sender only where the receiver's is absent.
    pub(crate) fn goodput_bps(&self) -> Result<Reading<f64>, NoMatch> {
        match self.number("received_bps") {
            Ok(received) if received > 0.0 => Ok(received),
            _ => unknown(
                self.key("received_bps"),
                "the receiver's total is not known",
            ),
        }
    }

    /// No byte arrived.
    pub(crate) fn moved_nothing(&self) -> bool {
        self.number("received_bps")
            .is_ok_and(|received| received <= 0.0)
    }

    /// Address of the other host.
    pub(crate) fn remote(&self) -> Option<&'a str> {
        // `path` has both addresses in sorted order, equal at both ends.
        let path = self.text("path").ok()?;
        let local = self.text("local").ok()?;
        path.value.split(' ').find(|end| *end != local.value)
    }

    /// Name in reports, with its host.
    pub(crate) fn subject(&self) -> String {
        format!("{} {}", self.host.name(), self.label())
    }

    /// Name in reports, without its host.
    pub(crate) fn label(&self) -> String {
        match self.text("label") {
            Ok(label) => label.value.to_owned(),
            Err(_) => format!("run {}", self.index + 1),
        }
    }

    /// Interface the test ran over; ends a rule where it is not known.
    pub(crate) fn used_nic(&self) -> Result<Nic<'a>, NoMatch> {
        self.nic().or_unknown(
            "route.peer.dev",
            "which interface the test used is not known",
        )
    }

    /// Interface the test ran over, when it is known or there is only one.
    pub(crate) fn nic(&self) -> Option<Nic<'a>> {
        let host = self.host;
        if let Ok(device) = host.text("route.peer.dev") {
            return host.nics().find(|nic| nic.name == device.value);
        }

        // Nothing passes a port without carrier, and what passes a member passes its bond.
        let is_bond = |name: &str| {
            host.nics()
                .any(|nic| nic.name == name && nic.wired().is_ok())
        };
        let is_member = |nic: &Nic<'_>| {
            nic.text("net.master")
                .is_ok_and(|master| is_bond(master.value))
        };
        let mut candidates = host
            .nics()
            .filter(|nic| nic.carrier().is_ok() && !is_member(nic));
        let first = candidates.next()?;

        candidates.next().is_none().then_some(first)
    }
}
