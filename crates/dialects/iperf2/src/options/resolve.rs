//! From what was typed to what is to be done. Decides everything that depends on more than one
//! option.

use std::net::Ipv6Addr;
use std::time::Duration;

use linerate_model::spec::{AddressFamily, ClientSpec, Iperf2Defaults, ServerSpec, TestSpec};
use linerate_model::workload::{BounceBack, Isochronous, Pairing, Release, Shape, Start};
use linerate_model::{Direction, EndCondition, Transport};

use super::Stop;
use super::args::{Args, BURST_BYTES, DirectionArgs, FrameRate, OutputOptions, RateArg, Role};
use super::conflicts;
use crate::report::Layout;

/// Task of the program.
#[derive(Debug)]
pub enum Command {
    /// Run one test against a server.
    Client {
        /// The test.
        spec: Box<ClientSpec>,
        /// Reports.
        output: OutputOptions,
    },
    /// Wait for clients.
    Server {
        /// The server.
        spec: Box<ServerSpec>,
        /// Go to the background.
        daemon: bool,
        /// Reports.
        output: OutputOptions,
    },
}

/// Inputs of the resolution from outside the command line.
pub(crate) struct Surroundings<'a> {
    /// Time since 1970.
    pub now: Duration,
    /// A random word, for a server with a permit key.
    pub secret: &'a dyn Fn() -> String,
}

/// Default rate of a UDP stream.
const UDP_RATE_BPS: u64 = 1 << 20;
/// Default duration of a test.
const TIME_S: f64 = 10.0;
/// Time a server's permit key is valid.
const PERMIT_KEY_S: f64 = 20.0;

/// Decides what the program is to do. Remarks are added to those of the arguments.
///
/// # Errors
/// End of the program without a test.
pub(crate) fn resolve(args: &mut Args, surroundings: &Surroundings<'_>) -> Result<Command, Stop> {
    match args.role.clone() {
        None => Err(Stop::Usage),
        Some(Role::Client(host)) => client(args, host, surroundings),
        Some(Role::Server) => server(args, surroundings),
    }
}

fn client(args: &mut Args, host: String, surroundings: &Surroundings<'_>) -> Result<Command, Stop> {
    if args.daemon {
        return Err(Stop::Quiet(
            "Iperf client cannot be run as a daemon".to_owned(),
        ));
    }

    // Warnings of single options come before the checks of combinations, as in the original.
    let said = std::mem::take(&mut args.misplaced.on_client);
    said.into_iter().for_each(|text| args.say(text));
    imply_client(args);

    let block_len_bytes = args
        .block_len_bytes
        .unwrap_or_else(|| default_len(args, &host));
    conflicts::check_client(args, block_len_bytes, surroundings.now)?;
    spread_over_ports(args);
    warn_window(args);
    raise_interval(args);

    let end = client_end(args);
    let mut test = args.test.clone();
    test.end = end;
    let (direction, pairing) = directions(&args.directions);
    test.direction = direction;
    test.streams = args.parallel.unwrap_or(1).max(1);
    test.block_len_bytes = block_len_bytes;
    test.block_len_explicit = args.block_len_bytes.is_some();
    apply_output(&args.output, &mut test);

    let workload = &mut test.workload;
    workload.pairing = pairing;
    workload.shape = shape(args, block_len_bytes);
    workload.histogram = args.histogram;

    // A distribution of a client is one of its writes.
    workload.write_times |= args.histogram.is_some();
    workload.permit_key = args.permit_key.clone().flatten();
    workload.start = start(args);
    apply_rate(args, &mut test);

    Ok(Command::Client {
        spec: Box::new(ClientSpec::new(host, args.local.clone(), test)),
        output: args.output.clone(),
    })
}

fn server(args: &mut Args, surroundings: &Surroundings<'_>) -> Result<Command, Stop> {
    if args.is_bouncing() {
        return Err(Stop::error(
            "ERROR: setting of option --bounce-back is not supported on the server",
        ));
    }

    let said = std::mem::take(&mut args.misplaced.on_server);
    said.into_iter().for_each(|text| args.say(text));
    conflicts::check_server(args)?;
    warn_window(args);
    raise_interval(args);

    if args.is_multicast_receiver() {
        // The datagrams of all senders arrive on one socket.
        args.server.one_at_a_time = true;
    }

    // What a client would send from here has no meaning.
    args.local.file = None;
    let mut test = args.test.clone();
    test.end = EndCondition::Unlimited;
    test.block_len_bytes = args
        .block_len_bytes
        .unwrap_or_else(|| default_len(args, ""));
    test.block_len_explicit = args.block_len_bytes.is_some();
    apply_output(&args.output, &mut test);
    test.workload.histogram = args.histogram;
    // The client decides: its header says whether its clock is comparable.
    test.workload.trip_times = false;
    test.workload.permit_key = args
        .permit_key
        .clone()
        .map(|key| key.unwrap_or_else(|| (surroundings.secret)()));

    if let Some(RateArg::Bits { bps, .. }) = args.rate {
        test.pacing.rate_bps = Some(bps).filter(|rate| *rate > 0);
    }

    let has_key = test.workload.permit_key.is_some();
    let key_s = args.server.permit_key_s.unwrap_or(PERMIT_KEY_S);
    let defaults = Iperf2Defaults {
        test,
        lifetime: args.time_s.filter(|time_s| *time_s > 0.0).and_then(seconds),
        connections_max: args.parallel.filter(|count| *count > 0),
        one_at_a_time: args.server.one_at_a_time,
        dual_stack: args.local.bind.family == Some(AddressFamily::V6),
        reply_tos: args.server.reply_tos,
        permit_key_lifetime: if has_key { seconds(key_s) } else { None },
        handshake_timeout: args
            .server
            .handshake_s
            .filter(|time_s| *time_s > 0.0)
            .and_then(seconds),
        reports_delays: args.output.enhanced,
    };

    let mut spec = ServerSpec {
        local: args.local.clone(),
        ..ServerSpec::default()
    };
    spec.local.end.defaults = Some(Box::new(defaults));
    Ok(Command::Server {
        spec: Box::new(spec),
        daemon: args.daemon,
        output: args.output.clone(),
    })
}

/// Options that switch others on.
fn imply_client(args: &mut Args) {
    if args.is_bouncing() {
        args.output.enhanced = true;
        args.test.socket.no_delay = true;
        // The original reports a bounce-back test every second if nothing else is typed.
        args.local.interval = args.local.interval.or(Some(Duration::from_secs(1)));
    }

    let server_sends = args.directions.reverse || args.directions.full_duplex;
    let is_new_tcp = args.output.layout == Layout::V2_2 && args.test.transport == Transport::Tcp;
    args.output.enhanced |= args.test.workload.trip_times && (server_sends || is_new_tcp);

    if args.test.workload.without_header && args.test.workload.detect_peer {
        args.say(
            "WARNING: Options of '-C' '--compatibility' AND '-X' '--peerdetect' are mutually \
             exclusive, --peerdetect ignored",
        );
        args.test.workload.detect_peer = false;
    }

    if let Some(device) = args.local.bind.device.take() {
        args.say(format!(
            "WARNING: Client cannot set bind device {device} via -B consider using -c"
        ));
    }
}

fn default_len(args: &Args, host: &str) -> u32 {
    match args.test.transport {
        _ if args.is_bouncing() => args.bounce.request_bytes.unwrap_or(100),
        // An Ethernet frame without fragments; the longer header of IPv6 takes 20 bytes more.
        Transport::Udp if is_v6(args, host) => 1450,
        Transport::Udp => 1470,
        _ => 128 * 1024,
    }
}

fn is_v6(args: &Args, host: &str) -> bool {
    args.local.bind.family == Some(AddressFamily::V6) || host.parse::<Ipv6Addr>().is_ok()
}

/// One stream to each port of the range.
fn spread_over_ports(args: &mut Args) {
    let Some(last) = args.local.end.last_port else {
        return;
    };
    let ports = u32::from(last - args.local.port) + 1;
    if args.parallel.unwrap_or(1) != ports {
        args.say(format!(
            "WARNING: port-range and -P mismatch (adjusting -P to {ports})"
        ));
    }

    // One stream for each port, regardless of -P.
    args.parallel = Some(ports);
    args.test.workload.fan_out.destination_port = true;
}

fn warn_window(args: &mut Args) {
    if let Some(bytes) = args.test.socket.window_bytes.filter(|bytes| *bytes < 2048) {
        args.say(format!(
            "WARNING: TCP window size set to {bytes} bytes. A small window size\nwill give poor \
             performance. See the Iperf documentation."
        ));
    }

    // A window of 0 is that of the system.
    args.test.socket.window_bytes = args.test.socket.window_bytes.filter(|bytes| *bytes > 0);
}

/// The shortest interval depends on how the original is built; packages allow 0.1 ms.
fn raise_interval(args: &mut Args) {
    let (shortest, named) = match args.output.layout {
        Layout::V2_1 => (Duration::from_micros(100), "0.1000"),
        Layout::V2_2 => (Duration::from_millis(5), "5.000"),
    };
    if args
        .local
        .interval
        .is_some_and(|interval| interval < shortest)
    {
        args.say(format!(
            "WARNING: interval too small, increasing to {named} milliseconds."
        ));
        args.local.interval = Some(shortest);
    }
}

fn client_end(args: &mut Args) -> EndCondition {
    // Of -t and -n the later one has removed the other.
    if let Some(bytes) = args.amount_bytes {
        return EndCondition::Bytes(bytes);
    }

    let time = seconds(args.time_s.unwrap_or(TIME_S)).filter(|time| !time.is_zero());
    match time {
        Some(time) => EndCondition::Duration(time),
        None => {
            args.say(
                "WARNING: client will send traffic forever or until an external signal (e.g. \
                 SIGINT or SIGTERM) occurs to stop it",
            );
            EndCondition::Unlimited
        }
    }
}

fn directions(wanted: &DirectionArgs) -> (Direction, Pairing) {
    if wanted.reverse {
        (Direction::Reverse, Pairing::Separate)
    } else if wanted.full_duplex {
        (Direction::Bidirectional, Pairing::Shared)
    } else if wanted.dual {
        (Direction::Bidirectional, Pairing::ConnectBack)
    } else if wanted.trade_off {
        (Direction::Bidirectional, Pairing::ConnectBackAfterwards)
    } else {
        (Direction::Forward, Pairing::Separate)
    }
}

fn shape(args: &Args, block_len_bytes: u32) -> Shape {
    let shape = &args.shape;
    if let Some(count) = args.connect_only {
        // With intervals the time ends such a test, without them a number of connections.
        let count = count.or(args.local.interval.is_none().then_some(CONNECTIONS));
        return Shape::ConnectOnly { count };
    }

    if let Some(burst) = args.bounce.burst {
        let bounce = &args.bounce;
        return Shape::BounceBack(BounceBack {
            request_bytes: bounce.request_bytes.unwrap_or(block_len_bytes),
            // 0 is a reply of the size of the request.
            reply_bytes: bounce.reply_bytes.filter(|bytes| *bytes > 0),
            burst,
            period: seconds(bounce.period_s.unwrap_or(1.0)).unwrap_or_default(),
            hold: bounce.hold,
            quick_ack: !bounce.slow_ack,
            load: bounce.load,
        });
    }

    if let Some(isochronous) = &shape.isochronous {
        let frames_per_s = isochronous.frames_per_s;
        // Rates in datagrams per frame depend on the block length.
        let bps = |rate: FrameRate| match rate {
            FrameRate::Bits(bps) => bps,
            FrameRate::Datagrams(datagrams) => {
                datagrams * frames_per_s * f64::from(block_len_bytes) * 8.0
            }
        };
        return Shape::Isochronous(Isochronous {
            frames_per_s,
            mean_bps: bps(isochronous.mean),
            deviation_bps: bps(isochronous.deviation),
            gap: shape.gap_s.and_then(seconds).unwrap_or_default(),
        });
    }

    if shape.burst_bytes.is_some() || shape.burst_period_s.is_some() {
        return Shape::Bursts {
            size_bytes: shape.burst_bytes.unwrap_or(BURST_BYTES),
            period: shape
                .burst_period_s
                .and_then(seconds)
                .unwrap_or(Duration::from_secs(1)),
        };
    }

    match shape.near_congestion {
        Some(weight) => Shape::NearCongestion { weight },
        None => Shape::Continuous,
    }
}

fn start(args: &Args) -> Start {
    match (&args.start.at, args.start.after_s) {
        // Fractions are typed to the microsecond at most; conversions saturate.
        (Some((_, at_s)), _) => Start::At(Duration::from_micros((at_s * 1e6).round() as u64)),
        (None, Some(after_s)) => seconds(after_s)
            .filter(|after| !after.is_zero())
            .map_or(Start::Now, Start::After),
        (None, None) => Start::Now,
    }
}

/// An end speaks as the release whose lines it writes, and reads as its lines say.
fn apply_output(output: &OutputOptions, test: &mut TestSpec) {
    test.workload.release = match output.layout {
        Layout::V2_1 => Release::V2_1,
        Layout::V2_2 => Release::V2_2,
    };
    test.workload.reports_frames = output.per_frame;
    // Enhanced reports count the sizes of reads, so their size must be known.
    test.workload.exact_reads = output.enhanced || test.block_len_explicit;
}

fn apply_rate(args: &Args, test: &mut TestSpec) {
    match args.rate {
        Some(RateArg::Bits { bps, deviation_bps }) => {
            test.pacing.rate_bps = Some(bps).filter(|rate| *rate > 0);
            test.workload.rate_deviation_bps = deviation_bps;
        }
        Some(RateArg::Datagrams(rate)) => {
            test.workload.datagrams_per_s = Some(rate).filter(|rate| *rate > 0);
        }
        // Frames and bursts have a rate of their own.
        None if test.transport == Transport::Udp && test.workload.shape == Shape::Continuous => {
            test.pacing.rate_bps = Some(UDP_RATE_BPS);
        }
        None => {}
    }
}

/// A time that makes sense; others mean no time.
fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number).ok()
}

impl Args {
    /// A server that joins a group takes one flow at a time.
    fn is_multicast_receiver(&self) -> bool {
        let host = self.local.bind.host.as_deref().unwrap_or_default();
        self.is_udp() && conflicts::is_group(host)
    }
}

/// Connections of a test that opens nothing but them.
const CONNECTIONS: u32 = 10;

#[cfg(test)]
mod tests;
