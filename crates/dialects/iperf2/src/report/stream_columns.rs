//! The columns of a stream: which there are, and how they look.

use linerate_model::metrics::{Distribution, ReadCounts};
use linerate_model::spec::{TestSpec, Transport};
use linerate_model::workload::Shape;
use linerate_model::{StreamRole, TcpInterval, UdpInterval};

use super::amount::{bits, bytes, percent, power};
use super::connection::implies_more;
use super::options::Options;
use super::row::{Row, times};

/// The columns of a row.
pub(super) struct Columns {
    /// The header, shown before the first line under it; without a line end.
    pub header: String,
    /// The line behind its label, without a line end.
    pub line: String,
}

/// The header from the transferred bytes on, or all of it where every layout has the same; and what
/// follows the rate.
type Values = (&'static str, String);

impl Columns {
    /// The columns for a stream of this test.
    pub(super) fn of(options: &Options, test: &TestSpec, row: &Row<'_>) -> Self {
        let shape = &test.workload.shape;
        let is_isochronous = matches!(shape, Shape::Isochronous(_));
        let is_bouncing = matches!(shape, Shape::BounceBack(_));
        let enhanced = options.enhanced;
        let is_new = options.is_new();
        let has_delays = test.workload.trip_times;
        let more = enhanced || implies_more(test) && row.role == StreamRole::Receiver;
        let values = match (test.transport, row.role) {
            (_, StreamRole::Sender) if enhanced && row.more.round_trips.is_some() => {
                round_trips(options, row)
            }
            (Transport::Udp, StreamRole::Sender) if enhanced && is_isochronous => {
                datagram_frames(options, row)
            }
            (Transport::Udp, StreamRole::Sender) if enhanced => datagrams(options, row),
            (Transport::Udp, StreamRole::Receiver) if more && is_isochronous && has_delays => {
                arrival_frames(options, row)
            }
            (Transport::Udp, StreamRole::Receiver) if more && is_new && !has_delays => {
                arrivals(row)
            }
            (Transport::Udp, StreamRole::Receiver) if more => arrival_delays(options, row),
            (Transport::Udp, StreamRole::Receiver) => plain_datagrams(row),
            (_, StreamRole::Sender) if enhanced && is_isochronous => frames(options, row),
            (_, StreamRole::Sender) if enhanced && test.workload.write_times => {
                timed_writes(options, row)
            }
            (_, StreamRole::Sender) if enhanced && is_new && test.pacing.fq_rate_bps.is_some() => {
                paced_writes(options, test, row)
            }
            (_, StreamRole::Sender) if enhanced => writes(options, row),
            (_, StreamRole::Receiver) if is_bouncing && !(is_new && enhanced) => plain(),
            (_, StreamRole::Receiver) if is_bouncing => read_sizes(row),
            (_, StreamRole::Receiver) if test.reports_bursts() => bursts(options, row),
            (_, StreamRole::Receiver) if has_delays => delays(row, !is_isochronous),
            (_, StreamRole::Receiver) if enhanced => read_sizes(row),
            _ => plain(),
        };

        Self::new(options, row, values)
    }

    /// The columns for the report of a server.
    pub(super) fn of_server_report(options: &Options, row: &Row<'_>) -> Self {
        let has_delays = row.more.one_way.is_some();
        let values = if has_delays {
            arrival_delays(options, row)
        } else {
            plain_datagrams(row)
        };
        Self::new(options, row, values)
    }

    fn new(options: &Options, row: &Row<'_>, (header, values): Values) -> Self {
        let opening = row.opening(options);
        let line = if values.is_empty() {
            opening
        } else {
            format!("{opening}  {values}")
        };

        // Releases that show four decimals leave more room for them.
        let gap = if options.is_new() {
            "        "
        } else {
            "            "
        };
        // A header that begins with a bracket is the same in both layouts.
        let is_whole = header.starts_with('[');
        let header = if is_whole {
            header.to_owned()
        } else {
            format!("[ ID] Interval{gap}Transfer{header}")
        };

        Self { header, line }
    }
}

fn plain() -> Values {
    (PLAIN_HEADER, String::new())
}

fn plain_datagrams(row: &Row<'_>) -> Values {
    (
        "[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams",
        jitter_and_loss(row.udp),
    )
}

/// Header of the plain columns.
pub(super) const PLAIN_HEADER: &str = "[ ID] Interval       Transfer     Bandwidth";

/// Late datagrams have a line of their own.
pub(super) fn out_of_order(
    options: &Options,
    start_s: f64,
    end_s: f64,
    datagrams: u64,
) -> Option<String> {
    (datagrams > 0).then(|| {
        let times = times(start_s, end_s, options);
        format!("{times} sec  {datagrams} datagrams received out-of-order")
    })
}

/// One-way delays of a bounce-back test.
pub(super) fn one_way(options: &Options, row: &Row<'_>) -> Option<String> {
    let bounces = row.more.round_trips?;
    let out = bounces.out?;
    let back = bounces.back?;
    let asymmetry = bounces.asymmetry?;
    let times = times(row.start_s, row.end_s, options);
    let out = ms(&out, '/');
    let back = ms(&back, '/');
    let asymmetry = ms(&asymmetry, '/');
    let count = bounces.round_trip.count;
    if options.is_new() {
        return Some(format!(
            "{times} sec  OWD (ms) Cnt={count} TX={out} RX={back} Asymmetry={asymmetry}"
        ));
    }

    // 2.1.8 prints these delays for the whole test only.
    row.is_total.then(|| {
        let rate = replies_per_s(&bounces.round_trip);
        format!(
            "{times} sec  OWD Delays (ms) Cnt={count} To={out} From={back} Asymmetry={asymmetry}    {rate} rps"
        )
    })
}

fn jitter_and_loss(udp: Option<UdpInterval>) -> String {
    let udp = udp.unwrap_or_default();
    let lost = udp.lost;
    let total = udp.packets;
    format!(
        "{:6.3} ms {lost}/{total} ({}%)",
        udp.jitter_s * 1e3,
        percent(lost, total)
    )
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
    let tcp = tcp(row);
    let more = row.more;
    format!(
        "{}K({})/{}({}) us",
        tcp.snd_cwnd_bytes / 1024,
        more.cwnd_segments.unwrap_or(0),
        tcp.rtt_us,
        tcp.rttvar_us
    )
}

fn in_flight(row: &Row<'_>, width: usize) -> String {
    let more = row.more;
    let kbytes = more.in_flight_bytes.unwrap_or(0) / 1024;
    format!("{kbytes:width$}K({})", more.in_flight_segments.unwrap_or(0))
}

fn sender_power(row: &Row<'_>) -> String {
    power(row.bytes_per_s(), f64::from(tcp(row).rtt_us) / 1e6)
}

fn writes(options: &Options, row: &Row<'_>) -> Values {
    let tcp = tcp(row);
    let (calls, errors, _) = write_counts(row);
    let retransmits = tcp.retransmits;
    let power = sender_power(row);

    if options.is_new() {
        let in_flight = in_flight(row, 9);
        let window = window(row);
        return (
            "    Bandwidth       Write/Err  Rtry     InF(pkts)/Cwnd(pkts)/RTT(var)        NetPwr",
            format!("{calls}/{errors}{retransmits:10}{in_flight}/{window}  {power}"),
        );
    }

    let kbytes = tcp.snd_cwnd_bytes / 1024;
    let rtt = tcp.rtt_us;
    let variation = tcp.rttvar_us;
    (
        "    Bandwidth       Write/Err  Rtry     Cwnd/RTT(var)        NetPwr",
        format!("{calls}/{errors} {retransmits:10} {kbytes:8}K/{rtt}({variation}) us  {power}"),
    )
}

/// A sender with kernel pacing, which only 2.2.1 distinguishes.
fn paced_writes(options: &Options, test: &TestSpec, row: &Row<'_>) -> Values {
    let header =
        "    Bandwidth       Write/Err  Rtry     InF(pkts)/Cwnd(pkts)/RTT(var)  fq-rate  NetPwr";
    if row.is_total {
        let tcp = tcp(row);
        let (calls, errors, _) = write_counts(row);
        let retransmits = tcp.retransmits;
        let kbytes = tcp.snd_cwnd_bytes / 1024;
        let rtt = tcp.rtt_us;
        let variation = tcp.rttvar_us;
        let power = sender_power(row);
        return (
            header,
            format!("{calls}/{errors}{retransmits:10}{kbytes:9}K/{rtt}({variation}) us {power}"),
        );
    }

    let (_, line) = writes(options, row);
    let rate = bits(test.pacing.fq_rate_bps.unwrap_or(0) as f64);
    // The rate goes before the last column.
    let (columns, power) = line.rsplit_once("  ").unwrap_or((&line, ""));
    (header, format!("{columns} {rate}/sec {power}"))
}

fn timed_writes(options: &Options, row: &Row<'_>) -> Values {
    let tcp = tcp(row);
    let (calls, errors, _) = write_counts(row);
    let timed = row.more.write_times.unwrap_or_default();
    let times = format!("{} ms ({})", ms(&timed, '/'), timed.count);
    let retransmits = tcp.retransmits;
    let power = sender_power(row);

    if options.is_new() {
        let in_flight = in_flight(row, 7);
        let window = window(row);
        return (
            "    Bandwidth       Write/Err  Rtry    InF(pkts)/Cwnd(pkts)/RTT(var)   NetPwr  \
             write-times avg/min/max/stdev (cnt)",
            format!("{calls}/{errors}{retransmits:9}{in_flight}/{window}      {power}  {times}"),
        );
    }

    let kbytes = tcp.snd_cwnd_bytes / 1024;
    let rtt = tcp.rtt_us;
    (
        "    Bandwidth       Write/Err  Rtry     Cwnd/RTT        NetPwr  write-times \
         avg/min/max/stdev (cnt)",
        format!("{calls}/{errors} {retransmits:10} {kbytes:8}K/{rtt} us  {power}  {times}"),
    )
}

fn frames(options: &Options, row: &Row<'_>) -> Values {
    let tcp = tcp(row);
    let (calls, errors, _) = write_counts(row);
    let retransmits = tcp.retransmits;
    let kbytes = tcp.snd_cwnd_bytes / 1024;
    let frames = row.more.frames.unwrap_or_default();
    let counts = format!("{:11}/{}/{}", frames.done, frames.missed, frames.slips);
    let power = sender_power(row);

    if options.is_new() {
        let window = window(row);
        let window = window.trim_start_matches(|c: char| c.is_ascii_digit());
        return (
            "     Bandwidth      Write/Err  Rtry     Cwnd(pkts)/RTT(var)     isoch:tx/miss/slip  \
             NetPwr",
            format!("{calls}/{errors}{retransmits:9}{kbytes:9}{window}{counts}       {power}"),
        );
    }

    (
        "     Bandwidth      Write/Err  Rtry     Cwnd/RTT     isoch:tx/miss/slip  NetPwr",
        format!(
            "{calls}/{errors}{retransmits:9}{kbytes:9}K/{} us{counts}        {power}",
            tcp.rtt_us
        ),
    )
}

fn read_sizes(row: &Row<'_>) -> Values {
    ("    Bandwidth       Reads=Dist", reads(row.more.reads))
}

/// Calls and their sizes in eighths of the block length.
pub(super) fn reads(counts: Option<ReadCounts>) -> String {
    let counts = counts.unwrap_or_default();
    let bins: Vec<String> = counts.bins.iter().map(u64::to_string).collect();
    format!("{}={}", counts.calls, bins.join(":"))
}

fn delays(row: &Row<'_>, with_load: bool) -> Values {
    let delay = row.more.one_way.unwrap_or_default();
    let size = row.more.burst_mean_bytes.unwrap_or(0);
    // Little's law: what is on its way is what arrives in the time it takes.
    let (header, load) = if with_load {
        let load = format!("{} ", bytes(row.bytes_per_s() * delay.mean));
        (
            "    Bandwidth    Burst Latency avg/min/max/stdev (cnt/size) inP NetPwr  Reads=Dist",
            load,
        )
    } else {
        (
            "    Bandwidth    Burst Latency avg/min/max/stdev (cnt/size) NetPwr  Reads=Dist",
            String::new(),
        )
    };

    let delays = ms(&delay, '/');
    let count = delay.count;
    let power = power(row.bytes_per_s(), delay.mean);
    (
        header,
        format!(
            "{delays} ms ({count}/{size}) {load}{power}  {}",
            reads(row.more.reads)
        ),
    )
}

fn bursts(options: &Options, row: &Row<'_>) -> Values {
    let header = "[ ID] Burst (start-end)  Transfer     Bandwidth       XferTime  (DC%)     \
                  Reads=Dist          NetPwr";
    let transfer = row.more.burst_transfer.unwrap_or_default();
    let reads = reads(row.more.reads);
    if row.is_total {
        return (header, format!("{} ms  {reads}", ms(&transfer, '/')));
    }

    let duty =
        linerate_document::number::general(row.more.burst_duty_cycle.unwrap_or(0.0) * 100.0, 2);
    let gap = if options.is_new() { " " } else { "  " };
    let power = power(row.bytes_per_s(), transfer.mean);
    (
        header,
        format!(
            "{:6.3} ms ({duty}%)    {reads}{gap}{power}",
            transfer.mean * 1e3
        ),
    )
}

fn datagrams(options: &Options, row: &Row<'_>) -> Values {
    let (calls, errors, timeouts) = write_counts(row);
    let rate = datagram_rate(row);
    if options.is_new() {
        (
            "     Bandwidth      Write/Err/Timeo  PPS",
            format!("{calls}/{errors}/{timeouts}{rate:8.0} pps"),
        )
    } else {
        (
            "     Bandwidth      Write/Err  PPS",
            format!("{calls}/{errors} {rate:8.0} pps"),
        )
    }
}

fn datagram_frames(options: &Options, row: &Row<'_>) -> Values {
    let (calls, errors, _) = write_counts(row);
    let rate = datagram_rate(row);
    let frames = row.more.frames.unwrap_or_default();
    let gap = if options.is_new() { "" } else { " " };
    let counts = format!("{:4}/{}/{}", frames.done, frames.missed, frames.slips);

    (
        "     Bandwidth      Write/Err  PPS  isoch:tx/miss/slip",
        format!("{calls}/{errors}{gap}{rate:8.0} pps {counts}"),
    )
}

/// Average over the measured time, where the engine reports nothing better.
pub(super) fn datagram_rate(row: &Row<'_>) -> f64 {
    let counted = row.udp.map_or(0, |udp| udp.packets) as f64;
    let per_s = if row.seconds() > 0.0 {
        counted / row.seconds()
    } else {
        0.0
    };
    row.more.datagrams_per_s.unwrap_or(per_s)
}

/// Loss, delays and rate of a receiver; its calls; the power of the network, where the delays are
/// plausible.
fn arrived(row: &Row<'_>) -> [String; 3] {
    let delay = row.more.one_way.unwrap_or_default();
    let (delays, power) = if is_plausible(&delay) {
        (
            ms(&delay, '/'),
            format!(" {}", power(row.bytes_per_s(), delay.mean)),
        )
    } else {
        ("-/-/-/-".to_owned(), String::new())
    };

    let counts = row.more.reads.unwrap_or_default();
    [
        format!(
            "{} {delays} ms {:.0} pps",
            jitter_and_loss(row.udp),
            datagram_rate(row)
        ),
        format!("{}/{}/{}", counts.calls, counts.timeouts, counts.truncated),
        power,
    ]
}

fn arrivals(row: &Row<'_>) -> Values {
    let [arrived, calls, power] = arrived(row);
    (
        "     Bandwidth        Jitter   Lost/Total  Latency avg/min/max/stdev PPS Read/Timeo/NA \
         NetPwr",
        format!("{arrived} {calls}{power}"),
    )
}

/// With Little's law again; the deviation in parentheses.
fn arrival_delays(options: &Options, row: &Row<'_>) -> Values {
    let [arrived, calls, power] = arrived(row);
    let delay = row.more.one_way.unwrap_or_default();
    let rate = datagram_rate(row);
    let received = row.more.datagrams_received.unwrap_or(0);
    let load = format!(
        "{received}/{:.0}({:.0}) pkts",
        rate * delay.mean,
        rate * delay.deviation
    );

    if options.is_new() {
        (
            "     Bandwidth        Jitter   Lost/Total  Latency avg/min/max/stdev PPS  Rx/inP  \
             Read/Timeo/Trunc  NetPwr",
            format!("{arrived} {load} {calls}{power}"),
        )
    } else {
        (
            "     Bandwidth        Jitter   Lost/Total  Latency avg/min/max/stdev PPS  Rx/inP  \
             NetPwr",
            format!("{arrived} {load}{power}"),
        )
    }
}

/// The line on standard error about when an isochronous sender began its frames.
pub(super) fn schedule_errors(options: &Options, number: u32, row: &Row<'_>) -> Option<String> {
    if !options.is_new() || row.role != StreamRole::Sender || !row.is_total {
        return None;
    }

    let late = ms(&row.more.frame_delay?, '/');
    Some(format!(
        "[{number:3}] Isoch schedule errors (mean/min/max/stdev) = {late} ms\n"
    ))
}

fn arrival_frames(options: &Options, row: &Row<'_>) -> Values {
    let loss = jitter_and_loss(row.udp);
    let delay = row.more.one_way.unwrap_or_default();
    let frames = row.more.frames.unwrap_or_default();
    let rate = datagram_rate(row);
    let counts = format!("{}/{}", frames.done, frames.missed);
    let frame_delay = ms(&row.more.frame_delay.unwrap_or_default(), '/');
    let power = power(row.bytes_per_s(), delay.mean);
    let delays = ms(&delay, '/');

    if options.is_new() {
        (
            "     Bandwidth        Jitter   Lost/Total Latency avg/min/max/stdev  PPS  \
             Frame:rx/lost  Frame-latency avg/min/max/stdev  NetPwr",
            format!("{loss} {delays} ms {rate:.0} pps  {counts} {frame_delay} ms {power}"),
        )
    } else {
        (
            "     Bandwidth        Jitter   Lost/Total Latency avg/min/max/stdev  PPS  \
             Frame:rx/lost  latency  NetPwr",
            format!("{loss} {delays} ms {rate:.0} pps {counts:>6}  {frame_delay} ms {power}"),
        )
    }
}

fn round_trips(options: &Options, row: &Row<'_>) -> Values {
    let bounces = row.more.round_trips.unwrap_or_default();
    let trips = bounces.round_trip;
    let tcp = tcp(row);
    let rate = replies_per_s(&trips);

    let trips = format!(
        "{:4}={} ms {:4}",
        trips.count,
        ms(&trips, '/'),
        tcp.retransmits
    );
    let kbytes = tcp.snd_cwnd_bytes / 1024;
    let rtt = tcp.rtt_us;
    let variation = tcp.rttvar_us;

    if !options.is_new() {
        let header = "    Bandwidth         BB cnt=avg/min/max/stdev         Rtry  Cwnd/RTT    RPS";
        return (
            header,
            format!("{trips} {kbytes:4}K/{rtt} us    {rate} rps"),
        );
    }

    let window = if row.is_total {
        "  -(-)/-(-)  ".to_owned()
    } else {
        let segments = row
            .more
            .cwnd_segments
            .map_or_else(String::new, |segments| segments.to_string());
        format!("{kbytes:3}K/({segments})/{rtt}({variation}) us")
    };
    let [sent, received] =
        [bounces.sent_bytes, bounces.received_bytes].map(|amount| bytes(amount as f64));
    (
        "    Bandwidth         BB cnt=avg/min/max/stdev         Rtry  Cwnd(pkts)/RTT(var)   Tx/Rx \
         bytes  RPS(avg)",
        format!(
            "{trips} {window}  Tx={} Rx={}  RPS={rate}",
            sent.trim_start(),
            received.trim_start()
        ),
    )
}

/// Requests per second of the time that was spent waiting for replies.
fn replies_per_s(trips: &Distribution) -> String {
    let rate = if trips.mean > 0.0 {
        1.0 / trips.mean
    } else {
        0.0
    };
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
