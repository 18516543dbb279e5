//! Effects of the options that check or convert their value.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use linerate_model::command_line::numbers::{
    Base, atof, atoi, integer_any_base, whole_with_unit, with_unit,
};
use linerate_model::command_line::values::{self, split_at, split_device, text};
use linerate_model::policy::{AccessSource, Liveness};
use linerate_model::spec::{
    BitrateLimit, IoStrategy, Keepalive, ReceiveWait, SendPath, SequenceCheck,
};
use linerate_model::units::UnitFormat;
use linerate_model::{Direction, PortRange};

use super::args::{Args, ChosenRole, Outcome};
use super::error::ParameterError;
use crate::wire::ErrorCode;

/// One day: longest test (MAX_TIME of iperf.h) and longest time-out.
pub(crate) const DAY_S: i32 = 86_400;
/// MAX_OMIT_TIME of iperf.h.
pub(crate) const OMIT_S_MAX: i32 = 600;
/// MAX_MSS of iperf.h; 0 leaves the size to the kernel.
pub(crate) const MSS_MAX: i32 = 32_767;
/// Averaging window of `--server-bitrate-limit`.
const AVERAGING_WINDOW: Duration = Duration::from_secs(5);
/// Debug level of a bare `--debug`.
const DEBUG_MAX: u8 = 4;
/// Amounts beyond this do not fit the signed numbers of the protocol.
pub(crate) const AMOUNT_MAX: u64 = i64::MAX as u64;

// Roles

pub(crate) fn server(args: &mut Args) -> Outcome {
    if matches!(args.role, Some(ChosenRole::Client(_))) {
        return Err(ErrorCode::ServClient.into());
    }
    args.role = Some(ChosenRole::Server);
    Ok(())
}

pub(crate) fn client(args: &mut Args, value: &OsStr) -> Outcome {
    if args.role == Some(ChosenRole::Server) {
        return Err(ErrorCode::ServClient.into());
    }

    let (host, device) = split_device(&text(value));
    // A device behind the host wins over an earlier --bind-dev.
    args.role = Some(ChosenRole::Client(host));
    args.local.bind.device = device.or(args.local.bind.device.take());
    Ok(())
}

// Addresses and ports

pub(crate) fn bind(args: &mut Args, value: &OsStr) {
    let (host, device) = split_device(&text(value));
    args.local.bind.host = (!host.is_empty()).then_some(host);
    args.local.bind.device = device.or(args.local.bind.device.take());
}

/// The original reads the number in front and ignores what follows.
pub(crate) fn port(args: &mut Args, value: &OsStr) -> Outcome {
    args.local.port = port_number(value)?;
    args.ports = text(value).parse().ok().filter(PortRange::is_range);
    Ok(())
}

pub(crate) fn port_number(value: &OsStr) -> Result<u16, ParameterError> {
    let number = bounded(value, 1, i32::from(u16::MAX), ErrorCode::BadPort)?;
    u16::try_from(number).map_err(|_| ErrorCode::BadPort.into())
}

// The test

pub(crate) fn direction(args: &mut Args, wanted: Direction) -> Outcome {
    if args.test.direction != Direction::Forward && args.test.direction != wanted {
        return Err(ErrorCode::ReverseBidir.into());
    }
    args.test.direction = wanted;
    Ok(())
}

/// A number of bytes that may have a fraction.
pub(crate) fn size(value: &OsStr) -> Result<f64, ParameterError> {
    with_unit(value.as_bytes(), Base::Binary).map_err(|_| unit_error(value))
}

pub(crate) fn parallel(args: &mut Args, value: &OsStr) -> Outcome {
    let max = args.streams_max;
    let bound = i32::try_from(max).unwrap_or(i32::MAX);
    args.test.streams = bounded(value, 1, bound, ParameterError::Streams { max })?;
    Ok(())
}

/// The burst is checked before the rate, and the unit error quotes the rate alone.
pub(crate) fn bitrate(args: &mut Args, value: &OsStr) -> Outcome {
    let (rate, burst) = split_at(value.as_bytes(), b'/');
    if let Some(burst) = burst {
        let burst = u32::try_from(atoi(burst))
            .ok()
            .filter(|burst| (1..=1000).contains(burst));
        args.test.pacing.burst_blocks = Some(burst.ok_or(ErrorCode::Burst)?);
    }

    args.rate_bps = Some(whole(OsStr::from_bytes(rate), Base::Decimal, AMOUNT_MAX)?);
    Ok(())
}

pub(crate) fn no_fq_socket_pacing(args: &mut Args) {
    args.test.pacing.fq_rate_bps = None;
    args.warnings
        .push("Warning:  --no-fq-socket-pacing is deprecated");
}

/// A negative time waits for as long as the system does.
pub(crate) fn connect_timeout(value: &OsStr) -> Result<Option<Duration>, ParameterError> {
    let is_limited = size(value)? >= 0.0;
    is_limited.then(|| whole_u32(value).map(millis)).transpose()
}

// Socket options

pub(crate) fn window_bytes(value: &OsStr) -> Result<Option<u32>, ParameterError> {
    // MAX_TCP_BUFFER of iperf.h.
    const MAX: f64 = 512.0 * 1024.0 * 1024.0;

    let bytes = size(value)?;
    if !(0.0..=MAX).contains(&bytes) {
        return Err(ErrorCode::BufSize.into());
    }
    Ok(positive(bytes as u32))
}

pub(crate) fn tos(value: &OsStr) -> Result<u8, ErrorCode> {
    // The original reads this one with strtol and base 0, so 0x10 and 020 are 16.
    integer_any_base(value.as_bytes())
        .and_then(|(number, _)| u8::try_from(number).ok())
        .ok_or(ErrorCode::BadTos)
}

pub(crate) fn flow_label(value: &OsStr) -> Result<Option<u32>, ErrorCode> {
    // A flow label has 20 bits (RFC 6437).
    let label = integer_any_base(value.as_bytes())
        .and_then(|(number, _)| u32::try_from(number).ok())
        .filter(|label| (1..=0xF_FFFF).contains(label));
    label.map(Some).ok_or(ErrorCode::SetFlow)
}

pub(crate) fn sctp_streams(value: &OsStr) -> Result<Option<u16>, ParameterError> {
    let number = whole(value, Base::Binary, u64::from(u16::MAX))?;
    Ok(u16::try_from(number).ok().and_then(positive))
}

pub(crate) fn rcv_timeout(args: &mut Args, value: &OsStr) -> Outcome {
    // From MIN_NO_MSG_RCVD_TIMEOUT of iperf.h.
    args.local.rcv_timeout = millis(bounded(value, 100, DAY_S * 1000, ErrorCode::RcvTimeout)?);
    args.rcv_timeout_given = true;
    Ok(())
}

/// Only a check with all three parts is possible here: the kernel's own values are not known yet.
pub(crate) fn control_keepalive(value: Option<&OsStr>) -> Result<Keepalive, ErrorCode> {
    let mut parts = value
        .unwrap_or_default()
        .as_bytes()
        .splitn(3, |byte| *byte == b'/');
    let mut part = || {
        let number = atoi(parts.next().unwrap_or_default());
        u32::try_from(number).map_err(|_| ErrorCode::CntlKa)
    };
    let keepalive = Keepalive {
        idle_s: part()?,
        interval_s: part()?,
        count: part()?,
    };
    let retries_s = u64::from(keepalive.interval_s) * u64::from(keepalive.count);
    // The idle time must exceed all retries together, as in the original.
    if keepalive.idle_s > 0 && retries_s > 0 && u64::from(keepalive.idle_s) <= retries_s {
        return Err(ErrorCode::CntlKa);
    }

    Ok(keepalive)
}

/// The part behind the comma is for the server; only a client sends it.
pub(crate) fn affinity(args: &mut Args, value: &OsStr) -> Outcome {
    let cpu = |number: i64| {
        u32::try_from(number)
            .ok()
            // CPU_SETSIZE, inclusive as in the original.
            .filter(|cpu| *cpu <= 1024)
            .ok_or(ErrorCode::Affinity)
    };
    let (number, _) = integer_any_base(value.as_bytes()).ok_or(ErrorCode::Affinity)?;
    args.local.cpu = Some(cpu(number)?);

    if let (_, Some(servers)) = split_at(value.as_bytes(), b',') {
        args.server_cpu = Some(cpu(i64::from(atoi(servers)))?);
        // Only a client can ask the other end for a CPU.
        args.client_only_seen = true;
    }

    Ok(())
}

// Servers

pub(crate) fn bitrate_limit(value: &OsStr) -> Result<Option<BitrateLimit>, ParameterError> {
    let (rate, window) = split_at(value.as_bytes(), b'/');
    let window = match window {
        Some(window) => report_period(window).ok_or(ErrorCode::TotalInterval)?,
        None => AVERAGING_WINDOW,
    };
    let rate_bps = whole(OsStr::from_bytes(rate), Base::Decimal, AMOUNT_MAX)?;
    Ok(positive(rate_bps).map(|rate_bps| BitrateLimit { rate_bps, window }))
}

pub(crate) fn send_path(value: &OsStr) -> Result<SendPath, ParameterError> {
    let names = SendPath::NAMES.map(|(name, _)| name).join(", ");
    SendPath::from_name(&text(value)).ok_or_else(|| expected(value, &format!("one of {names}")))
}

/// `auto`, or blocks per send call and how a receiver waits, a pause in us or `spin`: `8/10`.
pub(crate) fn io_strategy(value: &OsStr) -> Result<Option<IoStrategy>, ParameterError> {
    if value == "auto" {
        return Ok(None);
    }

    let blocks = IoStrategy::BLOCKS_MAX;
    let pause = IoStrategy::PAUSE_MAX_US;
    let form = "auto, BLOCKS/PAUSE_US or BLOCKS/spin";
    let strategy = fixed_io_strategy(&text(value));
    strategy.map(Some).ok_or_else(|| {
        expected(
            value,
            &format!("{form}, with 1 to {blocks} blocks and 0 to {pause} us"),
        )
    })
}

fn fixed_io_strategy(value: &str) -> Option<IoStrategy> {
    let (blocks, wait) = value.split_once('/')?;
    let blocks_per_call = blocks
        .parse()
        .ok()
        .filter(|blocks| (1..=IoStrategy::BLOCKS_MAX).contains(blocks))?;

    let receive_wait = match wait {
        "spin" => ReceiveWait::Spin,
        us => match us.parse().ok()? {
            0 => ReceiveWait::Event,
            us => Some(us)
                .filter(|us| *us <= IoStrategy::PAUSE_MAX_US)
                .map(ReceiveWait::Pause)?,
        },
    };
    Some(IoStrategy {
        blocks_per_call,
        receive_wait,
    })
}

pub(crate) fn udp_check(value: &OsStr) -> Result<SequenceCheck, ParameterError> {
    match value.as_bytes() {
        b"all" => Ok(SequenceCheck::EveryDatagram),
        b"burst" => Ok(SequenceCheck::FirstOfBurst),
        _ => Err(expected(value, "all or burst")),
    }
}

pub(crate) fn doctor(args: &mut Args) -> Outcome {
    (args.checks.diagnosis)()?;
    args.test.want_peer_facts = true;
    Ok(())
}

pub(crate) fn flame(args: &mut Args, value: &OsStr) -> Outcome {
    args.local.flame = Some(PathBuf::from(value));
    doctor(args)
}

pub(crate) fn expect(args: &mut Args, value: &OsStr) -> Outcome {
    let limits = text(value);
    (args.checks.expectations)(&limits)?;
    args.process.expect = Some(limits);
    Ok(())
}

pub(crate) fn record(args: &mut Args, value: Option<&OsStr>) -> Outcome {
    let labels = text(value.unwrap_or_default());
    (args.checks.labels)(&labels)?;
    args.process.record = Some(labels);
    Ok(())
}

pub(crate) fn liveness(args: &mut Args, value: &OsStr) -> Outcome {
    args.server.policy.liveness = Liveness::always(values::seconds(&text(value))?);
    args.server.liveness_given = true;
    Ok(())
}

pub(crate) fn access(value: &OsStr, into: &mut Vec<AccessSource>) -> Outcome {
    into.push(values::access(&text(value))?);
    Ok(())
}

pub(crate) fn limit(args: &mut Args, value: &OsStr) -> Outcome {
    let limit = values::limit(&text(value))?;
    limit.apply(&mut args.server.policy.limits);
    Ok(())
}

pub(crate) fn metrics(value: &OsStr) -> Result<SocketAddr, ParameterError> {
    let address = text(value).parse();
    address.map_err(|_| expected(value, "ADDRESS:PORT"))
}

/// The value of an option that the original does not have.
fn expected(value: &OsStr, form: &str) -> ParameterError {
    ParameterError::Text(format!("{:?}: expected {form}", text(value)))
}

// Reports

pub(crate) fn format(args: &mut Args, value: &OsStr) -> Outcome {
    let letter = value.as_bytes().first().map(|byte| char::from(*byte));
    args.format_given = true;
    // Only the first letter counts, as in the original.
    args.output.format = letter
        .filter(|letter| "kmgtKMGT".contains(*letter))
        .and_then(UnitFormat::from_letter)
        .ok_or(ErrorCode::BadFormat)?;
    Ok(())
}

pub(crate) fn interval(value: &OsStr) -> Result<Option<Duration>, ParameterError> {
    let period = report_period(value.as_bytes()).ok_or(ErrorCode::Interval)?;
    Ok((!period.is_zero()).then_some(period))
}

pub(crate) fn json_stream(args: &mut Args) {
    // A stream is a form of JSON output: it silences the text.
    args.output.json = true;
    args.output.json_stream = true;
}

pub(crate) fn timestamps(args: &mut Args, value: Option<&OsStr>) {
    // TIMESTAMP_FORMAT of iperf.h, with its blank.
    args.output.timestamps = Some(value.map_or_else(|| "%c ".to_owned(), text));
}

pub(crate) fn title(args: &mut Args, value: &OsStr) {
    // A prefix of lines here, a member of the report on both ends.
    args.output.title = Some(text(value));
    args.test.title = Some(text(value));
}

pub(crate) fn debug(args: &mut Args, value: Option<&OsStr>) {
    let level = value.map_or(i32::from(DEBUG_MAX), |value| atoi(value.as_bytes()));
    // A level out of range means everything, not an error.
    args.output.debug = u8::try_from(level).map_or(DEBUG_MAX, |level| level.min(DEBUG_MAX));
}

// Values

/// A whole number by the rules of `atoi`, if it is within bounds. `min` is never negative.
pub(crate) fn bounded(
    value: &OsStr,
    min: i32,
    max: i32,
    error: impl Into<ParameterError>,
) -> Result<u32, ParameterError> {
    let number = atoi(value.as_bytes());
    match u32::try_from(number) {
        Ok(number_u32) if (min..=max).contains(&number) => Ok(number_u32),
        _ => Err(error.into()),
    }
}

pub(crate) fn whole(value: &OsStr, base: Base, max: u64) -> Result<u64, ParameterError> {
    whole_with_unit(value.as_bytes(), base, max).map_err(|_| unit_error(value))
}

pub(crate) fn whole_u32(value: &OsStr) -> Result<u32, ParameterError> {
    let number = whole(value, Base::Binary, u64::from(u32::MAX))?;
    u32::try_from(number).map_err(|_| unit_error(value))
}

/// 0 is no limit, or leaves the value to the system.
pub(crate) fn positive<T: Default + PartialOrd>(number: T) -> Option<T> {
    (number > T::default()).then_some(number)
}

/// 0, or 0.1 to 60 seconds.
fn report_period(value: &[u8]) -> Option<Duration> {
    let period_s = atof(value);
    // MIN_INTERVAL and MAX_INTERVAL of iperf.h; 0 is no reports.
    (period_s == 0.0 || (0.1..=60.0).contains(&period_s))
        .then(|| Duration::from_secs_f64(period_s.abs()))
}

fn unit_error(value: &OsStr) -> ParameterError {
    ParameterError::Text(ErrorCode::UnitVal.message(Some(&text(value))))
}

pub(crate) fn seconds(number: u32) -> Duration {
    Duration::from_secs(u64::from(number))
}

/// 0 is no limit.
pub(crate) fn seconds_or_none(number: u32) -> Option<Duration> {
    positive(number).map(seconds)
}

pub(crate) fn millis(number: u32) -> Duration {
    Duration::from_millis(u64::from(number))
}
