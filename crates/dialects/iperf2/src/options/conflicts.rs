//! Options that contradict each other or a limit. Every complaint is shown, and any of them ends
//! the program.

use std::net::IpAddr;
use std::time::Duration;

use linerate_model::Transport;

use super::Stop;
use super::args::{Args, BURST_BYTES, IsochronousArg, RateArg, Role};
use super::resolve::Command;

impl Args {
    pub(super) fn is_udp(&self) -> bool {
        self.test.transport == Transport::Udp
    }

    pub(super) fn is_bouncing(&self) -> bool {
        self.bounce.burst.is_some()
    }

    fn is_isochronous(&self) -> bool {
        self.shape.isochronous.is_some()
    }

    fn is_near_congestion(&self) -> bool {
        self.shape.near_congestion.is_some()
    }

    fn has_bursts(&self) -> bool {
        self.shape.burst_bytes.is_some() || self.shape.burst_period_s.is_some()
    }

    fn has_rate(&self) -> bool {
        self.rate.is_some() && !self.is_bouncing()
    }

    fn is_for_group(&self) -> bool {
        matches!(&self.role, Some(Role::Client(host)) if is_group(host))
    }

    /// Number of the options by which the server sends.
    fn reverse_options(&self) -> usize {
        let directions = &self.directions;
        let wanted = [
            directions.reverse,
            directions.full_duplex,
            directions.dual,
            directions.trade_off,
        ];
        wanted.into_iter().filter(|wanted| *wanted).count()
    }

    fn needs_header(&self) -> bool {
        let is_shaped = self.is_bouncing() || self.is_isochronous() || self.has_bursts();
        self.reverse_options() > 0
            || is_shaped
            || self.test.workload.trip_times
            || self.output.enhanced
    }
}

/// Contradictions between options.
type Conflict = (fn(&Args) -> bool, &'static str);

/// Contradicting options of a client, in the order of their messages.
const CONFLICTS: &[Conflict] = &[
    (
        |a| a.test.workload.without_header && a.needs_header(),
        "compatibility mode not supported with the requested with options",
    ),
    (
        |a| a.reverse_options() > 1,
        "options of --full-duplex, --reverse, -d and -r are mutually exclusive",
    ),
    (
        |a| a.is_bouncing() && a.reverse_options() > 0,
        "option of --bounceback goes both ways already, without -R, -d, -r or --full-duplex",
    ),
    (
        |a| a.is_udp() && a.test.workload.detect_peer,
        "option of -X or --peer-detect not supported with -u UDP",
    ),
    (
        |a| a.is_udp() && a.connect_only.is_some(),
        "option of --connect-only not supported with -u UDP",
    ),
    (
        |a| a.is_udp() && a.is_bouncing(),
        "option of --bounceback not supported with -u UDP",
    ),
    (
        |a| a.is_udp() && a.is_near_congestion(),
        "option of --near-congestion not supported with -u UDP",
    ),
    (
        |a| a.is_udp() && a.permit_key.is_some(),
        "Option of --permit-key not supported with UDP",
    ),
    (
        |a| !a.is_udp() && a.shape.gap_s.is_some(),
        "option --ipg requires -u UDP",
    ),
    (
        |a| !a.is_udp() && matches!(a.rate, Some(RateArg::Datagrams(_))),
        "units of pps not supported with TCP",
    ),
    (
        |a| {
            !a.is_udp()
                && a.shape
                    .isochronous
                    .as_ref()
                    .is_some_and(IsochronousArg::is_in_datagrams)
        },
        "Invalid --isochronous units of 'p' with TCP must be bytes",
    ),
    (
        |a| a.is_isochronous() && a.has_rate(),
        "options of --b and --isochronous cannot be applied together",
    ),
    (
        |a| a.is_near_congestion() && a.has_rate(),
        "option of --near-congestion and -b rate limited are mutually exclusive",
    ),
    (
        |a| a.has_bursts() && a.is_isochronous(),
        "options of --burst-period and --isochronous cannot be applied together",
    ),
    (
        |a| a.has_bursts() && a.is_near_congestion(),
        "options of --burst-period and --near-congestion cannot be applied together",
    ),
    (
        |a| a.start.at.is_some() && a.start.after_s.is_some(),
        "options of --txstart-time and --txdelay-time are mutually exclusive",
    ),
    (
        |a| a.is_for_group() && a.parallel.unwrap_or(1) > 1,
        "client option of -P greater than 1 not supported with multicast address",
    ),
    (
        |a| a.permit_key == Some(None),
        "option of --permit-key requires a value on the client",
    ),
];

/// Checks the options of a client.
///
/// # Errors
/// All complaints.
pub(crate) fn check_client(args: &Args, block_len_bytes: u32, now: Duration) -> Result<(), Stop> {
    let conflicts = CONFLICTS.iter().filter(|(applies, _)| applies(args));
    let mut wrong: Vec<String> = conflicts
        .map(|(_, text)| format!("ERROR: {text}"))
        .collect();
    // All complaints are printed, in this order.
    wrong.extend(permit_key_len(args));
    wrong.extend(lengths(args, block_len_bytes));
    wrong.extend(start_time(args, now));
    wrong.extend(bounce_sizes(args, block_len_bytes));
    wrong.extend(reverse_amount(args));

    complain(wrong)
}

/// Checks the options of a server.
///
/// # Errors
/// All complaints.
pub(crate) fn check_server(args: &Args) -> Result<(), Stop> {
    let mut wrong: Vec<String> = Vec::new();
    if args.is_udp() && args.permit_key.is_some() {
        wrong.push("ERROR: Option of --permit-key not supported with UDP".to_owned());
    }

    wrong.extend(permit_key_len(args));
    complain(wrong)
}

fn complain(wrong: Vec<String>) -> Result<(), Stop> {
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(Stop::Refused(wrong))
    }
}

/// A group of IPv4 (224.0.0.0/4) or IPv6 (ff00::/8).
pub(crate) fn is_group(host: &str) -> bool {
    host.parse::<IpAddr>()
        .is_ok_and(|address| address.is_multicast())
}

fn permit_key_len(args: &Args) -> Option<String> {
    match args.permit_key.as_ref()?.as_ref()?.len() {
        0..4 => Some("ERROR: value for --permit-key must have at least 4 characters".to_owned()),
        4..=128 => None,
        _ => Some("ERROR: value for --permit-key can't be longer than 128 characters".to_owned()),
    }
}

/// Block lengths against rates, bursts, heads and datagrams.
fn lengths(args: &Args, block_len_bytes: u32) -> Vec<String> {
    let mut wrong = Vec::new();
    let is_udp = args.is_udp();
    let is_bouncing = args.is_bouncing();
    if let (Some(RateArg::Bits { bps, .. }), false, false) = (args.rate, is_udp, is_bouncing)
        // One write would take longer than a second, so the rate could not be held.
        && bps / 8 < u64::from(block_len_bytes)
        && !args.is_isochronous()
        && !args.is_near_congestion()
    {
        wrong.push(format!(
            "ERROR: option -b and -l of {block_len_bytes} are incompatible, consider setting -l to \
             {} or lower",
            bps / 8
        ));
    }

    // A period alone implies bursts of the default size.
    let burst_bytes = match (args.shape.burst_bytes, args.shape.burst_period_s) {
        (None, None) => None,
        (None, Some(_)) => Some(BURST_BYTES),
        (size, _) => size,
    };
    if let Some(burst_bytes) = burst_bytes.filter(|burst_bytes| *burst_bytes < block_len_bytes) {
        wrong.push(format!(
            "ERROR: option of --burst-size {burst_bytes} must be equal or larger to write length \
             (-l) {block_len_bytes}"
        ));
    }

    // Ours follows 2.2.1: 2.1.8 accepts the combination and measures nothing.
    let head = if is_udp {
        TRIP_TIMES_DATAGRAM_BYTES
    } else {
        BURST_HEAD_BYTES
    };
    if args.test.workload.trip_times && !is_bouncing && block_len_bytes < head {
        wrong.push(format!(
            "ERROR: payload (-l) size of {block_len_bytes} too small for --trip-times, must be \
             {head} or greater"
        ));
    }

    if is_udp && !(DATAGRAM_BYTES_MIN..=DATAGRAM_BYTES_MAX).contains(&block_len_bytes) {
        wrong.push(format!(
            "ERROR: datagrams (-l) of {block_len_bytes} bytes are not possible, use \
             {DATAGRAM_BYTES_MIN} to {DATAGRAM_BYTES_MAX}"
        ));
    }

    if block_len_bytes > BLOCK_BYTES_MAX {
        wrong.push(format!(
            "ERROR: blocks (-l) of {block_len_bytes} bytes are not possible, use at most \
             {BLOCK_BYTES_MAX}"
        ));
    }

    wrong
}

/// Smaller requests are never answered.
fn bounce_sizes(args: &Args, block_len_bytes: u32) -> Vec<String> {
    if !args.is_bouncing() {
        return Vec::new();
    }

    let request = args.bounce.request_bytes.unwrap_or(block_len_bytes);
    let rows = [
        ("request", Some(request)),
        ("reply", args.bounce.reply_bytes.filter(|bytes| *bytes > 0)),
    ];

    let too_small = |(name, bytes): (&str, Option<u32>)| {
        let bytes = bytes.filter(|bytes| *bytes < BOUNCE_BYTES_MIN)?;
        Some(format!(
            "ERROR: a bounceback {name} of {bytes} bytes is too small, must be {BOUNCE_BYTES_MIN} \
             or greater"
        ))
    };
    rows.into_iter().filter_map(too_small).collect()
}

/// The field with the amount a server is to send has 31 bits.
fn reverse_amount(args: &Args) -> Option<String> {
    let bytes = args
        .amount_bytes
        .filter(|bytes| args.reverse_options() > 0 && *bytes > AMOUNT_BYTES_MAX)?;
    Some(format!(
        "ERROR: -n of {bytes} bytes is more than a server can be asked for, use at most \
         {AMOUNT_BYTES_MAX}"
    ))
}

fn start_time(args: &Args, now: Duration) -> Option<String> {
    let (typed, at_s) = args.start.at.as_ref()?;
    (at_s - now.as_secs_f64() > START_AHEAD_MAX_S).then(|| {
        format!(
            "ERROR: --txstart-time ({typed}) exceeds max scheduled delay of {START_AHEAD_MAX_S} \
             secs"
        )
    })
}

/// Most bytes a header can name.
const AMOUNT_BYTES_MAX: u64 = 0x7fff_ffff;
/// Head of every write with trip times over TCP.
const BURST_HEAD_BYTES: u32 = 92;
/// Number, time and the mark of a datagram that carries its sender's clock.
const TRIP_TIMES_DATAGRAM_BYTES: u32 = 20;
/// Number and time of a datagram.
const DATAGRAM_BYTES_MIN: u32 = 16;
/// Largest UDP payload over IPv4.
const DATAGRAM_BYTES_MAX: u32 = 65_507;
/// Head of a bounce-back message, as far as 2.1.8 reads it.
const BOUNCE_BYTES_MIN: u32 = 64;
/// Largest block; memory is reserved for it.
const BLOCK_BYTES_MAX: u32 = 64 << 20;
/// Furthest start.
const START_AHEAD_MAX_S: f64 = 3600.0;

/// Refuses a test or a server with such an option.
///
/// # Errors
/// The first of them.
pub(crate) fn check_supported(command: Command) -> Result<Command, Stop> {
    let (local, test, output) = match &command {
        Command::Client { spec, output } => (&spec.local, Some(&spec.test), output),
        Command::Server { spec, output, .. } => {
            let defaults = spec.local.end.defaults.as_ref();
            (&spec.local, defaults.map(|defaults| &defaults.test), output)
        }
    };
    let is_server = matches!(command, Command::Server { .. });

    let rows = [
        (
            test.is_some_and(|test| test.workload.rate_deviation_bps.is_some()),
            "a rate that varies around its target (-b mean,deviation) is not supported",
        ),
        (
            local.end.realtime,
            "the real-time scheduler (-z) is not supported",
        ),
        (
            local.end.send_delay.is_some(),
            "--tcp-tx-delay is not supported",
        ),
        (
            is_server && output.sum_by_destination,
            "sums by destination (--sum-dstip) are not supported",
        ),
        (
            is_server && test.is_some_and(|test| test.pacing.rate_bps.is_some()),
            "a limit on what a server reads (-b) is not supported",
        ),
    ];
    match rows.into_iter().find(|(is_wanted, _)| *is_wanted) {
        Some((_, text)) => Err(Stop::error(format!("ERROR: {text}"))),
        None => Ok(command),
    }
}
