//! The options of the iperf 2 dialect: one table for the parser, the environment and the help. It
//! holds those of 2.1.8 and of 2.2.1, whatever layout is chosen.

use std::ffi::OsStr;

use linerate_model::Transport;
use linerate_model::command_line::getopt::Grammar;
use linerate_model::command_line::table::{self, Effect, OptionGroup, OptionHelp};
use linerate_model::command_line::values::text;
use linerate_model::spec::AddressFamily;

use super::args::{Args, Outcome};
use super::effects as fx;
use super::message::Stop;

/// Section of an option in the help.
#[derive(PartialEq, Eq)]
pub(crate) enum Section {
    /// Client and server.
    Both,
    /// Server.
    Server,
    /// Client.
    Client,
    /// Reports.
    Reports,
    /// Additions to the original.
    Added,
    /// Refused options.
    Refused,
    /// Options without effect; not listed.
    Absent,
}

/// One option.
pub(crate) type OptionRow = table::OptionRow<Args, Stop, Section, Extra>;

/// Properties of an option that iperf 2 alone has.
pub(crate) struct Extra {
    /// Variable of the environment that does the same.
    pub(crate) variable: Option<&'static str>,
    /// The option is refused; its help is the reason.
    is_refused: bool,
    /// Warning of a server that gets it.
    server_says: Option<&'static str>,
    /// Warning of a client that gets it.
    client_says: Option<&'static str>,
}

/// Name of the option that chooses the release whose layout is used.
pub(crate) const LR_FORMAT: &str = "lr-format";

/// The sections of the help in their order.
const SECTIONS: [(Section, &str); 6] = [
    (Section::Both, "Client or server"),
    (Section::Server, "Server"),
    (Section::Client, "Client"),
    (Section::Reports, "Reports"),
    (Section::Added, "Added by linerate"),
    (Section::Refused, "Known and refused"),
];

/// The options in the order of the help; those of the last group are refused.
pub fn option_groups() -> Vec<OptionGroup> {
    table::groups(OPTIONS, &SECTIONS)
}

/// Options that have no effect; the help does not list them.
pub fn options_without_effect() -> Vec<OptionHelp> {
    table::section_options(OPTIONS, &Section::Absent)
}

/// Variables of the environment with the long option whose default they hold.
pub fn variables() -> Vec<(&'static str, &'static str)> {
    let variable = |option: &OptionRow| Some((option.extra.variable?, option.long));
    OPTIONS.iter().filter_map(variable).collect()
}

/// The table in the form the parser reads; ids are positions in [`OPTIONS`].
pub(crate) fn grammar() -> Grammar<usize> {
    table::grammar(OPTIONS)
}

/// Applies an option to the settings.
pub(crate) fn apply(option: &OptionRow, args: &mut Args, value: Option<&OsStr>) -> Outcome {
    args.misplaced.on_server.extend(option.extra.server_says);
    args.misplaced.on_client.extend(option.extra.client_says);
    if option.extra.is_refused {
        return Err(Stop::error(format!(
            "ERROR: --{} {}",
            option.long, option.help
        )));
    }
    option.effect.apply(args, value)
}

use Section as S;
use table::Effect::{CheckedMaybe, CheckedSwitch, CheckedValue, MaybeValue, Switch, Value};

const fn row(
    short: Option<char>,
    long: &'static str,
    section: Section,
    effect: Effect<Args, Stop>,
    help: &'static str,
) -> OptionRow {
    OptionRow {
        short,
        long,
        aliases: &[],
        section,
        effect,
        help,
        extra: Extra {
            variable: None,
            is_refused: false,
            server_says: None,
            client_says: None,
        },
    }
}

const fn refused(
    short: Option<char>,
    long: &'static str,
    effect: Effect<Args, Stop>,
    reason: &'static str,
) -> OptionRow {
    let mut row = row(short, long, S::Refused, effect, reason);
    row.extra.is_refused = true;
    row
}

const fn alias(names: &'static [&'static str], mut row: OptionRow) -> OptionRow {
    row.aliases = names;
    row
}

const fn variable(name: &'static str, mut row: OptionRow) -> OptionRow {
    row.extra.variable = Some(name);
    row
}

/// An option that a server names and ignores.
const fn on_server(text: &'static str, mut row: OptionRow) -> OptionRow {
    row.extra.server_says = Some(text);
    row
}

/// An option that a client names and ignores.
const fn on_client(text: &'static str, mut row: OptionRow) -> OptionRow {
    row.extra.client_says = Some(text);
    row
}

/// Every option.
#[rustfmt::skip]
pub(crate) static OPTIONS: &[OptionRow] = &[
    variable("IPERF_SERVER", row(Some('s'), "server", S::Server, Switch(fx::server),
        "Be the server: wait for clients.")),
    variable("IPERF_CLIENT", row(Some('c'), "client", S::Client, Value("HOST[%DEV]", fx::client),
        "Be the client: test the path to the server on HOST, through device DEV.")),
    variable("IPERF_PORT", row(Some('p'), "port", S::Both, CheckedValue("N[-M]", fx::port),
        "Port of the server, or a range of ports: a server listens on all of them, a client opens \
         one stream to each (default 5001).")),
    variable("IPERF_UDP", row(Some('u'), "udp", S::Both, Switch(|a| a.test.transport = Transport::Udp),
        "Use UDP instead of TCP.")),
    variable("IPERF_BANDWIDTH", row(Some('b'), "bandwidth", S::Both, Value("N[kmgKMG] | Npps", fx::bandwidth),
        "Client: rate of each stream in bit/s or in datagrams per second (default 1 Mibit/s for \
         UDP, no limit otherwise). With -R the server is limited.")),
    variable("IPERF_PARALLEL", row(Some('P'), "parallel", S::Both, Value("N", fx::parallel),
        "Client: run N streams at the same time (default 1). Server: leave after N connections.")),
    variable("IPERF_TIME", row(Some('t'), "time", S::Both, CheckedValue("SECONDS", fx::time),
        "Client: test for this long, 0 or less until interrupted (default 10). Server: leave after \
         this long.")),
    variable("IPERF_NUM", row(Some('n'), "num", S::Client, CheckedValue("N[kmgKMG]", fx::amount),
        "Test until this many bytes are sent, instead of a duration.")),
    variable("IPERF_INTERVAL", row(Some('i'), "interval", S::Both, CheckedValue("SECONDS | f", fx::interval),
        "Time between two interval reports, or f for one per received frame of --isochronous \
         (default: none).")),
    variable("IPERF_LEN", row(Some('l'), "len", S::Both, Value("N[kmKM]", |a, v| a.block_len_bytes = fx::positive_bytes(v)),
        "Bytes per write, read or datagram (default 128K for TCP, 1470 for UDP, 1450 for UDP over \
         IPv6, 100 for --bounceback).")),
    variable("TCP_WINDOW_SIZE", row(Some('w'), "window", S::Both, Value("N[KM]", |a, v| a.test.socket.window_bytes = Some(fx::bytes_u32(v))),
        "Socket buffer in bytes, of the sending side on a client and of the receiving side on a \
         server; it bounds the TCP window.")),
    variable("IPERF_BIND", row(Some('B'), "bind", S::Both, CheckedValue("HOST[:PORT][%DEV]", fx::bind),
        "Use this local address, and on a client this local port. A server joins HOST if it is a \
         multicast group.")),
    variable("IPERF_TOS", row(Some('S'), "tos", S::Both, Value("N|NAME", fx::tos),
        "Value of the IP type-of-service byte, 0 to 255, or a name such as af41, cs5, ef or ac_vi.")),
    row(None, "dscp", S::Both, Value("N|NAME", fx::dscp),
        "Differentiated services code point, 0 to 63, or a name; the same byte as -S without its \
         two lowest bits."),
    variable("IPERF_MSS", row(Some('M'), "mss", S::Both, Value("N", |a, v| a.test.socket.mss_bytes = fx::positive(v)),
        "Largest TCP segment in bytes.")),
    variable("IPERF_NODELAY", row(Some('N'), "nodelay", S::Both, Switch(|a| a.test.socket.no_delay = true),
        "Switch Nagle's algorithm off: small writes are sent at once.")),
    variable("IPERF_CONGESTION_CONTROL", alias(&["linux-congestion", "tcp-cca"], row(Some('Z'), "tcp-congestion", S::Both, Value("NAME", |a, v| a.test.socket.congestion = Some(text(v))),
        "TCP congestion control algorithm."))),
    variable("IPERF_IPV6_DOMAIN", row(Some('V'), "ipv6_domain", S::Both, Switch(|a| a.local.bind.family = Some(AddressFamily::V6)),
        "Use IPv6; a server takes IPv4 as well.")),
    row(Some('4'), "ipv4", S::Both, Switch(|a| a.local.bind.family = Some(AddressFamily::V4)),
        "Use IPv4."),
    row(Some('6'), "ipv6", S::Both, Switch(|a| a.local.bind.family = Some(AddressFamily::V6)),
        "Use IPv6; the same as -V."),
    row(None, "permit-key", S::Both, MaybeValue("WORD", |a, v| a.permit_key = Some(v.map(text))),
        "Only clients that name the same WORD are served, 4 to 128 characters. A server makes one \
         up if it is given none. It travels unencrypted."),
    row(Some('z'), "realtime", S::Refused, Switch(|a| a.local.end.realtime = true),
        "is not supported"),
    alias(&["udp-histograms"], row(None, "histograms", S::Both, MaybeValue("WIDTH[um],BINS[,LOW,HIGH]", fx::histogram),
        "Show distributions: of one-way delays on a server (clients need --trip-times), of write \
         times on a client (default 100u,10000,5,95).")),
    row(None, "tcp-quickack", S::Both, Switch(|a| a.test.workload.quick_ack = true),
        "Acknowledge received data at once."),
    row(None, "tcp-tx-delay", S::Refused, Value("MS", fx::send_delay),
        "is not supported"),

    variable("IPERF_SINGLECLIENT", row(Some('1'), "singleclient", S::Server, Switch(|a| a.server.one_at_a_time = true),
        "Serve one test after the other.")),
    variable("IPERF_DAEMON", row(Some('D'), "daemon", S::Server, Switch(|a| a.daemon = true),
        "Detach from the terminal and serve in the background.")),
    variable("IPERF_SINGLE_UDP", row(Some('U'), "single_udp", S::Server, Switch(|a| { a.test.transport = Transport::Udp; a.server.one_at_a_time = true; }),
        "Like -u, one flow after the other.")),
    alias(&["ssm_host"], row(Some('H'), "ssm-host", S::Server, Value("ADDRESS", fx::multicast_source),
        "With -B GROUP: take only what this source sends.")),
    row(None, "permit-key-timeout", S::Server, Value("SECONDS", |a, v| a.server.permit_key_s = Some(fx::seconds_of(v))),
        "The permit key opens nothing after this long (default 20)."),
    on_client("WARN: option of --tcp-rx-window-clamp not supported on the client", row(None, "tcp-rx-window-clamp", S::Server, Value("N[KM]", |a, v| a.test.workload.window_clamp_bytes = fx::positive_bytes(v)),
        "Largest TCP receive window in bytes.")),
    on_client("WARN: option of --tos-override not supported on the client", row(None, "tos-override", S::Server, Value("N|NAME", fx::tos_override),
        "Type-of-service byte of what the server sends, whatever the client asks for.")),
    row(None, "skip-rx-copy", S::Server, Switch(|a| a.test.skip_rx_copy = true),
        "Let the kernel drop received data instead of copying it out; costs less CPU time."),
    row(None, "test-exchange-timeout", S::Server, Value("SECONDS", |a, v| a.server.handshake_s = Some(fx::seconds_of(v))),
        "Longest wait for a client to say what it wants, 0 for no limit (default 10)."),
    on_client("WARN: option of --sum-dstip not supported on the client", row(None, "sum-dstip", S::Refused, Switch(|a| a.output.sum_by_destination = true),
        "is not supported")),
    on_server("WARN: option of --reverse is not supported on the server", row(Some('R'), "reverse", S::Client, Switch(|a| a.directions.reverse = true),
        "Let the server send and the client receive.")),
    on_server("WARN: option of --full-duplex is not supported on the server", row(None, "full-duplex", S::Client, Switch(|a| a.directions.full_duplex = true),
        "Send in both directions at the same time, on the same connections.")),
    variable("IPERF_DUALTEST", row(Some('d'), "dualtest", S::Client, Switch(|a| a.directions.dual |= fx::connects_back(a, "-d")),
        "Send in both directions at the same time; the server connects back for its own. Must \
         follow -c.")),
    variable("IPERF_TRADEOFF", row(Some('r'), "tradeoff", S::Client, Switch(|a| a.directions.trade_off |= fx::connects_back(a, "-r")),
        "The same one after the other.")),
    variable("IPERF_LISTENPORT", row(Some('L'), "listenport", S::Client, CheckedValue("PORT", fx::listen_port),
        "Port on which -d and -r wait for the server (default: the server's).")),
    on_server("WARN: option of -X or --peer-detect not supported on the server", variable("IPERF_PEER_DETECT", alias(&["peerdetect"], row(Some('X'), "peer-detect", S::Client, Switch(|a| a.test.workload.detect_peer = true),
        "Ask the server for its version before the test; servers before 2.0.14 do not know it.")))),
    variable("IPERF_COMPAT", row(Some('C'), "compatibility", S::Client, Switch(|a| a.test.workload.without_header = true),
        "Send data and nothing else, for servers that would not understand more.")),
    on_server("WARN: setting of option --trip-times is not supported on the server", row(None, "trip-times", S::Client, Switch(|a| a.test.workload.trip_times = true),
        "Measure one-way delays; the clocks of client and server must agree.")),
    row(None, "bounceback", S::Client, MaybeValue("N", |a, v| a.bounce.burst = Some(v.and_then(fx::positive).unwrap_or(10))),
        "Measure round trips of requests and replies, N requests at the start of each period \
         (default 10)."),
    row(None, "bounceback-hold", S::Client, Value("MS", fx::bounce_hold),
        "Time the server waits before it replies."),
    row(None, "bounceback-period", S::Client, Value("SECONDS", |a, v| a.bounce.period_s = Some(fx::seconds_of(v))),
        "Time from one burst of requests to the next, 0 for no pause (default 1)."),
    row(None, "bounceback-request", S::Client, Value("N[KM]", |a, v| a.bounce.request_bytes = Some(fx::bytes_u32(v))),
        "Bytes of a request; the same as -l."),
    row(None, "bounceback-reply", S::Client, Value("N[KM]", |a, v| a.bounce.reply_bytes = Some(fx::bytes_u32(v))),
        "Bytes of a reply (default: as many as the request); the server must be 2.2.1 or linerate."),
    row(None, "bounceback-no-quickack", S::Client, Switch(|a| a.bounce.slow_ack = true),
        "Do not acknowledge requests and replies at once."),
    alias(&["bounceback-congest"], row(None, "working-load", S::Client, CheckedMaybe("up|down|bidir[,N]", fx::working_load),
        "Load the path with N streams while --bounceback measures (default bidir,1).")),
    on_server("WARN: option of --isochronous is not supported on the server", row(None, "isochronous", S::Client, CheckedMaybe("FPS:MEAN[,DEV]", fx::isochronous),
        "Send frames on a fixed grid, as video does: N per second, with a mean rate and its \
         deviation in bit/s (default 60:20m,0).")),
    on_server("WARN: option of --ipg is not supported on the server", row(None, "ipg", S::Client, Value("MS", |a, v| a.shape.gap_s = Some(fx::millis_of(v))),
        "Gap between the datagrams of a frame.")),
    on_server("WARN: option of --burst-period can only be set on the client\nWARN: option of --burst-size not supported on the server", row(None, "burst-size", S::Client, Value("N[kmKM]", fx::burst_size),
        "Send this many bytes at once, then wait (default 1M).")),
    on_server("WARN: option of --burst-period can only be set on the client", row(None, "burst-period", S::Client, Value("SECONDS", fx::burst_period),
        "Time from one burst to the next (default 1).")),
    on_server("WARN: option of --near-congestion not supported on the server", row(None, "near-congestion", S::Client, MaybeValue("W", fx::near_congestion),
        "After each write wait for the round-trip time times W (default 0.5).")),
    row(None, "connect-only", S::Client, MaybeValue("N", |a, v| a.connect_only = Some(v.and_then(fx::positive))),
        "Open N connections one after the other and send nothing (default 10, or one per -i)."),
    on_server("WARN: option --connect-retries not supported on the server", row(None, "connect-retries", S::Client, Value("N", fx::connect_retries),
        "Number of retries, 200 ms apart, if the server cannot be reached.")),
    row(None, "connect-retry-time", S::Client, Value("SECONDS", fx::connect_retry_time),
        "Retry connecting for this long."),
    row(None, "connect-retry-timer", S::Client, Value("SECONDS", fx::connect_retry_pause),
        "Shortest time from one attempt to the next (default 1)."),
    row(None, "no-connect-sync", S::Client, Switch(|a| a.test.workload.unsynchronised_start = true),
        "Parallel streams begin as soon as they are connected, without waiting for each other."),
    on_server("WARN: option of --no-udp-fin is not supported on the server", row(None, "no-udp-fin", S::Client, Switch(|a| a.test.workload.without_final_report = true),
        "Do not ask the server for its report at the end of a UDP test.")),
    on_server("WARN: option of --fq-rate is not supported on the server", row(None, "fq-rate", S::Client, Value("N[kmgKMG]", fx::fq_rate),
        "Let the kernel pace each stream: bit/s with a small letter, bytes/s with a capital one.")),
    on_server("WARN: setting of option --tcp-write-prefetch is not supported on the server", row(None, "tcp-write-prefetch", S::Client, Value("N[KM]", fx::unsent_limit),
        "Write only while fewer bytes than this are waiting to be sent.")),
    row(None, "tcp-write-times", S::Client, Switch(|a| a.test.workload.write_times = true),
        "Measure how long each write takes."),
    on_server("WARN: option of --txstart-time is not supported on the server", row(None, "txstart-time", S::Client, Value("EPOCH", fx::start_at),
        "Begin to send at this time, in seconds since 1970 with a fraction, at most an hour ahead.")),
    on_server("WARN: option of --txdelay-time is not supported on the server", row(None, "txdelay-time", S::Client, Value("SECONDS", |a, v| a.start.after_s = Some(fx::seconds_of(v))),
        "Begin to send this long after connecting.")),
    on_server("WARN: option of --incr-dstip is not supported on the server", row(None, "incr-dstip", S::Client, Switch(|a| a.test.workload.fan_out.destination_address = true),
        "Each parallel stream goes to the next address.")),
    row(None, "incr-srcip", S::Client, Switch(|a| a.test.workload.fan_out.source_address = true),
        "Each parallel stream comes from the next address."),
    row(None, "incr-dstport", S::Client, Switch(|a| a.test.workload.fan_out.destination_port = true),
        "Each parallel stream goes to the next port."),
    row(None, "incr-srcport", S::Client, Switch(|a| a.test.workload.fan_out.source_port = true),
        "Each parallel stream comes from the next port."),
    row(None, "sync-transfer-id", S::Client, Switch(|a| a.test.workload.shared_ids = true),
        "Let the server use the client's stream numbers."),
    row(None, "ignore-shutdown", S::Client, Switch(|a| a.local.end.without_shutdown_wait = true),
        "End the report with the last write instead of the server's good-bye."),
    row(None, "local-only", S::Client, MaybeValue("0|1", fx::local_only),
        "Reach only what is directly connected."),
    variable("IPERF_FILE_INPUT", alias(&["fileinput"], row(Some('F'), "file_input", S::Client, Value("FILE", fx::file),
        "Send the contents of FILE."))),
    variable("IPERF_STDIN_INPUT", alias(&["stdin"], row(Some('I'), "stdin_input", S::Client, Switch(fx::stdin),
        "Send what comes from the standard input."))),
    variable("IPERF_TTL", row(Some('T'), "ttl", S::Client, Value("N", fx::ttl),
        "Time to live of datagrams to a multicast group (default 1).")),
    variable("IPERF_ENHANCEDREPORTS", alias(&["enhancedreports"], row(Some('e'), "enhanced", S::Reports, Switch(|a| a.output.enhanced = true),
        "Report more columns; several other options imply it."))),
    variable("IPERF_FORMAT", row(Some('f'), "format", S::Reports, Value("[bkmgtpaBKMGTPA]", fx::format),
        "Unit of rates: bits with a small letter, bytes with a capital one, a and A for whatever \
         fits (default a).")),
    variable("IPERF_REPORTSTYLE", row(Some('y'), "reportstyle", S::Reports, Value("C", fx::style),
        "Report as comma-separated values.")),
    variable("IPERF_REPORTEXCLUDE", row(Some('x'), "reportexclude", S::Reports, Value("[CDMSV]", fx::exclude),
        "Leave out connect lines, data lines, multicast settings, settings or the server's report.")),
    row(Some('o'), "output", S::Reports, Value("FILE", fx::output),
        "Append everything that would be shown to FILE."),
    variable("IPERF_PRINT_MSS", row(Some('m'), "print_mss", S::Reports, Switch(|a| a.output.print_mss = true),
        "Show the TCP segment size.")),
    row(None, "sum-only", S::Reports, Switch(|a| a.output.sum_only = true),
        "Report sums of parallel streams and nothing else."),
    row(None, "hide-ips", S::Reports, Switch(|a| a.output.hide_addresses = true),
        "Show no addresses and no host names."),
    row(None, "utc", S::Reports, Switch(|a| a.output.utc = true),
        "Show dates in coordinated universal time."),
    row(Some('h'), "help", S::Reports, CheckedSwitch(|_| Err(Stop::Help)),
        "Show this text, then leave."),
    row(Some('v'), "version", S::Reports, CheckedSwitch(|_| Err(Stop::Version)),
        "Show the version, then leave."),

    row(None, LR_FORMAT, S::Added, CheckedValue("2.1|2.2", fx::layout),
        "Write the lines of 2.1.8 or those of 2.2.1 (default 2.1)."),
    on_server("WARN: option of --lr-expect is not supported on the server", row(None, "lr-expect", S::Added, CheckedValue("LIMITS", fx::expect),
        "Limits of a client's result, for example rx>=900M,rtt<5ms,loss<=0.1%. Each one that is \
         missed is a line on the standard error, and the exit code is then 5.")),
    row(None, "lr-record", S::Added, CheckedMaybe("KEY=VALUE[,...]", fx::record),
        "Keep this run, or every test of a server, in the history, with these labels; the report \
         stays as it is. The history is the file that LINERATE_STORE names, or \
         $XDG_STATE_HOME/linerate/history.db."),
    on_server("WARN: option of --lr-tui is not supported on the server", row(None, "lr-tui", S::Added, Switch(|a| a.output.tui = true),
        "Show a client's test while it runs on the terminal of the standard error; the report is \
         printed at the end.")),
    row(Some('W'), "suggest_win_size", S::Absent, Switch(|a| a.say("The -W option is not available \
                                                                    in this release")),
        "was never finished; a message says so and the test continues"),
    row(None, "NUM_REPORT_STRUCTS", S::Absent, Value("N", fx::no_queue),
        "has no meaning here: nothing is queued between measuring and reporting"),
    refused(Some('A'), "awdl", Switch(|_| ()), "is for a wireless link that Linux does not have"),
    refused(None, "bounceback-txdelay", Value("", |_, _| ()), "is not supported, use \
                                                             --bounceback-hold"),
    refused(None, "fq-rate-step", Value("", |_, _| ()), "is not supported, use one --fq-rate per test"),
    refused(None, "fq-rate-step-interval", Value("", |_, _| ()), "is not supported, use one \
                                                                --fq-rate per test"),
    refused(None, "working-load-cca", Value("", |_, _| ()), "is not supported, all streams use the \
                                                           algorithm of -Z"),
    refused(None, "jitter-histograms", MaybeValue("", |_, _| ()), "is not supported, use --histograms for \
                                                            delays"),
    refused(None, "udp-l4s", Switch(|_| ()), "is not supported"),
    refused(None, "udp-l4s-video", Switch(|_| ()), "is not supported"),
    refused(None, "l2checks", Switch(|_| ()), "is not supported: frames are not checked below IP"),
    refused(None, "tap-dev", MaybeValue("", |_, _| ()), "is not supported: data go through sockets only"),
    refused(None, "tun-dev", MaybeValue("", |_, _| ()), "is not supported: data go through sockets only"),
];

/// Variables of the environment in the order in which the original reads them.
pub(crate) const ENVIRONMENT: [&str; 33] = [
    "IPERF_BANDWIDTH",
    "IPERF_CLIENT",
    "IPERF_DUALTEST",
    "IPERF_ENHANCEDREPORTS",
    "IPERF_FORMAT",
    "IPERF_INTERVAL",
    "IPERF_LEN",
    "IPERF_PRINT_MSS",
    "IPERF_NUM",
    "IPERF_PORT",
    "IPERF_TRADEOFF",
    "IPERF_SERVER",
    "IPERF_TIME",
    "IPERF_UDP",
    "TCP_WINDOW_SIZE",
    "IPERF_REPORTEXCLUDE",
    "IPERF_REPORTSTYLE",
    "IPERF_BIND",
    "IPERF_COMPAT",
    "IPERF_DAEMON",
    "IPERF_FILE_INPUT",
    "IPERF_STDIN_INPUT",
    "IPERF_LISTENPORT",
    "IPERF_MSS",
    "IPERF_NODELAY",
    "IPERF_PARALLEL",
    "IPERF_TOS",
    "IPERF_TTL",
    "IPERF_SINGLE_UDP",
    "IPERF_IPV6_DOMAIN",
    "IPERF_SINGLECLIENT",
    "IPERF_PEER_DETECT",
    "IPERF_CONGESTION_CONTROL",
];
