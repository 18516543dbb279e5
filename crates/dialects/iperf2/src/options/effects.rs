//! Effects of the options that check or convert their value. The original checks little: what is no
//! number counts as 0, and what follows a number is ignored.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use linerate_model::command_line::numbers::{atof, atoi, scan_float};
use linerate_model::command_line::values::{split_at, split_device, text};
use linerate_model::spec::ConnectRetry;
use linerate_model::workload::{HistogramSpec, WorkingLoad};

use super::args::{Args, FrameRate, IsochronousArg, Outcome, RateArg, Role, named_layout};
use super::tos::{tos_of, tos_of_dscp};
use super::{Message, Stop};
use crate::report::Layout;

// Roles

pub(crate) fn server(args: &mut Args) {
    if args.is_client() {
        args.say("WARNING: option -s is not valid for client mode");
    } else {
        args.role = Some(Role::Server);
    }
}

/// Ignored without a message behind `-s`.
pub(crate) fn client(args: &mut Args, value: &OsStr) {
    if !args.is_server() {
        let (host, device) = split_device(&text(value));
        args.role = Some(Role::Client(host));
        // The device is that of the route to the server, not of the local address.
        args.local.end.peer_device = device;
    }
}

// Addresses and ports

pub(crate) fn port(args: &mut Args, value: &OsStr) -> Outcome {
    let (first, last) = split_at(value.as_bytes(), b'-');
    args.local.port = port_number("-p", first)?;
    args.local.end.last_port = None;

    if let Some(last) = last {
        let last = port_number("-p", last)?;
        if last < args.local.port {
            return Err(Stop::error(format!(
                "ERROR: -p port range of {} is empty",
                text(value)
            )));
        }

        args.local.end.last_port = Some(last);
    }

    Ok(())
}

pub(crate) fn listen_port(args: &mut Args, value: &OsStr) -> Outcome {
    if args.is_client() {
        args.test.workload.back_port = Some(port_number("-L", value.as_bytes())?);
    } else {
        args.say("WARNING: option -L is not valid for server mode");
    }
    Ok(())
}

/// The original cuts other numbers to 16 bits and goes somewhere else.
fn port_number(option: &str, typed: &[u8]) -> Result<u16, Stop> {
    let number = u16::try_from(atoi(typed)).ok().filter(|port| *port > 0);
    number.ok_or_else(|| {
        let typed = String::from_utf8_lossy(typed);
        Stop::error(format!(
            "ERROR: {option} port of '{typed}' must be between 1 and 65535"
        ))
    })
}

/// `host`, `host:port`, `[v6]:port`, each with `%device`. Many colons without brackets are an IPv6
/// address.
pub(crate) fn bind(args: &mut Args, value: &OsStr) -> Outcome {
    let (address, device) = split_device(&text(value));
    let bind = &mut args.local.bind;
    bind.device = device;

    let (host, port) = match address
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        Some((host, port)) => (host.to_owned(), port.strip_prefix(':')),
        // One colon is a port; an IPv6 address has at least two.
        None if address.matches(':').count() == 1 => {
            let (host, port) = address.split_once(':').unwrap_or_default();
            (host.to_owned(), Some(port))
        }
        None => (address.clone(), None),
    };
    bind.client_port = port
        .map(|port| port_number("-B", port.as_bytes()))
        .transpose()?;
    bind.host = (!host.is_empty()).then_some(host);

    Ok(())
}

pub(crate) fn multicast_source(args: &mut Args, value: &OsStr) {
    if args.is_client() {
        args.say("WARNING: option -H is not valid for client mode");
    } else {
        args.local.end.multicast_source = Some(text(value));
    }
}

pub(crate) fn local_only(args: &mut Args, value: Option<&OsStr>) {
    args.test.workload.without_routing = value.is_none_or(|value| atoi(value.as_bytes()) != 0);
}

pub(crate) fn ttl(args: &mut Args, value: &OsStr) {
    // Out of range: the default of multicast, which stays on the link.
    args.test.workload.multicast_ttl = Some(u8::try_from(atoi(value.as_bytes())).unwrap_or(1));
}

// The end of the test

pub(crate) fn time(args: &mut Args, value: &OsStr) -> Outcome {
    let time_s = whole_float(value).ok_or_else(|| {
        Stop::error(format!(
            "ERROR: -t value of '{}' not recognized",
            text(value)
        ))
    })?;
    // Of a time and an amount the later one counts.
    args.time_s = Some(time_s);
    args.amount_bytes = None;
    Ok(())
}

pub(crate) fn amount(args: &mut Args, value: &OsStr) -> Outcome {
    let bytes = bytes(value);
    if bytes == 0 {
        return Err(Stop::error(format!(
            "Invalid value for -n amount of '{}'",
            text(value)
        )));
    }

    args.time_s = None;
    args.amount_bytes = Some(bytes);
    Ok(())
}

pub(crate) fn interval(args: &mut Args, value: &OsStr) -> Outcome {
    if matches!(value.as_bytes(), [b'f' | b'F', ..]) {
        // A report per frame needs the columns of frames.
        args.output.per_frame = true;
        args.output.enhanced = true;
        return Ok(());
    }

    let interval_s = whole_float(value);
    let interval_s = interval_s.ok_or_else(|| {
        Stop::error(format!(
            "Invalid value of '{}' for -i interval",
            text(value)
        ))
    })?;
    args.local.interval = Duration::try_from_secs_f64(interval_s)
        .ok()
        .filter(|interval| !interval.is_zero());

    Ok(())
}

// Rates and lengths

/// `10m`, `10m,1m` or `100pps`.
pub(crate) fn bandwidth(args: &mut Args, value: &OsStr) {
    let typed = value.as_bytes();
    args.rate = Some(
        match typed
            .strip_suffix(b"pps")
            .or_else(|| typed.strip_suffix(b"p"))
        {
            // Negative numbers are no rate; casts of floats saturate.
            Some(number) => RateArg::Datagrams(atof(number).max(0.0) as u64),
            None => {
                let (bps, deviation) = split_at(typed, b',');
                let deviation = deviation.map(scaled).filter(|deviation| *deviation > 0.0);
                RateArg::Bits {
                    bps: scaled(bps) as u64,
                    deviation_bps: deviation.map(|deviation| deviation as u64),
                }
            }
        },
    );
}

pub(crate) fn unsent_limit(args: &mut Args, value: &OsStr) {
    // The limit shows in enhanced columns only.
    args.test.workload.unsent_limit_bytes = positive_bytes(value);
    args.output.enhanced = true;
}

pub(crate) fn fq_rate(args: &mut Args, value: &OsStr) {
    args.test.pacing.fq_rate_bps =
        Some(bits_or_bytes(value.as_bytes()) as u64).filter(|rate| *rate > 0);
}

pub(crate) fn parallel(args: &mut Args, value: &OsStr) {
    args.parallel = Some(
        u32::try_from(atoi(value.as_bytes()))
            .unwrap_or(0)
            // Each stream is a thread or a socket, so the number is bounded.
            .min(STREAMS_MAX),
    );
}

pub(crate) fn tos(args: &mut Args, value: &OsStr) {
    if let Some(tos) = class(args, "tos", tos_of, value) {
        args.test.socket.tos = tos;
    }
}

pub(crate) fn dscp(args: &mut Args, value: &OsStr) {
    if let Some(tos) = class(args, "dscp", tos_of_dscp, value) {
        args.test.socket.tos = tos;
    }
}

pub(crate) fn tos_override(args: &mut Args, value: &OsStr) {
    args.server.reply_tos = class(args, "tos-override", tos_of, value).or(args.server.reply_tos);
}

/// As in the original, a wrong class does not stop the test.
fn class(
    args: &mut Args,
    option: &str,
    read: fn(&[u8]) -> Option<u8>,
    value: &OsStr,
) -> Option<u8> {
    let class = read(value.as_bytes());
    if class.is_none() {
        args.say(format!("Invalid --{option} value of {}", text(value)));
    }
    class
}

pub(crate) fn send_delay(args: &mut Args, value: &OsStr) {
    args.local.end.send_delay = Duration::try_from_secs_f64(millis_of(value))
        .ok()
        .filter(|d| !d.is_zero());
}

// Directions

/// Counts only behind `-c`, and not behind `-C`.
pub(crate) fn connects_back(args: &mut Args, option: &str) -> bool {
    if !args.is_client() {
        args.say(format!(
            "WARNING: option {option} is not valid for server mode"
        ));
        return false;
    }

    if args.test.workload.without_header {
        args.say(format!(
            "WARNING: option {option} is not valid in compatibility mode"
        ));
    }

    true
}

// Shapes

/// `60:20m,1m`; what is missing keeps its default.
pub(crate) fn isochronous(args: &mut Args, value: Option<&OsStr>) -> Outcome {
    let (frames, rates) = split_at(value.unwrap_or_default().as_bytes(), b':');
    let (mean, deviation) = split_at(rates.unwrap_or_default(), b',');
    let rate = |typed: &[u8], default_bps| match typed {
        [] => FrameRate::Bits(default_bps),
        typed => frame_rate(typed),
    };
    let mean = rate(mean, 20e6);
    let deviation = rate(deviation.unwrap_or_default(), 0.0);

    let frames_per_s = if frames.is_empty() {
        60.0
    } else {
        atof(frames)
    };
    // The period of the frames is its reciprocal.
    if !(frames_per_s > 0.0 && frames_per_s.is_finite()) {
        return Err(Stop::Quiet(
            "Invalid value for frames per second in the isochronous settings".to_owned(),
        ));
    }

    args.shape.isochronous = Some(IsochronousArg {
        frames_per_s,
        mean,
        deviation,
    });
    args.output.enhanced = true;
    Ok(())
}

/// Bits per second, or datagrams per frame: `20m`, `10p`.
fn frame_rate(typed: &[u8]) -> FrameRate {
    match scan_float(typed) {
        // The suffix p counts datagrams; any other is a unit of bits.
        Some((datagrams, [b'p' | b'P', ..])) if datagrams.is_finite() => {
            FrameRate::Datagrams(datagrams.max(0.0))
        }
        _ => FrameRate::Bits(bits_or_bytes(typed)),
    }
}

pub(crate) fn burst_size(args: &mut Args, value: &OsStr) {
    args.shape.burst_bytes = Some(bytes_u32(value));
    args.output.enhanced = true;
}

pub(crate) fn burst_period(args: &mut Args, value: &OsStr) {
    args.shape.burst_period_s = Some(seconds_of(value)).filter(|period_s| *period_s > 0.0);
    // Only a period that counts changes the columns.
    args.output.enhanced |= args.shape.burst_period_s.is_some();
}

pub(crate) fn near_congestion(args: &mut Args, value: Option<&OsStr>) {
    let weight = value.map_or(0.5, |value| atof(value.as_bytes()));
    args.shape.near_congestion = Some(if weight.is_finite() {
        weight.max(0.0)
    } else {
        0.5
    });
}

pub(crate) fn connect_retries(args: &mut Args, value: &OsStr) {
    let retry = retry(args);
    retry.attempts = u32::try_from(atoi(value.as_bytes())).ok();
    retry.pause = Duration::from_millis(200);
}

pub(crate) fn connect_retry_time(args: &mut Args, value: &OsStr) {
    retry(args).within = Duration::try_from_secs_f64(seconds_of(value)).ok();
}

pub(crate) fn connect_retry_pause(args: &mut Args, value: &OsStr) {
    retry(args).pause = Duration::try_from_secs_f64(seconds_of(value)).unwrap_or_default();
}

fn retry(args: &mut Args) -> &mut ConnectRetry {
    args.local
        .end
        .connect_retry
        .get_or_insert(ConnectRetry::new(Duration::from_secs(1)))
}

// Requests and replies

pub(crate) fn bounce_hold(args: &mut Args, value: &OsStr) {
    args.bounce.hold = Duration::try_from_secs_f64(millis_of(value)).unwrap_or_default();
}

/// `up`, `down` or `bidir`, each with a number of streams.
pub(crate) fn working_load(args: &mut Args, value: Option<&OsStr>) -> Outcome {
    let (direction, streams) = split_at(value.unwrap_or_default().as_bytes(), b',');
    let (up, down) = match direction {
        b"up" => (true, false),
        b"down" => (false, true),
        b"" | b"bidir" => (true, true),
        other => {
            let other = String::from_utf8_lossy(other);
            return Err(Stop::error(format!(
                "ERROR: unknown working load of '{other}', use up, down or bidir"
            )));
        }
    };

    let streams = streams.and_then(|number| u32::try_from(atoi(number)).ok());
    args.bounce.load = Some(WorkingLoad {
        up,
        down,
        streams: streams.unwrap_or(1).clamp(1, STREAMS_MAX),
    });

    Ok(())
}

// Measurements

/// `1m,1000` or `100u,10000,5,95`.
pub(crate) fn histogram(args: &mut Args, value: Option<&OsStr>) {
    let mut spec = HistogramSpec::new(
        100,
        if args.output.layout == Layout::V2_1 {
            10_000
        } else {
            100_000
        },
    );
    let typed = value.unwrap_or_default().as_bytes();
    let mut parts = typed
        .split(|byte| *byte == b',')
        .filter(|part| !part.is_empty());
    if let Some((number, unit)) = parts.next().and_then(scan_float) {
        // The default unit is the millisecond.
        let width_us = if unit.first() == Some(&b'u') {
            number
        } else {
            number * 1000.0
        };
        spec.bin_width_us = (width_us as u32).max(1);
    }

    let mut number = || parts.next().map(atof).filter(|number| number.is_finite());
    if let Some(bins) = number() {
        // Each stream allocates its bins.
        spec.bins = (bins as u32).clamp(1, BINS_MAX);
    }

    spec.lower_percent = number().unwrap_or(spec.lower_percent).clamp(0.0, 100.0);
    spec.upper_percent = number()
        .unwrap_or(spec.upper_percent)
        // The upper percentile is not below the lower one.
        .clamp(spec.lower_percent, 100.0);
    args.histogram = Some(spec);
    args.output.enhanced = true;
}

pub(crate) fn start_at(args: &mut Args, value: &OsStr) {
    args.start.at = Some((text(value), seconds_of(value)));
    args.output.enhanced = true;
}

// Files and reports

pub(crate) fn file(args: &mut Args, value: &OsStr) {
    if args.is_server() {
        args.say("WARNING: option -F is not valid for server mode");
    } else {
        args.local.file = Some(value.into());
    }
}

pub(crate) fn stdin(args: &mut Args) {
    if args.is_server() {
        args.say("WARNING: option -I is not valid for server mode");
    } else {
        args.local.end.from_stdin = true;
    }
}

/// An unknown letter means adaptive bits.
pub(crate) fn format(args: &mut Args, value: &OsStr) {
    let letter = value.as_bytes().first().map(|byte| char::from(*byte));
    args.output.format = letter.filter(|letter| "bkmgtpaBKMGTPA".contains(*letter));
}

pub(crate) fn style(args: &mut Args, value: &OsStr) {
    match value.as_bytes() {
        [b'c' | b'C', ..] => args.output.csv = true,
        _ => args.say(format!(
            "WARNING: unknown reporting style \"{}\", switching to default",
            text(value)
        )),
    }
}

pub(crate) fn exclude(args: &mut Args, value: &OsStr) {
    for letter in value.as_bytes() {
        let excluded = &mut args.output.excluded;
        match letter.to_ascii_uppercase() {
            b'C' => excluded.connection = true,
            b'D' => excluded.data = true,
            b'M' => excluded.multicast = true,
            b'S' => excluded.settings = true,
            b'V' => excluded.server = true,
            _ => args.say(format!(
                "WARNING: unknown reporting type \"{}\", ignored\n valid options are:\n\t exclude: \
                 C(connection) D(data) M(multicast) S(settings) V(server) report\n",
                char::from(*letter)
            )),
        }
    }
}

pub(crate) fn output(args: &mut Args, value: &OsStr) {
    let notice = format!(
        "Output from stdout and stderr will be redirected to file {}",
        text(value)
    );
    args.messages.push(Message::Output(notice));
    args.output.file = Some(value.into());
}

pub(crate) fn layout(_args: &mut Args, value: &OsStr) -> Outcome {
    match named_layout(value) {
        Some(_) => Ok(()),
        None => Err(Stop::error(format!(
            "ERROR: --lr-format must be 2.1 or 2.2, not '{}'",
            text(value)
        ))),
    }
}

pub(crate) fn expect(args: &mut Args, value: &OsStr) -> Outcome {
    let limits = text(value);
    (args.checks.expectations)(&limits)
        .map_err(|error| Stop::error(format!("ERROR: --lr-expect: {error}")))?;
    args.output.expect = Some(limits);
    Ok(())
}

pub(crate) fn record(args: &mut Args, value: Option<&OsStr>) -> Outcome {
    let labels = text(value.unwrap_or_default());
    (args.checks.labels)(&labels)
        .map_err(|error| Stop::error(format!("ERROR: --lr-record: {error}")))?;
    args.output.record = Some(labels);
    Ok(())
}

pub(crate) fn no_queue(args: &mut Args, _value: &OsStr) {
    args.say(
        "WARNING: --NUM_REPORT_STRUCTS has no meaning here: nothing is queued between measuring \
         and reporting",
    );
}

// Values

/// A number that is not negative; 0 if it is none.
pub(crate) fn seconds_of(value: &OsStr) -> f64 {
    let seconds = atof(value.as_bytes());
    if seconds.is_finite() {
        seconds.max(0.0)
    } else {
        0.0
    }
}

/// A number of bytes, cut to 32 bits.
pub(crate) fn bytes_u32(value: &OsStr) -> u32 {
    u32::try_from(bytes(value)).unwrap_or(u32::MAX)
}

pub(crate) fn positive_bytes(value: &OsStr) -> Option<u32> {
    Some(bytes_u32(value)).filter(|bytes| *bytes > 0)
}

/// A whole number, unless it is 0 or less.
pub(crate) fn positive(value: &OsStr) -> Option<u32> {
    u32::try_from(atoi(value.as_bytes()))
        .ok()
        .filter(|number| *number > 0)
}

/// Milliseconds in s.
pub(crate) fn millis_of(value: &OsStr) -> f64 {
    atof(value.as_bytes()) / 1000.0
}

fn bytes(value: &OsStr) -> u64 {
    scaled(value.as_bytes()) as u64
}

/// The whole text as a number; nothing at all counts as 0.
fn whole_float(value: &OsStr) -> Option<f64> {
    if value.is_empty() {
        return Some(0.0);
    }
    let (number, rest) = scan_float(value.as_bytes())?;
    (rest.is_empty() && number.is_finite()).then_some(number)
}

/// A number with a unit letter: powers of 1000 in lower case, of 1024 in upper case.
fn scaled(typed: &[u8]) -> f64 {
    with_letter(typed, [1024.0, 1024.0 * 1024.0, 1024.0 * 1024.0 * 1024.0])
}

/// The same where an upper-case letter means bytes, in bits and powers of 1000.
fn bits_or_bytes(typed: &[u8]) -> f64 {
    with_letter(typed, [8e3, 8e6, 8e9])
}

/// A number times 1000, 10^6 or 10^9 with the letter k, m or g, and times one of these with K, M or
/// G. Conversions of the result saturate.
fn with_letter(typed: &[u8], [kilo, mega, giga]: [f64; 3]) -> f64 {
    let Some((number, rest)) = scan_float(typed) else {
        return 0.0;
    };
    let factor = match rest.first() {
        Some(b'k') => 1e3,
        Some(b'm') => 1e6,
        Some(b'g') => 1e9,
        Some(b'K') => kilo,
        Some(b'M') => mega,
        Some(b'G') => giga,
        _ => 1.0,
    };
    let value = number * factor;
    if value.is_finite() {
        value.max(0.0)
    } else {
        0.0
    }
}

/// More streams than any machine runs; the number is allocated for.
const STREAMS_MAX: u32 = 16_384;
/// More bins than anybody reads.
const BINS_MAX: u32 = 1_000_000;
