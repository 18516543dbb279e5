//! The columns of a stream: which there are, and how they look.

use linerate_model::metrics::{Distribution, ReadCounts};
use linerate_model::spec::{TestSpec, Transport};
use linerate_model::workload::Shape;
use linerate_model::{StreamRole, TcpInterval, UdpInterval};

use super::amount::{bits, bytes, percent, power};
use super::connection::implies_more;
use super::options::Options;
use super::row::{Row, times};

/// A family of columns. Its header is shown before its first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// Interval, transfer and bandwidth.
    Plain,
    /// The same with jitter and loss.
    PlainDatagrams,
    /// TCP sender.
    Writes,
    /// TCP sender with kernel pacing.
    PacedWrites,
    /// TCP sender whose writes are timed.
    TimedWrites,
    /// TCP sender of frames.
    Frames,
    /// TCP receiver.
    Reads,
    /// TCP receiver that knows the sender's clock.
    Delays,
    /// The same of frames.
    FrameDelays,
    /// TCP receiver of bursts.
    Bursts,
    /// UDP sender.
    Datagrams,
    /// UDP sender of frames.
    DatagramFrames,
    /// UDP receiver.
    Arrivals,
    /// UDP receiver that knows the sender's clock.
    ArrivalDelays,
    /// The same of frames.
    ArrivalFrames,
    /// Requests and replies.
    RoundTrips,
}

impl Family {
    /// The columns for a stream of this test.
    pub(super) fn of(options: &Options, test: &TestSpec, row: &Row<'_>) -> Self {
        let shape = &test.workload.shape;
        let is_isochronous = matches!(shape, Shape::Isochronous(_));
        let more = options.enhanced || implies_more(test) && row.role == StreamRole::Receiver;
        let is_new = options.is_new();
        match (test.transport, row.role) {
            (_, StreamRole::Sender) if row.more.round_trips.is_some() && options.enhanced => Self::RoundTrips,
            (Transport::Udp, StreamRole::Sender) if options.enhanced && is_isochronous => Self::DatagramFrames,
            (Transport::Udp, StreamRole::Sender) if options.enhanced => Self::Datagrams,
            (Transport::Udp, StreamRole::Receiver) if more && is_isochronous && test.workload.trip_times => {
                Self::ArrivalFrames
            }
            (Transport::Udp, StreamRole::Receiver) if more && is_new && !test.workload.trip_times => Self::Arrivals,
            (Transport::Udp, StreamRole::Receiver) if more => Self::ArrivalDelays,
            (Transport::Udp, StreamRole::Receiver) => Self::PlainDatagrams,
            (_, StreamRole::Sender) if options.enhanced && is_isochronous => Self::Frames,
            (_, StreamRole::Sender) if options.enhanced && test.workload.write_times => Self::TimedWrites,
            (_, StreamRole::Sender) if options.enhanced && is_new && test.pacing.fq_rate_bps.is_some() => {
                Self::PacedWrites
            }
            (_, StreamRole::Sender) if options.enhanced => Self::Writes,
            (_, StreamRole::Receiver) if matches!(shape, Shape::BounceBack(_)) => {
                if is_new && options.enhanced {
                    Self::Reads
                } else {
                    Self::Plain
                }
            }
            (_, StreamRole::Receiver) if test.reports_bursts() => Self::Bursts,
            (_, StreamRole::Receiver) if test.workload.trip_times && is_isochronous => Self::FrameDelays,
            (_, StreamRole::Receiver) if test.workload.trip_times => Self::Delays,
            (_, StreamRole::Receiver) if options.enhanced => Self::Reads,
            _ => Self::Plain,
        }
    }

    /// The header, without a line end.
    pub(super) fn header(self, options: &Options) -> String {
        // Releases that show four decimals leave more room for them.
        let gap = if options.is_new() { "        " } else { "            " };
        let wide = format!("[ ID] Interval{gap}Transfer    Bandwidth");
        let wider = format!("[ ID] Interval{gap}Transfer     Bandwidth");
        let is_new = options.is_new();
        match self {
            Self::Plain => PLAIN_HEADER.to_owned(),
            Self::PlainDatagrams => format!("{PLAIN_HEADER}        Jitter   Lost/Total Datagrams"),
            Self::Writes if is_new => {
                format!("{wide}       Write/Err  Rtry     InF(pkts)/Cwnd(pkts)/RTT(var)        NetPwr")
            }
            Self::Writes => format!("{wide}       Write/Err  Rtry     Cwnd/RTT(var)        NetPwr"),
            Self::PacedWrites => {
                format!("{wide}       Write/Err  Rtry     InF(pkts)/Cwnd(pkts)/RTT(var)  fq-rate  NetPwr")
            }
            Self::TimedWrites if is_new => format!(
                "{wide}       Write/Err  Rtry    InF(pkts)/Cwnd(pkts)/RTT(var)   NetPwr  write-times avg/min/max/stdev (cnt)"
            ),
            Self::TimedWrites => {
                format!("{wide}       Write/Err  Rtry     Cwnd/RTT        NetPwr  write-times avg/min/max/stdev (cnt)")
            }
            Self::Frames if is_new => {
                format!("{wider}      Write/Err  Rtry     Cwnd(pkts)/RTT(var)     isoch:tx/miss/slip  NetPwr")
            }
            Self::Frames => format!("{wider}      Write/Err  Rtry     Cwnd/RTT     isoch:tx/miss/slip  NetPwr"),
            Self::Reads => format!("{wide}       Reads=Dist"),
            Self::Delays => format!("{wide}    Burst Latency avg/min/max/stdev (cnt/size) inP NetPwr  Reads=Dist"),
            Self::FrameDelays => format!("{wide}    Burst Latency avg/min/max/stdev (cnt/size) NetPwr  Reads=Dist"),
            Self::Bursts => {
                "[ ID] Burst (start-end)  Transfer     Bandwidth       XferTime  (DC%)     Reads=Dist          NetPwr"
                    .to_owned()
            }
            Self::Datagrams if is_new => format!("{wider}      Write/Err/Timeo  PPS"),
            Self::Datagrams => format!("{wider}      Write/Err  PPS"),
            Self::DatagramFrames => format!("{wider}      Write/Err  PPS  isoch:tx/miss/slip"),
            Self::Arrivals => {
                format!("{wider}        Jitter   Lost/Total  Latency avg/min/max/stdev PPS Read/Timeo/NA NetPwr")
            }
            Self::ArrivalDelays if is_new => format!(
                "{wider}        Jitter   Lost/Total  Latency avg/min/max/stdev PPS  Rx/inP  Read/Timeo/Trunc  NetPwr"
            ),
            Self::ArrivalDelays => {
                format!("{wider}        Jitter   Lost/Total  Latency avg/min/max/stdev PPS  Rx/inP  NetPwr")
            }
            Self::ArrivalFrames => {
                let delay = if is_new { "Frame-latency avg/min/max/stdev" } else { "latency" };
                format!(
                    "{wider}        Jitter   Lost/Total Latency avg/min/max/stdev  PPS  Frame:rx/lost  {delay}  NetPwr"
                )
            }
            Self::RoundTrips if is_new => format!(
                "{wide}         BB cnt=avg/min/max/stdev         Rtry  Cwnd(pkts)/RTT(var)   Tx/Rx bytes  RPS(avg)"
            ),
            Self::RoundTrips => format!("{wide}         BB cnt=avg/min/max/stdev         Rtry  Cwnd/RTT    RPS"),
        }
    }

    /// The line behind its label, without a line end.
    pub(super) fn line(self, options: &Options, test: &TestSpec, row: &Row<'_>) -> String {
        let opening = row.opening(options);
        match self {
            Self::Plain => opening,
            Self::PlainDatagrams => format!("{opening}  {}", jitter_and_loss(row.udp)),
            Self::Writes => format!("{opening}  {}", writes(options, row)),
            Self::PacedWrites => format!("{opening}  {}", paced_writes(options, test, row)),
            Self::TimedWrites => format!("{opening}  {}", timed_writes(options, row)),
            Self::Frames => format!("{opening}  {}", frames(options, row)),
            Self::Reads => format!("{opening}  {}", reads(row.more.reads)),
            Self::Delays => format!("{opening}  {}", delays(row, true)),
            Self::FrameDelays => format!("{opening}  {}", delays(row, false)),
            Self::Bursts => format!("{opening}  {}", bursts(options, row)),
            Self::Datagrams | Self::DatagramFrames => format!("{opening}  {}", datagrams(self, options, row)),
            Self::Arrivals | Self::ArrivalDelays => format!("{opening}  {}", arrivals(self, options, row)),
            Self::ArrivalFrames => format!("{opening}  {}", arrival_frames(options, row)),
            Self::RoundTrips => format!("{opening}  {}", bounces(options, row)),
        }
    }
}

/// Header of the plain columns.
pub(super) const PLAIN_HEADER: &str = "[ ID] Interval       Transfer     Bandwidth";

/// Late datagrams have a line of their own.
pub(super) fn out_of_order(options: &Options, start_s: f64, end_s: f64, datagrams: u64) -> Option<String> {
    (datagrams > 0).then(|| {
        let times = times(start_s, end_s, options);
        format!("{times} sec  {datagrams} datagrams received out-of-order")
    })
}

/// One-way delays of a bounce-back test.
pub(super) fn one_way(options: &Options, row: &Row<'_>) -> Option<String> {
    let bounces = row.more.round_trips?;
    let (out, back, asymmetry) = (bounces.out?, bounces.back?, bounces.asymmetry?);
    let times = times(row.start_s, row.end_s, options);
    let (out, back, asymmetry) = (ms(&out, '/'), ms(&back, '/'), ms(&asymmetry, '/'));
    let count = bounces.round_trip.count;
    if options.is_new() {
        return Some(format!("{times} sec  OWD (ms) Cnt={count} TX={out} RX={back} Asymmetry={asymmetry}"));
    }
    row.is_total.then(|| {
        let rate = replies_per_s(&bounces.round_trip);
        format!("{times} sec  OWD Delays (ms) Cnt={count} To={out} From={back} Asymmetry={asymmetry}    {rate} rps")
    })
}

fn jitter_and_loss(udp: Option<UdpInterval>) -> String {
    let udp = udp.unwrap_or_default();
    let (lost, total) = (udp.lost, udp.packets);
    format!("{:6.3} ms {lost}/{total} ({}%)", udp.jitter_s * 1e3, percent(lost, total))
}

fn tcp(row: &Row<'_>) -> TcpInterval {
    row.tcp.or(row.more.tcp).unwrap_or_default()
}

fn write_counts(row: &Row<'_>) -> (u64, u64, u64) {
    let counts = row.more.writes.unwrap_or_default();
    (counts.calls, counts.errors, counts.timeouts)
}

/// Window and round trip as 2.2.1 writes them, from the window on.
fn window(row: &Row<'_>) -> String {
    let (tcp, more) = (tcp(row), row.more);
    format!("{}K({})/{}({}) us", tcp.snd_cwnd_bytes / 1024, more.cwnd_segments.unwrap_or(0), tcp.rtt_us, tcp.rttvar_us)
}

fn in_flight(row: &Row<'_>, width: usize) -> String {
    let more = row.more;
    let kbytes = more.in_flight_bytes.unwrap_or(0) / 1024;
    format!("{kbytes:width$}K({})", more.in_flight_segments.unwrap_or(0))
}

fn sender_power(row: &Row<'_>) -> String {
    power(row.bytes_per_s(), f64::from(tcp(row).rtt_us) / 1e6)
}

fn writes(options: &Options, row: &Row<'_>) -> String {
    let (tcp, (calls, errors, _)) = (tcp(row), write_counts(row));
    let retransmits = tcp.retransmits;
    if options.is_new() {
        let (in_flight, window) = (in_flight(row, 9), window(row));
        return format!("{calls}/{errors}{retransmits:10}{in_flight}/{window}  {}", sender_power(row));
    }
    let kbytes = tcp.snd_cwnd_bytes / 1024;
    let (rtt, variation) = (tcp.rtt_us, tcp.rttvar_us);
    format!("{calls}/{errors} {retransmits:10} {kbytes:8}K/{rtt}({variation}) us  {}", sender_power(row))
}

fn paced_writes(options: &Options, test: &TestSpec, row: &Row<'_>) -> String {
    if row.is_total {
        let (tcp, (calls, errors, _)) = (tcp(row), write_counts(row));
        let (retransmits, kbytes) = (tcp.retransmits, tcp.snd_cwnd_bytes / 1024);
        let (rtt, variation, power) = (tcp.rtt_us, tcp.rttvar_us, sender_power(row));
        return format!("{calls}/{errors}{retransmits:10}{kbytes:9}K/{rtt}({variation}) us {power}");
    }
    let line = writes(options, row);
    let rate = bits(test.pacing.fq_rate_bps.unwrap_or(0) as f64);
    let (columns, power) = line.rsplit_once("  ").unwrap_or((&line, ""));
    format!("{columns} {rate}/sec {power}")
}

fn timed_writes(options: &Options, row: &Row<'_>) -> String {
    let (tcp, (calls, errors, _)) = (tcp(row), write_counts(row));
    let timed = row.more.write_times.unwrap_or_default();
    let times = format!("{} ms ({})", ms(&timed, '/'), timed.count);
    let (retransmits, power) = (tcp.retransmits, sender_power(row));
    if options.is_new() {
        let (in_flight, window) = (in_flight(row, 7), window(row));
        return format!("{calls}/{errors}{retransmits:9}{in_flight}/{window}      {power}  {times}");
    }
    let (kbytes, rtt) = (tcp.snd_cwnd_bytes / 1024, tcp.rtt_us);
    format!("{calls}/{errors} {retransmits:10} {kbytes:8}K/{rtt} us  {power}  {times}")
}

fn frames(options: &Options, row: &Row<'_>) -> String {
    let (tcp, (calls, errors, _)) = (tcp(row), write_counts(row));
    let frames = row.more.frames.unwrap_or_default();
    let counts = format!("{:11}/{}/{}", frames.done, frames.missed, frames.slips);
    let retransmits = tcp.retransmits;
    let power = sender_power(row);
    if options.is_new() {
        let kbytes = tcp.snd_cwnd_bytes / 1024;
        let window = window(row);
        let window = window.trim_start_matches(|c: char| c.is_ascii_digit());
        return format!("{calls}/{errors}{retransmits:9}{kbytes:9}{window}{counts}       {power}");
    }
    let (kbytes, rtt) = (tcp.snd_cwnd_bytes / 1024, tcp.rtt_us);
    format!("{calls}/{errors}{retransmits:9}{kbytes:9}K/{rtt} us{counts}        {power}")
}

/// Calls and their sizes in eighths of the block length.
pub(super) fn reads(counts: Option<ReadCounts>) -> String {
    let counts = counts.unwrap_or_default();
    let bins: Vec<String> = counts.bins.iter().map(u64::to_string).collect();
    format!("{}={}", counts.calls, bins.join(":"))
}

fn delays(row: &Row<'_>, with_load: bool) -> String {
    let delay = row.more.one_way.unwrap_or_default();
    let size = row.more.burst_mean_bytes.unwrap_or(0);
    // Little's law: what is on its way is what arrives in the time it takes.
    let load = if with_load { format!("{} ", bytes(row.bytes_per_s() * delay.mean)) } else { String::new() };
    format!(
        "{} ms ({}/{size}) {load}{}  {}",
        ms(&delay, '/'),
        delay.count,
        power(row.bytes_per_s(), delay.mean),
        reads(row.more.reads)
    )
}

fn bursts(options: &Options, row: &Row<'_>) -> String {
    let transfer = row.more.burst_transfer.unwrap_or_default();
    let reads = reads(row.more.reads);
    if row.is_total {
        return format!("{} ms  {reads}", ms(&transfer, '/'));
    }
    let duty = crate::number::general(row.more.burst_duty_cycle.unwrap_or(0.0) * 100.0, 2);
    let gap = if options.is_new() { " " } else { "  " };
    let power = power(row.bytes_per_s(), transfer.mean);
    format!("{:6.3} ms ({duty}%)    {reads}{gap}{power}", transfer.mean * 1e3)
}

fn datagrams(family: Family, options: &Options, row: &Row<'_>) -> String {
    let (calls, errors, timeouts) = write_counts(row);
    let rate = datagram_rate(row);
    match (family, options.is_new()) {
        (Family::DatagramFrames, is_new) => {
            let frames = row.more.frames.unwrap_or_default();
            let gap = if is_new { "" } else { " " };
            let counts = format!("{:4}/{}/{}", frames.done, frames.missed, frames.slips);
            format!("{calls}/{errors}{gap}{rate:8.0} pps {counts}")
        }
        (_, true) => format!("{calls}/{errors}/{timeouts}{rate:8.0} pps"),
        (_, false) => format!("{calls}/{errors} {rate:8.0} pps"),
    }
}

/// What was counted over the time it took, where the engine reports nothing better.
pub(super) fn datagram_rate(row: &Row<'_>) -> f64 {
    let counted = row.udp.map_or(0, |udp| udp.packets) as f64;
    let per_s = if row.seconds() > 0.0 { counted / row.seconds() } else { 0.0 };
    row.more.datagrams_per_s.unwrap_or(per_s)
}

fn arrivals(family: Family, options: &Options, row: &Row<'_>) -> String {
    let loss = jitter_and_loss(row.udp);
    let delay = row.more.one_way.unwrap_or_default();
    let rate = datagram_rate(row);
    let (delays, power) = if is_plausible(&delay) {
        (ms(&delay, '/'), format!(" {}", power(row.bytes_per_s(), delay.mean)))
    } else {
        ("-/-/-/-".to_owned(), String::new())
    };
    let counts = row.more.reads.unwrap_or_default();
    let calls = format!("{}/{}/{}", counts.calls, counts.timeouts, counts.truncated);
    // Little's law again; the deviation in parentheses.
    let received = row.more.datagrams_received.unwrap_or(0);
    let load = format!("{received}/{:.0}({:.0}) pkts", rate * delay.mean, rate * delay.deviation);
    match (family, options.is_new()) {
        (Family::Arrivals, _) => format!("{loss} {delays} ms {rate:.0} pps {calls}{power}"),
        (_, true) => format!("{loss} {delays} ms {rate:.0} pps {load} {calls}{power}"),
        (_, false) => format!("{loss} {delays} ms {rate:.0} pps {load}{power}"),
    }
}

fn arrival_frames(options: &Options, row: &Row<'_>) -> String {
    let loss = jitter_and_loss(row.udp);
    let delay = row.more.one_way.unwrap_or_default();
    let frames = row.more.frames.unwrap_or_default();
    let (rate, counts) = (datagram_rate(row), format!("{}/{}", frames.done, frames.missed));
    let frame_delay = ms(&row.more.frame_delay.unwrap_or_default(), '/');
    let power = power(row.bytes_per_s(), delay.mean);
    let delays = ms(&delay, '/');
    if options.is_new() {
        format!("{loss} {delays} ms {rate:.0} pps  {counts} {frame_delay} ms {power}")
    } else {
        format!("{loss} {delays} ms {rate:.0} pps {counts:>6}  {frame_delay} ms {power}")
    }
}

fn bounces(options: &Options, row: &Row<'_>) -> String {
    let bounces = row.more.round_trips.unwrap_or_default();
    let (trips, tcp) = (bounces.round_trip, tcp(row));
    let rate = replies_per_s(&trips);
    let trips = format!("{:4}={} ms", trips.count, ms(&trips, '/'));
    let retransmits = tcp.retransmits;
    let kbytes = tcp.snd_cwnd_bytes / 1024;
    if !options.is_new() {
        return format!("{trips} {retransmits:4} {kbytes:4}K/{} us    {rate} rps", tcp.rtt_us);
    }
    let amounts = format!(
        "Tx={} Rx={}  RPS={rate}",
        bytes(bounces.sent_bytes as f64).trim_start(),
        bytes(bounces.received_bytes as f64).trim_start()
    );
    if row.is_total {
        return format!("{trips} {retransmits:4}   -(-)/-(-)    {amounts}");
    }
    let segments = row.more.cwnd_segments.map_or_else(String::new, |segments| segments.to_string());
    let (rtt, variation) = (tcp.rtt_us, tcp.rttvar_us);
    format!("{trips} {retransmits:4} {kbytes:3}K/({segments})/{rtt}({variation}) us  {amounts}")
}

/// Requests per second of the time that was spent waiting for replies.
fn replies_per_s(trips: &Distribution) -> String {
    let rate = if trips.mean > 0.0 { 1.0 / trips.mean } else { 0.0 };
    format!("{rate:.0}")
}

/// Delays that only disagreeing clocks can explain are not shown.
fn is_plausible(delay: &Distribution) -> bool {
    delay.min > -10_000.0 && delay.max < 60_000_000.0
}

/// Mean, extremes and deviation in ms.
pub(super) fn ms(numbers: &Distribution, separator: char) -> String {
    [numbers.mean, numbers.min, numbers.max, numbers.deviation]
        .map(|seconds| format!("{:.3}", seconds * 1e3))
        .join(&separator.to_string())
}
