//! The options of the iperf 2 dialect: one table for the parser, the environment and the help. It
//! holds those of 2.1.8 and of 2.2.1, whatever layout is chosen.

use std::ffi::OsStr;

use linerate_model::Transport;
use linerate_model::command_line::getopt::Grammar;
use linerate_model::command_line::table::{self, Effect, OptionGroup, OptionHelp};
use linerate_model::command_line::values::text;
use linerate_model::spec::AddressFamily;

use super::Stop;
use super::args::{Args, Outcome};
use super::effects as fx;

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
type OptionRow = table::OptionRow<Args, Stop, Section, Extra>;

/// Properties of an option that iperf 2 alone has.
pub(crate) struct Extra {
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
    (Both, "Client or server"),
    (Server, "Server"),
    (Client, "Client"),
    (Reports, "Reports"),
    (Added, "Added by linerate"),
    (Refused, "Known and refused"),
];

/// The options in the order of the help; those of the last group are refused.
pub fn option_groups() -> Vec<OptionGroup> {
    table::groups(OPTIONS, &SECTIONS)
}

/// Options that have no effect; the help does not list them.
pub fn options_without_effect() -> Vec<OptionHelp> {
    table::section_options(OPTIONS, &Absent)
}

/// Variables of the environment with the long option whose default they hold.
pub fn variables() -> Vec<(&'static str, &'static str)> {
    let of = |option: &OptionRow| {
        let long = option.long();
        ENVIRONMENT.into_iter().find(|(_, name)| *name == long)
    };
    OPTIONS.iter().filter_map(of).collect()
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
            option.long(),
            option.help
        )));
    }
    option.effect.apply(args, value)
}

use Section::{Absent, Added, Both, Client, Refused, Reports, Server};
use table::Effect::{CheckedMaybe, CheckedSwitch, CheckedValue, MaybeValue, Switch, Value};

const fn row(
    usage: &'static str,
    section: Section,
    effect: Effect<Args, Stop>,
    help: &'static str,
) -> OptionRow {
    OptionRow {
        usage,
        section,
        effect,
        help,
        extra: Extra {
            is_refused: false,
            server_says: None,
            client_says: None,
        },
    }
}

const fn refused(
    usage: &'static str,
    effect: Effect<Args, Stop>,
    reason: &'static str,
) -> OptionRow {
    let mut row = row(usage, Refused, effect, reason);
    row.extra.is_refused = true;
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
pub(crate) static OPTIONS: &[OptionRow] = &[
    row(
        "-s, --server",
        Server,
        Switch(fx::server),
        "Be the server: wait for clients.",
    ),
    row(
        "-c, --client=HOST[%DEV]",
        Client,
        Value(fx::client),
        "Be the client: test the path to the server on HOST, through device DEV.",
    ),
    row(
        "-p, --port=N[-M]",
        Both,
        CheckedValue(fx::port),
        "Port of the server, or a range of ports: a server listens on all of them, a client opens \
         one stream to each (default 5001).",
    ),
    row(
        "-u, --udp",
        Both,
        Switch(|a| a.test.transport = Transport::Udp),
        "Use UDP instead of TCP.",
    ),
    row(
        "-b, --bandwidth=N[kmgKMG] | Npps",
        Both,
        Value(fx::bandwidth),
        "Client: rate of each stream in bit/s or in datagrams per second (default 1 Mibit/s for \
         UDP, no limit otherwise). With -R the server is limited.",
    ),
    row(
        "-P, --parallel=N",
        Both,
        Value(fx::parallel),
        "Client: run N streams at the same time (default 1). Server: leave after N connections.",
    ),
    row(
        "-t, --time=SECONDS",
        Both,
        CheckedValue(fx::time),
        "Client: test for this long, 0 or less until interrupted (default 10). Server: leave after \
         this long.",
    ),
    row(
        "-n, --num=N[kmgKMG]",
        Client,
        CheckedValue(fx::amount),
        "Test until this many bytes are sent, instead of a duration.",
    ),
    row(
        "-i, --interval=SECONDS | f",
        Both,
        CheckedValue(fx::interval),
        "Time between two interval reports, or f for one per received frame of --isochronous \
         (default: none).",
    ),
    row(
        "-l, --len=N[kmKM]",
        Both,
        Value(|a, v| a.block_len_bytes = fx::positive_bytes(v)),
        "Bytes per write, read or datagram (default 128K for TCP, 1470 for UDP, 1450 for UDP over \
         IPv6, 100 for --bounceback).",
    ),
    row(
        "-w, --window=N[KM]",
        Both,
        Value(|a, v| a.test.socket.window_bytes = Some(fx::bytes_u32(v))),
        "Socket buffer in bytes, of the sending side on a client and of the receiving side on a \
         server; it bounds the TCP window.",
    ),
    row(
        "-B, --bind=HOST[:PORT][%DEV]",
        Both,
        CheckedValue(fx::bind),
        "Use this local address, and on a client this local port. A server joins HOST if it is a \
         multicast group.",
    ),
    row(
        "-S, --tos=N|NAME",
        Both,
        Value(fx::tos),
        "Value of the IP type-of-service byte, 0 to 255, or a name such as af41, cs5, ef or ac_vi.",
    ),
    row(
        "--dscp=N|NAME",
        Both,
        Value(fx::dscp),
        "Differentiated services code point, 0 to 63, or a name; the same byte as -S without its \
         two lowest bits.",
    ),
    row(
        "-M, --mss=N",
        Both,
        Value(|a, v| a.test.socket.mss_bytes = fx::positive(v)),
        "Largest TCP segment in bytes.",
    ),
    row(
        "-N, --nodelay",
        Both,
        Switch(|a| a.test.socket.no_delay = true),
        "Switch Nagle's algorithm off: small writes are sent at once.",
    ),
    row(
        "-Z, --tcp-congestion, --linux-congestion, --tcp-cca=NAME",
        Both,
        Value(|a, v| a.test.socket.congestion = Some(text(v))),
        "TCP congestion control algorithm.",
    ),
    row(
        "-V, --ipv6_domain",
        Both,
        Switch(|a| a.local.bind.family = Some(AddressFamily::V6)),
        "Use IPv6; a server takes IPv4 as well.",
    ),
    row(
        "-4, --ipv4",
        Both,
        Switch(|a| a.local.bind.family = Some(AddressFamily::V4)),
        "Use IPv4.",
    ),
    row(
        "-6, --ipv6",
        Both,
        Switch(|a| a.local.bind.family = Some(AddressFamily::V6)),
        "Use IPv6; the same as -V.",
    ),
    row(
        "--permit-key=WORD",
        Both,
        MaybeValue(|a, v| a.permit_key = Some(v.map(text))),
        "Only clients that name the same WORD are served, 4 to 128 characters. A server makes one \
         up if it is given none. It travels unencrypted.",
    ),
    row(
        "-z, --realtime",
        Refused,
        Switch(|a| a.local.end.realtime = true),
        "is not supported",
    ),
    row(
        "--histograms, --udp-histograms=WIDTH[um],BINS[,LOW,HIGH]",
        Both,
        MaybeValue(fx::histogram),
        "Show distributions: of one-way delays on a server (clients need --trip-times), of write \
         times on a client (default 100u,10000,5,95).",
    ),
    row(
        "--tcp-quickack",
        Both,
        Switch(|a| a.test.workload.quick_ack = true),
        "Acknowledge received data at once.",
    ),
    row(
        "--tcp-tx-delay=MS",
        Refused,
        Value(fx::send_delay),
        "is not supported",
    ),
    row(
        "-1, --singleclient",
        Server,
        Switch(|a| a.server.one_at_a_time = true),
        "Serve one test after the other.",
    ),
    row(
        "-D, --daemon",
        Server,
        Switch(|a| a.daemon = true),
        "Detach from the terminal and serve in the background.",
    ),
    row(
        "-U, --single_udp",
        Server,
        Switch(|a| {
            a.test.transport = Transport::Udp;
            a.server.one_at_a_time = true;
        }),
        "Like -u, one flow after the other.",
    ),
    row(
        "-H, --ssm-host, --ssm_host=ADDRESS",
        Server,
        Value(fx::multicast_source),
        "With -B GROUP: take only what this source sends.",
    ),
    row(
        "--permit-key-timeout=SECONDS",
        Server,
        Value(|a, v| a.server.permit_key_s = Some(fx::seconds_of(v))),
        "The permit key opens nothing after this long (default 20).",
    ),
    on_client(
        "WARN: option of --tcp-rx-window-clamp not supported on the client",
        row(
            "--tcp-rx-window-clamp=N[KM]",
            Server,
            Value(|a, v| a.test.workload.window_clamp_bytes = fx::positive_bytes(v)),
            "Largest TCP receive window in bytes.",
        ),
    ),
    on_client(
        "WARN: option of --tos-override not supported on the client",
        row(
            "--tos-override=N|NAME",
            Server,
            Value(fx::tos_override),
            "Type-of-service byte of what the server sends, whatever the client asks for.",
        ),
    ),
    row(
        "--skip-rx-copy",
        Server,
        Switch(|a| a.test.skip_rx_copy = true),
        "Let the kernel drop received data instead of copying it out; costs less CPU time.",
    ),
    row(
        "--test-exchange-timeout=SECONDS",
        Server,
        Value(|a, v| a.server.handshake_s = Some(fx::seconds_of(v))),
        "Longest wait for a client to say what it wants, 0 for no limit (default 10).",
    ),
    on_client(
        "WARN: option of --sum-dstip not supported on the client",
        row(
            "--sum-dstip",
            Refused,
            Switch(|a| a.output.sum_by_destination = true),
            "is not supported",
        ),
    ),
    on_server(
        "WARN: option of --reverse is not supported on the server",
        row(
            "-R, --reverse",
            Client,
            Switch(|a| a.directions.reverse = true),
            "Let the server send and the client receive.",
        ),
    ),
    on_server(
        "WARN: option of --full-duplex is not supported on the server",
        row(
            "--full-duplex",
            Client,
            Switch(|a| a.directions.full_duplex = true),
            "Send in both directions at the same time, on the same connections.",
        ),
    ),
    row(
        "-d, --dualtest",
        Client,
        Switch(|a| a.directions.dual |= fx::connects_back(a, "-d")),
        "Send in both directions at the same time; the server connects back for its own. Must \
         follow -c.",
    ),
    row(
        "-r, --tradeoff",
        Client,
        Switch(|a| a.directions.trade_off |= fx::connects_back(a, "-r")),
        "The same one after the other.",
    ),
    row(
        "-L, --listenport=PORT",
        Client,
        CheckedValue(fx::listen_port),
        "Port on which -d and -r wait for the server (default: the server's).",
    ),
    on_server(
        "WARN: option of -X or --peer-detect not supported on the server",
        row(
            "-X, --peer-detect, --peerdetect",
            Client,
            Switch(|a| a.test.workload.detect_peer = true),
            "Ask the server for its version before the test; servers before 2.0.14 do not know it.",
        ),
    ),
    row(
        "-C, --compatibility",
        Client,
        Switch(|a| a.test.workload.without_header = true),
        "Send data and nothing else, for servers that would not understand more.",
    ),
    on_server(
        "WARN: setting of option --trip-times is not supported on the server",
        row(
            "--trip-times",
            Client,
            Switch(|a| a.test.workload.trip_times = true),
            "Measure one-way delays; the clocks of client and server must agree.",
        ),
    ),
    row(
        "--bounceback=N",
        Client,
        MaybeValue(|a, v| a.bounce.burst = Some(v.and_then(fx::positive).unwrap_or(10))),
        "Measure round trips of requests and replies, N requests at the start of each period \
         (default 10).",
    ),
    row(
        "--bounceback-hold=MS",
        Client,
        Value(fx::bounce_hold),
        "Time the server waits before it replies.",
    ),
    row(
        "--bounceback-period=SECONDS",
        Client,
        Value(|a, v| a.bounce.period_s = Some(fx::seconds_of(v))),
        "Time from one burst of requests to the next, 0 for no pause (default 1).",
    ),
    row(
        "--bounceback-request=N[KM]",
        Client,
        Value(|a, v| a.bounce.request_bytes = Some(fx::bytes_u32(v))),
        "Bytes of a request; the same as -l.",
    ),
    row(
        "--bounceback-reply=N[KM]",
        Client,
        Value(|a, v| a.bounce.reply_bytes = Some(fx::bytes_u32(v))),
        "Bytes of a reply (default: as many as the request); the server must be 2.2.1 or linerate.",
    ),
    row(
        "--bounceback-no-quickack",
        Client,
        Switch(|a| a.bounce.slow_ack = true),
        "Do not acknowledge requests and replies at once.",
    ),
    row(
        "--working-load, --bounceback-congest=up|down|bidir[,N]",
        Client,
        CheckedMaybe(fx::working_load),
        "Load the path with N streams while --bounceback measures (default bidir,1).",
    ),
    on_server(
        "WARN: option of --isochronous is not supported on the server",
        row(
            "--isochronous=FPS:MEAN[,DEV]",
            Client,
            CheckedMaybe(fx::isochronous),
            "Send frames on a fixed grid, as video does: N per second, with a mean rate and its \
             deviation in bit/s (default 60:20m,0).",
        ),
    ),
    on_server(
        "WARN: option of --ipg is not supported on the server",
        row(
            "--ipg=MS",
            Client,
            Value(|a, v| a.shape.gap_s = Some(fx::millis_of(v))),
            "Gap between the datagrams of a frame.",
        ),
    ),
    on_server(
        "WARN: option of --burst-period can only be set on the client\nWARN: option of --burst-size not supported on the server",
        row(
            "--burst-size=N[kmKM]",
            Client,
            Value(fx::burst_size),
            "Send this many bytes at once, then wait (default 1M).",
        ),
    ),
    on_server(
        "WARN: option of --burst-period can only be set on the client",
        row(
            "--burst-period=SECONDS",
            Client,
            Value(fx::burst_period),
            "Time from one burst to the next (default 1).",
        ),
    ),
    on_server(
        "WARN: option of --near-congestion not supported on the server",
        row(
            "--near-congestion=W",
            Client,
            MaybeValue(fx::near_congestion),
            "After each write wait for the round-trip time times W (default 0.5).",
        ),
    ),
    row(
        "--connect-only=N",
        Client,
        MaybeValue(|a, v| a.connect_only = Some(v.and_then(fx::positive))),
        "Open N connections one after the other and send nothing (default 10, or one per -i).",
    ),
    on_server(
        "WARN: option --connect-retries not supported on the server",
        row(
            "--connect-retries=N",
            Client,
            Value(fx::connect_retries),
            "Number of retries, 200 ms apart, if the server cannot be reached.",
        ),
    ),
    row(
        "--connect-retry-time=SECONDS",
        Client,
        Value(fx::connect_retry_time),
        "Retry connecting for this long.",
    ),
    row(
        "--connect-retry-timer=SECONDS",
        Client,
        Value(fx::connect_retry_pause),
        "Shortest time from one attempt to the next (default 1).",
    ),
    row(
        "--no-connect-sync",
        Client,
        Switch(|a| a.test.workload.unsynchronised_start = true),
        "Parallel streams begin as soon as they are connected, without waiting for each other.",
    ),
    on_server(
        "WARN: option of --no-udp-fin is not supported on the server",
        row(
            "--no-udp-fin",
            Client,
            Switch(|a| a.test.workload.without_final_report = true),
            "Do not ask the server for its report at the end of a UDP test.",
        ),
    ),
    on_server(
        "WARN: option of --fq-rate is not supported on the server",
        row(
            "--fq-rate=N[kmgKMG]",
            Client,
            Value(fx::fq_rate),
            "Let the kernel pace each stream: bit/s with a small letter, bytes/s with a capital \
             one.",
        ),
    ),
    on_server(
        "WARN: setting of option --tcp-write-prefetch is not supported on the server",
        row(
            "--tcp-write-prefetch=N[KM]",
            Client,
            Value(fx::unsent_limit),
            "Write only while fewer bytes than this are waiting to be sent.",
        ),
    ),
    row(
        "--tcp-write-times",
        Client,
        Switch(|a| a.test.workload.write_times = true),
        "Measure how long each write takes.",
    ),
    on_server(
        "WARN: option of --txstart-time is not supported on the server",
        row(
            "--txstart-time=EPOCH",
            Client,
            Value(fx::start_at),
            "Begin to send at this time, in seconds since 1970 with a fraction, at most an hour \
             ahead.",
        ),
    ),
    on_server(
        "WARN: option of --txdelay-time is not supported on the server",
        row(
            "--txdelay-time=SECONDS",
            Client,
            Value(|a, v| a.start.after_s = Some(fx::seconds_of(v))),
            "Begin to send this long after connecting.",
        ),
    ),
    on_server(
        "WARN: option of --incr-dstip is not supported on the server",
        row(
            "--incr-dstip",
            Client,
            Switch(|a| a.test.workload.fan_out.destination_address = true),
            "Each parallel stream goes to the next address.",
        ),
    ),
    row(
        "--incr-srcip",
        Client,
        Switch(|a| a.test.workload.fan_out.source_address = true),
        "Each parallel stream comes from the next address.",
    ),
    row(
        "--incr-dstport",
        Client,
        Switch(|a| a.test.workload.fan_out.destination_port = true),
        "Each parallel stream goes to the next port.",
    ),
    row(
        "--incr-srcport",
        Client,
        Switch(|a| a.test.workload.fan_out.source_port = true),
        "Each parallel stream comes from the next port.",
    ),
    row(
        "--sync-transfer-id",
        Client,
        Switch(|a| a.test.workload.shared_ids = true),
        "Let the server use the client's stream numbers.",
    ),
    row(
        "--ignore-shutdown",
        Client,
        Switch(|a| a.local.end.without_shutdown_wait = true),
        "End the report with the last write instead of the server's good-bye.",
    ),
    row(
        "--local-only=0|1",
        Client,
        MaybeValue(fx::local_only),
        "Reach only what is directly connected.",
    ),
    row(
        "-F, --file_input, --fileinput=FILE",
        Client,
        Value(fx::file),
        "Send the contents of FILE.",
    ),
    row(
        "-I, --stdin_input, --stdin",
        Client,
        Switch(fx::stdin),
        "Send what comes from the standard input.",
    ),
    row(
        "-T, --ttl=N",
        Client,
        Value(fx::ttl),
        "Time to live of datagrams to a multicast group (default 1).",
    ),
    row(
        "-e, --enhanced, --enhancedreports",
        Reports,
        Switch(|a| a.output.enhanced = true),
        "Report more columns; several other options imply it.",
    ),
    row(
        "-f, --format=[bkmgtpaBKMGTPA]",
        Reports,
        Value(fx::format),
        "Unit of rates: bits with a small letter, bytes with a capital one, a and A for whatever \
         fits (default a).",
    ),
    row(
        "-y, --reportstyle=C",
        Reports,
        Value(fx::style),
        "Report as comma-separated values.",
    ),
    row(
        "-x, --reportexclude=[CDMSV]",
        Reports,
        Value(fx::exclude),
        "Leave out connect lines, data lines, multicast settings, settings or the server's report.",
    ),
    row(
        "-o, --output=FILE",
        Reports,
        Value(fx::output),
        "Append everything that would be shown to FILE.",
    ),
    row(
        "-m, --print_mss",
        Reports,
        Switch(|a| a.output.print_mss = true),
        "Show the TCP segment size.",
    ),
    row(
        "--sum-only",
        Reports,
        Switch(|a| a.output.sum_only = true),
        "Report sums of parallel streams and nothing else.",
    ),
    row(
        "--hide-ips",
        Reports,
        Switch(|a| a.output.hide_addresses = true),
        "Show no addresses and no host names.",
    ),
    row(
        "--utc",
        Reports,
        Switch(|a| a.output.utc = true),
        "Show dates in coordinated universal time.",
    ),
    row(
        "-h, --help",
        Reports,
        CheckedSwitch(|_| Err(Stop::Help)),
        "Show this text, then leave.",
    ),
    row(
        "-v, --version",
        Reports,
        CheckedSwitch(|_| Err(Stop::Version)),
        "Show the version, then leave.",
    ),
    row(
        "--lr-format=2.1|2.2",
        Added,
        CheckedValue(fx::layout),
        "Write the lines of 2.1.8 or those of 2.2.1 (default 2.1).",
    ),
    on_server(
        "WARN: option of --lr-expect is not supported on the server",
        row(
            "--lr-expect=LIMITS",
            Added,
            CheckedValue(fx::expect),
            "Limits of a client's result, for example rx>=900M,rtt<5ms,loss<=0.1%. Each one that \
             is missed is a line on the standard error, and the exit code is then 5.",
        ),
    ),
    row(
        "--lr-record=KEY=VALUE[,...]",
        Added,
        CheckedMaybe(fx::record),
        "Keep this run, or every test of a server, in the history, with these labels; the report \
         stays as it is. The history is the file that LINERATE_STORE names, or \
         $XDG_STATE_HOME/linerate/history.db.",
    ),
    on_server(
        "WARN: option of --lr-tui is not supported on the server",
        row(
            "--lr-tui",
            Added,
            Switch(|a| a.output.tui = true),
            "Show a client's test while it runs on the terminal of the standard error; the report \
             is printed at the end.",
        ),
    ),
    row(
        "-W, --suggest_win_size",
        Absent,
        Switch(|a| {
            a.say(
                "The -W option is not available \
                                                                    in this release",
            );
        }),
        "was never finished; a message says so and the test continues",
    ),
    row(
        "--NUM_REPORT_STRUCTS=N",
        Absent,
        Value(fx::no_queue),
        "has no meaning here: nothing is queued between measuring and reporting",
    ),
    refused(
        "-A, --awdl",
        Switch(|_| ()),
        "is for a wireless link that Linux does not have",
    ),
    refused(
        "--bounceback-txdelay",
        Value(|_, _| ()),
        "is not supported, use --bounceback-hold",
    ),
    refused(
        "--fq-rate-step",
        Value(|_, _| ()),
        "is not supported, use one --fq-rate per test",
    ),
    refused(
        "--fq-rate-step-interval",
        Value(|_, _| ()),
        "is not supported, use one --fq-rate per test",
    ),
    refused(
        "--working-load-cca",
        Value(|_, _| ()),
        "is not supported, all streams use the algorithm of -Z",
    ),
    refused(
        "--jitter-histograms",
        MaybeValue(|_, _| ()),
        "is not supported, use --histograms for delays",
    ),
    refused("--udp-l4s", Switch(|_| ()), "is not supported"),
    refused("--udp-l4s-video", Switch(|_| ()), "is not supported"),
    refused(
        "--l2checks",
        Switch(|_| ()),
        "is not supported: frames are not checked below IP",
    ),
    refused(
        "--tap-dev",
        MaybeValue(|_, _| ()),
        "is not supported: data go through sockets only",
    ),
    refused(
        "--tun-dev",
        MaybeValue(|_, _| ()),
        "is not supported: data go through sockets only",
    ),
];

/// Variables of the environment in the order in which the original reads them, with the long option
/// whose default they hold.
pub(crate) const ENVIRONMENT: [(&str, &str); 33] = [
    ("IPERF_BANDWIDTH", "bandwidth"),
    ("IPERF_CLIENT", "client"),
    ("IPERF_DUALTEST", "dualtest"),
    ("IPERF_ENHANCEDREPORTS", "enhanced"),
    ("IPERF_FORMAT", "format"),
    ("IPERF_INTERVAL", "interval"),
    ("IPERF_LEN", "len"),
    ("IPERF_PRINT_MSS", "print_mss"),
    ("IPERF_NUM", "num"),
    ("IPERF_PORT", "port"),
    ("IPERF_TRADEOFF", "tradeoff"),
    ("IPERF_SERVER", "server"),
    ("IPERF_TIME", "time"),
    ("IPERF_UDP", "udp"),
    ("TCP_WINDOW_SIZE", "window"),
    ("IPERF_REPORTEXCLUDE", "reportexclude"),
    ("IPERF_REPORTSTYLE", "reportstyle"),
    ("IPERF_BIND", "bind"),
    ("IPERF_COMPAT", "compatibility"),
    ("IPERF_DAEMON", "daemon"),
    ("IPERF_FILE_INPUT", "file_input"),
    ("IPERF_STDIN_INPUT", "stdin_input"),
    ("IPERF_LISTENPORT", "listenport"),
    ("IPERF_MSS", "mss"),
    ("IPERF_NODELAY", "nodelay"),
    ("IPERF_PARALLEL", "parallel"),
    ("IPERF_TOS", "tos"),
    ("IPERF_TTL", "ttl"),
    ("IPERF_SINGLE_UDP", "single_udp"),
    ("IPERF_IPV6_DOMAIN", "ipv6_domain"),
    ("IPERF_SINGLECLIENT", "singleclient"),
    ("IPERF_PEER_DETECT", "peer-detect"),
    ("IPERF_CONGESTION_CONTROL", "tcp-congestion"),
];
