//! Every measure of a trial: its name, unit, which way is better, and how two values are compared.

use std::fmt;
use std::str::FromStr;

use linerate_macros::stored;

use crate::numbers::{digits, per_s, rate, scaled};

/// One named figure of a trial.
#[stored(Copy, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the table below describes each")]
pub enum MeasureName {
    ReceivedBps,
    SentBps,
    Retransmits,
    RetransmitShare,
    LostShare,
    OutOfOrder,
    JitterNs,
    RttMeanNs,
    RttMinNs,
    RttP50Ns,
    RttP99Ns,
    OneWayP50Ns,
    OneWayP99Ns,
    CpuClientCores,
    CpuServerCores,
    CpuSPerGib,
    ServerCpuNsPerRequest,
    ClientCpuNsPerRequest,
    OkPerS,
    PayloadBytesPerS,
    WireBps,
    LatencyP50Ns,
    LatencyP90Ns,
    LatencyP99Ns,
    LatencyP999Ns,
    ServiceP99Ns,
    SendLagP99Ns,
    ConnectP99Ns,
    ErrorShare,
    FairnessJain,
    ConcurrentTests,
    BothReceivedBps,
    IdleRttP50Ns,
    IdleRttP90Ns,
    IdleRttP95Ns,
    IdleRttP99Ns,
    LoadedRttP50Ns,
    LoadedRttP90Ns,
    LoadedRttP95Ns,
    LoadedRttP99Ns,
    AddedRttNs,
    BufferbloatGrade,
    ResponsivenessRpm,
    LoadedMos,
    ReorderedShare,
    MtuBytes,
    Confidence,
}

/// Unit of a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// bit/s.
    BitsPerSecond,
    /// byte/s.
    BytesPerSecond,
    /// 1/s.
    PerSecond,
    /// ns.
    Nanoseconds,
    /// CPUs; 1 is one CPU busy all the time.
    Cores,
    /// CPU seconds per GiB of payload.
    SecondsPerGib,
    /// 0 to 1.
    Share,
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Round trips per minute.
    RoundTripsPerMinute,
    /// Mean opinion score of a call, 1 to 4.5 (ITU-T G.107).
    OpinionScore,
    /// Position of a letter from `F` to `A+`, from 0.
    Grade,
    /// Position of `low`, `medium` and `high`, from 0.
    Confidence,
}

impl Unit {
    /// Words of a scale whose values are positions, the lowest first; empty for quantities.
    pub const fn scale(self) -> &'static [&'static str] {
        match self {
            Self::Grade => &["F", "D", "C", "B", "A", "A+"],
            Self::Confidence => &["low", "medium", "high"],
            _ => &[],
        }
    }

    /// Position of a word on the scale.
    pub fn position(self, word: &str) -> Option<f64> {
        self.scale()
            .iter()
            .position(|known| *known == word)
            .map(|place| place as f64)
    }

    /// A value with its unit in words.
    pub fn text(self, value: f64) -> String {
        let fine = |value: f64| match value.abs() {
            0.0 => "0".to_owned(),
            tiny if tiny < 0.1 => format!("{value:.4}").trim_end_matches('0').to_owned(),
            _ => digits(value),
        };
        match self {
            Self::BitsPerSecond => rate(value),
            Self::BytesPerSecond => {
                let (value, unit) = scaled(value, 1000.0, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]);
                format!("{} {unit}", digits(value))
            }
            Self::Nanoseconds => {
                let (value, unit) = scaled(value, 1000.0, ["ns", "us", "ms", "s"]);
                format!("{} {unit}", digits(value))
            }
            Self::PerSecond => format!("{}/s", per_s(value)),
            Self::Cores => format!("{} CPUs", fine(value)),
            Self::SecondsPerGib => format!("{} s/GiB", fine(value)),
            Self::Share => format!("{} %", fine(value * 100.0)),
            Self::Count if value.fract() == 0.0 => format!("{value:.0}"),
            Self::Count => fine(value),
            Self::Bytes => format!("{value:.0} bytes"),
            Self::RoundTripsPerMinute => format!("{} RPM", digits(value)),
            Self::OpinionScore => format!("{value:.1}"),
            // Between two positions lies the median of several: the lower one is certain.
            Self::Grade | Self::Confidence => {
                let place = value.clamp(0.0, self.scale().len().saturating_sub(1) as f64) as usize;
                self.scale()
                    .get(place)
                    .copied()
                    .unwrap_or_default()
                    .to_owned()
            }
        }
    }
}

/// Which way a measure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// The higher value.
    More,
    /// The lower value.
    Less,
    /// Neither: it describes a condition.
    Neither,
}

/// Comparison of two values of a measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Comparison {
    /// By their ratio. Differences below `floor`, in the unit of the measure, have no meaning.
    Ratio {
        /// Smallest difference with a meaning.
        floor: f64,
    },
    /// By their difference, because 0 is a usual value.
    Difference {
        /// Smallest difference with a meaning.
        floor: f64,
    },
}

/// Facts of a measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasureInfo {
    /// The measure.
    pub measure: MeasureName,
    /// Its full name, as it is stored.
    pub name: &'static str,
    /// Its short name on command lines.
    pub short: Option<&'static str>,
    /// Meaning, for help texts and tables.
    pub meaning: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// Comparison of two values.
    pub comparison: Comparison,
}

const RATIO: Comparison = Comparison::Ratio { floor: 0.0 };
/// Timers and schedulers move a time by less than this.
const TIME: Comparison = Comparison::Ratio { floor: 20_000.0 };

const fn info(
    measure: MeasureName,
    name: &'static str,
    short: &'static str,
    meaning: &'static str,
    of: (Unit, Better, Comparison),
) -> MeasureInfo {
    let short = if short.is_empty() { None } else { Some(short) };
    MeasureInfo {
        measure,
        name,
        short,
        meaning,
        unit: of.0,
        better: of.1,
        comparison: of.2,
    }
}

const fn difference(floor: f64) -> Comparison {
    Comparison::Difference { floor }
}

use Better::{Less, More, Neither};
use MeasureName as M;
use Unit::{
    BitsPerSecond, Bytes, BytesPerSecond, Cores, Count, Nanoseconds, OpinionScore, PerSecond,
    RoundTripsPerMinute, SecondsPerGib, Share,
};

#[rustfmt::skip]
const ALL: [MeasureInfo; 47] = [
    info(M::ReceivedBps, "received_bps", "rx", "payload received by all streams over the longest \
                                                duration", (BitsPerSecond, More, RATIO)),
    info(M::SentBps, "sent_bps", "tx", "payload sent by all streams over the longest duration", (BitsPerSecond, More, RATIO)),
    info(M::Retransmits, "retransmits", "retr", "retransmitted segments", (Count, Less, difference(1.0))),
    info(M::RetransmitShare, "retransmit_share", "", "retransmitted segments of all segments sent", (Share, Less, difference(0.0001))),
    info(M::LostShare, "lost_share", "loss", "lost datagrams of all datagrams sent, without the \
                                              warm-up", (Share, Less, difference(0.0005))),
    info(M::OutOfOrder, "out_of_order", "", "datagrams that arrived late or twice", (Count, Less, difference(1.0))),
    info(M::JitterNs, "jitter_ns", "jitter", "interarrival jitter (RFC 3550)", (Nanoseconds, Less, TIME)),
    info(M::RttMeanNs, "rtt_mean_ns", "rtt", "mean of the round-trip time as TCP measures it", (Nanoseconds, Less, TIME)),
    info(M::RttMinNs, "rtt_min_ns", "", "lowest round-trip time", (Nanoseconds, Less, TIME)),
    info(M::RttP50Ns, "rtt_p50_ns", "", "median round-trip time", (Nanoseconds, Less, TIME)),
    info(M::RttP99Ns, "rtt_p99_ns", "", "99th percentile of the round-trip time", (Nanoseconds, Less, TIME)),
    info(M::OneWayP50Ns, "one_way_p50_ns", "", "median one-way delay", (Nanoseconds, Less, TIME)),
    info(M::OneWayP99Ns, "one_way_p99_ns", "", "99th percentile of the one-way delay", (Nanoseconds, Less, TIME)),
    info(M::CpuClientCores, "cpu_client_cores", "", "CPUs that the client used", (Cores, Less, RATIO)),
    info(M::CpuServerCores, "cpu_server_cores", "", "CPUs that the server used", (Cores, Less, RATIO)),
    info(M::CpuSPerGib, "cpu_s_per_gib", "cpu", "CPU time of both ends per GiB of payload", (SecondsPerGib, Less, RATIO)),
    info(M::ServerCpuNsPerRequest, "server_cpu_ns_per_request", "", "CPU time of the server per \
                                                                     request", (Nanoseconds, Less, RATIO)),
    info(M::ClientCpuNsPerRequest, "client_cpu_ns_per_request", "", "CPU time of the client per \
                                                                     request", (Nanoseconds, Less, RATIO)),
    info(M::OkPerS, "ok_per_s", "ok", "responses with a status below 400 per second", (PerSecond, More, RATIO)),
    info(M::PayloadBytesPerS, "payload_bytes_per_s", "", "payload of responses per second", (BytesPerSecond, More, RATIO)),
    info(M::WireBps, "wire_bps", "", "rate on the link with all headers", (BitsPerSecond, More, RATIO)),
    info(M::LatencyP50Ns, "latency_p50_ns", "p50", "median latency of responses", (Nanoseconds, Less, TIME)),
    info(M::LatencyP90Ns, "latency_p90_ns", "p90", "90th percentile of the latency of responses", (Nanoseconds, Less, TIME)),
    info(M::LatencyP99Ns, "latency_p99_ns", "p99", "99th percentile of the latency of responses", (Nanoseconds, Less, TIME)),
    info(M::LatencyP999Ns, "latency_p999_ns", "p999", "99.9th percentile of the latency of \
                                                       responses", (Nanoseconds, Less, TIME)),
    info(M::ServiceP99Ns, "service_p99_ns", "", "99th percentile of the service time", (Nanoseconds, Less, TIME)),
    info(M::SendLagP99Ns, "send_lag_p99_ns", "", "99th percentile of the delay between the planned \
                                                  and the real send time", (Nanoseconds, Less, TIME)),
    info(M::ConnectP99Ns, "connect_p99_ns", "", "99th percentile of the connect time", (Nanoseconds, Less, TIME)),
    info(M::ErrorShare, "error_share", "err", "requests that failed", (Share, Less, difference(0.0001))),
    info(M::FairnessJain, "fairness_jain", "jain", "Jain's fairness index of the streams", (Share, More, difference(0.01))),
    info(M::ConcurrentTests, "concurrent_tests", "", "most tests of a server at the same time", (Count, Neither, difference(1.0))),
    info(M::BothReceivedBps, "both_received_bps", "", "payload received with load in both \
                                                       directions", (BitsPerSecond, More, RATIO)),
    info(M::IdleRttP50Ns, "idle_rtt_p50_ns", "", "median round-trip time of UDP probes without load", (Nanoseconds, Less, TIME)),
    info(M::IdleRttP90Ns, "idle_rtt_p90_ns", "", "90th percentile of the round-trip time of UDP \
                                                  probes without load", (Nanoseconds, Less, TIME)),
    info(M::IdleRttP95Ns, "idle_rtt_p95_ns", "", "95th percentile of the round-trip time of UDP \
                                                  probes without load", (Nanoseconds, Less, TIME)),
    info(M::IdleRttP99Ns, "idle_rtt_p99_ns", "", "99th percentile of the round-trip time of UDP \
                                                  probes without load", (Nanoseconds, Less, TIME)),
    info(M::LoadedRttP50Ns, "loaded_rtt_p50_ns", "", "median round-trip time of UDP probes under \
                                                      load", (Nanoseconds, Less, TIME)),
    info(M::LoadedRttP90Ns, "loaded_rtt_p90_ns", "", "90th percentile of the round-trip time of \
                                                      UDP probes under load", (Nanoseconds, Less, TIME)),
    info(M::LoadedRttP95Ns, "loaded_rtt_p95_ns", "", "95th percentile of the round-trip time of \
                                                      UDP probes under load", (Nanoseconds, Less, TIME)),
    info(M::LoadedRttP99Ns, "loaded_rtt_p99_ns", "", "99th percentile of the round-trip time of \
                                                      UDP probes under load", (Nanoseconds, Less, TIME)),
    info(M::AddedRttNs, "added_rtt_ns", "added", "increase of the median round-trip time under load", (Nanoseconds, Less, difference(20_000.0))),
    info(M::BufferbloatGrade, "bufferbloat_grade", "grade", "grade of the delay that load adds, A+ \
                                                             to F", (Unit::Grade, More, difference(1.0))),
    info(M::ResponsivenessRpm, "responsiveness_rpm", "rpm", "round trips per minute under load \
                                                             (draft-ietf-ippm-responsiveness-09)", (RoundTripsPerMinute, More, RATIO)),
    info(M::LoadedMos, "loaded_mos", "mos", "mean opinion score of a call under load (ITU-T G.107)", (OpinionScore, More, difference(0.1))),
    info(M::ReorderedShare, "reordered_share", "reorder", "datagrams that arrived behind a later \
                                                           one (RFC 4737)", (Share, Less, difference(0.0005))),
    info(M::MtuBytes, "mtu_bytes", "mtu", "largest IP packet of the path", (Bytes, More, difference(1.0))),
    info(M::Confidence, "confidence", "confidence", "how steady rate and responsiveness were", (Unit::Confidence, Neither, difference(1.0))),
];

impl MeasureInfo {
    /// The name without its unit, as text for people writes it: `loaded RTT p99`.
    #[must_use]
    pub fn words(&self) -> String {
        const UNITS: [&str; 6] = ["_bps", "_ns", "_cores", "_share", "_bytes", "_rpm"];

        match self.measure {
            M::CpuSPerGib => "CPU per GiB".to_owned(),
            M::ServerCpuNsPerRequest => "server CPU per request".to_owned(),
            M::ClientCpuNsPerRequest => "client CPU per request".to_owned(),
            M::CpuClientCores => "client CPU".to_owned(),
            M::CpuServerCores => "server CPU".to_owned(),
            M::OkPerS => "responses".to_owned(),
            M::PayloadBytesPerS => "payload".to_owned(),
            M::RetransmitShare => "retransmitted".to_owned(),
            M::ErrorShare => "failed requests".to_owned(),
            M::FairnessJain => "fairness".to_owned(),
            M::BothReceivedBps => "received, load both ways".to_owned(),
            M::BufferbloatGrade => "bufferbloat".to_owned(),
            M::LoadedMos => "call quality under load".to_owned(),
            _ => {
                let unit = UNITS.iter().find_map(|unit| self.name.strip_suffix(unit));
                let words = unit.unwrap_or(self.name).replace('_', " ");
                words.replace("rtt", "RTT").replace("mtu", "MTU")
            }
        }
    }
}

impl MeasureName {
    /// Every measure, in the order of reports.
    pub fn all() -> impl Iterator<Item = MeasureInfo> {
        ALL.into_iter()
    }

    /// Its facts.
    pub fn info(self) -> MeasureInfo {
        ALL[self as usize]
    }
}

impl fmt::Display for MeasureName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)
    }
}

impl FromStr for MeasureName {
    type Err = ();

    /// The measure of this full or short name.
    fn from_str(name: &str) -> Result<Self, ()> {
        let is_named = |info: &MeasureInfo| info.name == name || info.short == Some(name);
        ALL.into_iter()
            .find(is_named)
            .map(|info| info.measure)
            .ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored_name;

    #[test]
    fn every_measure_is_found_by_both_names_and_stored_under_the_full_one() {
        for (position, info) in MeasureName::all().enumerate() {
            assert_eq!(info.measure as usize, position);
            assert_eq!(stored_name(info.measure), info.name);
            assert_eq!(info.name.parse(), Ok(info.measure));
            assert!(
                info.short
                    .is_none_or(|short| short.parse() == Ok(info.measure))
            );
        }

        assert_eq!("throughput".parse::<MeasureName>(), Err(()));
    }

    #[test]
    fn words_of_measures_are_distinct_and_no_keys() {
        let mut words: Vec<String> = MeasureName::all().map(|info| info.words()).collect();
        assert!(words.iter().all(|words| !words.contains('_')), "{words:?}");
        words.sort();
        let all = words.len();
        words.dedup();
        assert_eq!(words.len(), all);
    }

    #[test]
    fn values_are_written_with_their_unit() {
        let rows = [
            (Unit::BitsPerSecond, 941.3e6, "941 Mbit/s"),
            (Unit::BytesPerSecond, 1.5e6, "1.50 MB/s"),
            (Unit::Nanoseconds, 250_000.0, "250 us"),
            (Unit::PerSecond, 20_696.0, "20,700/s"),
            (Unit::PerSecond, 999.6, "1,000/s"),
            (Unit::PerSecond, 7.25, "7.25/s"),
            (Unit::Share, 0.0, "0 %"),
            (Unit::Share, 0.0005, "0.05 %"),
            (Unit::Count, 12.0, "12"),
            (Unit::Count, 12.5, "12.5"),
            (Unit::Cores, 0.5, "0.50 CPUs"),
            (Unit::Bytes, 1500.0, "1500 bytes"),
            (Unit::RoundTripsPerMinute, 517.2, "517 RPM"),
            (Unit::OpinionScore, 4.33, "4.3"),
            (Unit::Grade, 0.0, "F"),
            (Unit::Grade, 4.5, "A"),
            (Unit::Grade, 5.0, "A+"),
            (Unit::Grade, 9.0, "A+"),
            (Unit::Confidence, 1.0, "medium"),
        ];
        for (unit, value, text) in rows {
            assert_eq!(unit.text(value), text);
        }
    }
}
