//! The options of the iperf3 dialect: one table for the parser, the help, the manual page and the
//! completions.

use std::os::unix::ffi::OsStrExt;

use linerate_model::Direction;
use linerate_model::command_line::getopt::Grammar;
use linerate_model::command_line::numbers::Base;
use linerate_model::command_line::table::{self, Effect, OptionGroup};
use linerate_model::command_line::values::{self, text};
use linerate_model::policy::FactsAccess;
use linerate_model::spec::{AddressFamily, Payload, SendPath, Transport};

use super::args::{Args, Outcome};
use super::dscp;
use super::effects::{self as fx, AMOUNT_MAX, DAY_S, bounded, positive};
use super::error::ParameterError;
use super::help::long_help;
use super::help::version_text;
use crate::wire::ErrorCode;

/// Roles that accept an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Client and server.
    Both,
    /// Clients; an error on a server.
    Client,
    /// Servers; an error on a client.
    Server,
    /// `-s` and `-c` themselves, which make the role.
    Chooses,
}

/// Section of an option in the help.
#[derive(PartialEq, Eq)]
pub(crate) enum Section {
    /// Client and server.
    Both,
    /// Server.
    Server,
    /// Client.
    Client,
    /// Additions to the original.
    Added,
}

/// One option, with the roles that accept it.
type OptionRow = table::OptionRow<Args, ParameterError, Section, Role>;

/// Name of the option that lifts the bound of `-P`.
pub(crate) const MANY_STREAMS: &str = "lr-many-streams";

/// The sections of the help in their order.
const SECTIONS: [(Section, &str); 4] = [
    (Both, "Server or Client"),
    (Server, "Server specific"),
    (Client, "Client specific"),
    (Added, "Added by linerate"),
];

/// The options in the order of the help.
pub fn option_groups() -> Vec<OptionGroup> {
    table::groups(OPTIONS, &SECTIONS)
}

/// The table in the form the parser reads; ids are positions in [`OPTIONS`].
pub(crate) fn grammar() -> Grammar<usize> {
    table::grammar(OPTIONS)
}

use Section::{Added, Both, Client, Server};
use table::Effect::{CheckedMaybe, CheckedSwitch, CheckedValue, MaybeValue, Switch, Value};

const fn row(
    usage: &'static str,
    section: Section,
    effect: Effect<Args, ParameterError>,
    help: &'static str,
) -> OptionRow {
    let role = match section {
        Both => Role::Both,
        Server => Role::Server,
        Client | Added => Role::Client,
    };
    OptionRow {
        usage,
        section,
        effect,
        help,
        extra: role,
    }
}

const fn role(role: Role, mut row: OptionRow) -> OptionRow {
    row.extra = role;
    row
}

/// Stores a value that was accepted.
fn set<T, E>(place: &mut T, value: Result<T, E>) -> Outcome
where
    ParameterError: From<E>,
{
    *place = value?;
    Ok(())
}

use ErrorCode as E;

/// Every option, in the order in which the original lists candidates for an ambiguous abbreviation.
pub(crate) static OPTIONS: &[OptionRow] = &[
    row(
        "-p, --port=N",
        Both,
        CheckedValue(fx::port),
        "Port the server listens on and the client connects to (default 5201). A client connects to \
         the first port of a range, 5201-5210, whose server is not busy.",
    ),
    row(
        "-f, --format=[kmgtKMGT]",
        Both,
        CheckedValue(fx::format),
        "Unit of rates in the report: kilo, mega, giga or tera, lower case for bits, upper case \
         for bytes (default: whatever fits).",
    ),
    row(
        "-i, --interval=SECONDS",
        Both,
        CheckedValue(|a, v| set(&mut a.local.interval, fx::interval(v))),
        "Time between two interval reports, 0.1 to 60, or 0 for none (default 1).",
    ),
    row(
        "-D, --daemon",
        Server,
        Switch(|a| a.process.daemon = true),
        "Detach from the terminal and serve in the background.",
    ),
    row(
        "-1, --one-off",
        Server,
        Switch(|a| a.server.one_off = true),
        "Serve one test, then leave.",
    ),
    row(
        "-V, --verbose",
        Both,
        Switch(|a| a.output.verbose = true),
        "Report more details.",
    ),
    row(
        "-J, --json",
        Both,
        Switch(|a| a.output.json = true),
        "Report the whole test as one JSON document when it has ended.",
    ),
    row(
        "--json-stream",
        Both,
        Switch(fx::json_stream),
        "Report each event as one line of JSON as soon as it happens.",
    ),
    row(
        "--json-stream-full-output",
        Both,
        Switch(|a| a.output.json_stream_full = true),
        "With --json-stream: write the document of --json as well, at the end.",
    ),
    row(
        "-v, --version",
        Both,
        Switch(|a| a.print = Some(version_text)),
        "Show the version and what this build can do, then leave.",
    ),
    role(
        Role::Chooses,
        row(
            "-s, --server",
            Server,
            CheckedSwitch(fx::server),
            "Be the server: wait for clients.",
        ),
    ),
    role(
        Role::Chooses,
        row(
            "-c, --client=HOST[%DEV]",
            Client,
            CheckedValue(fx::client),
            "Be the client: test the path to the server on HOST. %DEV does the same as --bind-dev \
             DEV.",
        ),
    ),
    row(
        "-u, --udp",
        Client,
        Switch(|a| a.test.transport = Transport::Udp),
        "Send UDP datagrams instead of a TCP stream.",
    ),
    row(
        "-b, --bitrate, --bandwidth=N[KMGT][/BURST]",
        Client,
        CheckedValue(fx::bitrate),
        "Limit each stream to N bit/s, 0 for no limit (default 1 Mbit/s for UDP, no limit \
         otherwise). With /BURST, send that many blocks back to back before the rate is \
         checked again, 1 to 1000.",
    ),
    row(
        "--server-bitrate-limit=N[KMGT][/SECONDS]",
        Server,
        CheckedValue(|a, v| set(&mut a.server.bitrate_limit, fx::bitrate_limit(v))),
        "End tests that move more than N bit/s, all streams and both directions together, on an \
         average over SECONDS (default: no limit, 5 seconds).",
    ),
    row(
        "--server-max-duration=SECONDS",
        Server,
        CheckedValue(|a, v| {
            set(
                &mut a.server.max_duration,
                bounded(v, 0, DAY_S, E::Duration).map(fx::seconds_or_none),
            )
        }),
        "Refuse tests that would take longer than this, and tests that name no duration (default \
         0, no limit).",
    ),
    row(
        "-t, --time=SECONDS",
        Client,
        CheckedValue(|a, v| {
            set(
                &mut a.end.duration_s,
                bounded(v, 0, DAY_S, E::Duration).map(Some),
            )
        }),
        "Test for this long, 0 until interrupted, at most 86400 (default 10).",
    ),
    row(
        "-n, --bytes=N[KMGT]",
        Client,
        CheckedValue(|a, v| set(&mut a.end.bytes, fx::whole(v, Base::Binary, AMOUNT_MAX))),
        "Test until this many bytes have been moved, instead of a duration.",
    ),
    row(
        "-k, --blockcount=N[KMGT]",
        Client,
        CheckedValue(|a, v| set(&mut a.end.blocks, fx::whole(v, Base::Binary, AMOUNT_MAX))),
        "Test until this many blocks or datagrams have been moved, instead of a duration.",
    ),
    row(
        "-l, --length=N[KMGT]",
        Client,
        CheckedValue(|a, v| set(&mut a.block_len_bytes, fx::size(v))),
        "Bytes per block or datagram (default 128K for TCP, 64K for SCTP, what fits one packet for \
         UDP).",
    ),
    row(
        "-P, --parallel=N",
        Client,
        CheckedValue(fx::parallel),
        "Run N streams at the same time, 1 to 128 (default 1).",
    ),
    row(
        "-R, --reverse",
        Client,
        CheckedSwitch(|a| fx::direction(a, Direction::Reverse)),
        "Let the server send and the client receive.",
    ),
    row(
        "--bidir",
        Client,
        CheckedSwitch(|a| fx::direction(a, Direction::Bidirectional)),
        "Send in both directions at the same time, on separate streams.",
    ),
    row(
        "-w, --window=N[KMGT]",
        Client,
        CheckedValue(|a, v| set(&mut a.test.socket.window_bytes, fx::window_bytes(v))),
        "Size of the socket buffers on both ends in bytes; it bounds the TCP window (default: left \
         to the kernel).",
    ),
    row(
        "-B, --bind=HOST[%DEV]",
        Both,
        Value(fx::bind),
        "Use this local address. %DEV does the same as --bind-dev DEV.",
    ),
    row(
        "--bind-dev=DEV",
        Both,
        Value(|a, v| a.local.bind.device = Some(text(v))),
        "Use only this network device; may need privileges.",
    ),
    row(
        "--cport=PORT",
        Both,
        CheckedValue(|a, v| set(&mut a.local.bind.client_port, fx::port_number(v).map(Some))),
        "Local port of the first data stream; further streams take the following ports (default: \
         any free port).",
    ),
    row(
        "-M, --set-mss=N",
        Client,
        CheckedValue(|a, v| {
            set(
                &mut a.test.socket.mss_bytes,
                bounded(v, 0, fx::MSS_MAX, E::Mss).map(positive),
            )
        }),
        "Largest TCP segment in bytes, normally the MTU less 40.",
    ),
    row(
        "-N, --no-delay",
        Client,
        Switch(|a| a.test.socket.no_delay = true),
        "Switch Nagle's algorithm off: small writes are sent at once.",
    ),
    row(
        "-4, --version4",
        Both,
        Switch(|a| a.local.bind.family = Some(AddressFamily::V4)),
        "Use IPv4 only.",
    ),
    row(
        "-6, --version6",
        Both,
        Switch(|a| a.local.bind.family = Some(AddressFamily::V6)),
        "Use IPv6 only.",
    ),
    row(
        "-S, --tos=N",
        Client,
        CheckedValue(|a, v| set(&mut a.test.socket.tos, fx::tos(v))),
        "Value of the IP type-of-service byte, 0 to 255; decimal, octal with a leading 0 or \
         hexadecimal with 0x.",
    ),
    row(
        "--dscp=N|NAME",
        Client,
        CheckedValue(|a, v| {
            set(
                &mut a.test.socket.tos,
                dscp::tos_of(v.as_bytes()).ok_or(E::BadDscp),
            )
        }),
        "Differentiated services code point, 0 to 63 or a name such as ef, cs5 or af41.",
    ),
    row(
        "--extra-data=TEXT",
        Client,
        Value(|a, v| a.test.extra_data = Some(text(v))),
        "Text that is copied into the JSON reports of both ends.",
    ),
    row(
        "-L, --flowlabel=N",
        Client,
        CheckedValue(|a, v| set(&mut a.test.socket.flow_label, fx::flow_label(v))),
        "IPv6 flow label, 1 to 0xFFFFF.",
    ),
    row(
        "-Z, --zerocopy",
        Client,
        Switch(|a| a.test.send_path = SendPath::SendFile),
        "Send without copying the data into the kernel; costs less CPU time.",
    ),
    row(
        "--skip-rx-copy",
        Client,
        Switch(|a| a.test.skip_rx_copy = true),
        "Let receivers drop the data inside the kernel instead of copying it out; costs less CPU \
         time.",
    ),
    row(
        "-O, --omit=SECONDS",
        Client,
        CheckedValue(|a, v| {
            set(
                &mut a.test.omit,
                bounded(v, 0, fx::OMIT_S_MAX, E::Omit).map(fx::seconds),
            )
        }),
        "Warm up for this long before counting begins, at most 600 (default 0).",
    ),
    row(
        "-F, --file=FILE",
        Both,
        Value(|a, v| a.local.file = Some(v.into())),
        "Send the contents of FILE, or store what is received in it.",
    ),
    row(
        "--repeating-payload",
        Client,
        Switch(|a| a.test.payload = Payload::Repeating),
        "Send a repeating pattern instead of random bytes.",
    ),
    row(
        "--timestamps=FORMAT",
        Both,
        MaybeValue(fx::timestamps),
        "Begin every line with the local time, in the notation of strftime(3) (default '%c ').",
    ),
    row(
        "-A, --affinity=N[,M]",
        Both,
        CheckedValue(fx::affinity),
        "Run on CPU N; a client may ask the server to run this test on CPU M.",
    ),
    row(
        "-T, --title=TEXT",
        Client,
        Value(fx::title),
        "Begin every line with this text.",
    ),
    row(
        "-C, --congestion, --linux-congestion=NAME",
        Client,
        Value(|a, v| a.test.socket.congestion = Some(text(v))),
        "TCP congestion control algorithm (default: the kernel's).",
    ),
    row(
        "--sctp",
        Client,
        Switch(|a| a.test.transport = Transport::Sctp),
        "Use SCTP instead of TCP.",
    ),
    row(
        "--nstreams=N",
        Client,
        CheckedValue(|a, v| set(&mut a.test.socket.sctp_streams, fx::sctp_streams(v))),
        "Number of streams inside each SCTP association.",
    ),
    role(
        Role::Both,
        row(
            "-X, --xbind=ADDRESS",
            Client,
            Value(|a, v| a.test.socket.sctp_bind.push(text(v))),
            "Further local address of the SCTP association; may be repeated.",
        ),
    ),
    row(
        "-m, --mptcp",
        Both,
        Switch(|a| a.test.mptcp = true),
        "Use Multipath TCP.",
    ),
    row(
        "-I, --pidfile=FILE",
        Both,
        Value(|a, v| a.process.pidfile = Some(v.into())),
        "Keep the process id in FILE while running.",
    ),
    row(
        "--logfile=FILE",
        Both,
        Value(|a, v| a.output.logfile = Some(v.into())),
        "Append all output to FILE.",
    ),
    row(
        "--forceflush",
        Both,
        Switch(|a| a.output.forceflush = true),
        "Flush the output after every interval.",
    ),
    row(
        "--get-server-output",
        Client,
        Switch(|a| a.test.want_server_output = true),
        "Show the server's own report as well.",
    ),
    row(
        "--udp-counters-64bit",
        Client,
        Switch(|a| a.test.udp.counters_64bit = true),
        "Number UDP datagrams with 64 bits, for very long or very fast tests.",
    ),
    row(
        "--gsro",
        Client,
        Switch(|a| a.gsro = true),
        "Hand many UDP datagrams to the kernel at once (segmentation and receive offload).",
    ),
    row(
        "--no-fq-socket-pacing",
        Client,
        Switch(fx::no_fq_socket_pacing),
        "Outdated: same as --fq-rate 0.",
    ),
    row(
        "--dont-fragment",
        Client,
        Switch(|a| a.test.socket.dont_fragment = true),
        "Forbid fragmentation of IPv4 UDP datagrams.",
    ),
    row(
        "--username=NAME",
        Client,
        Value(|a, v| a.auth.username = Some(text(v))),
        "User name for a server that asks for one; the password comes from the environment \
         variable IPERF3_PASSWORD or is asked for.",
    ),
    row(
        "--rsa-public-key-path=FILE",
        Client,
        Value(|a, v| a.auth.public_key_path = Some(v.into())),
        "The server's RSA public key in PEM form; user name and password are encrypted with it.",
    ),
    row(
        "--rsa-private-key-path=FILE",
        Server,
        Value(|a, v| a.auth.private_key_path = Some(v.into())),
        "RSA private key in PEM form, without a passphrase; asks clients for user name and \
         password.",
    ),
    row(
        "--authorized-users-path=FILE",
        Server,
        Value(|a, v| a.auth.users_path = Some(v.into())),
        "File of the users that may test, one line user,hash each.",
    ),
    row(
        "--time-skew-threshold=SECONDS",
        Server,
        CheckedValue(|a, v| {
            set(
                &mut a.auth.max_skew_s,
                bounded(v, 1, i32::MAX, E::SkewThreshold).map(Some),
            )
        }),
        "Largest difference between the clocks of client and server during a login (default 10).",
    ),
    role(
        Role::Both,
        row(
            "--use-pkcs1-padding",
            Server,
            Switch(|a| a.auth.pkcs1_padding = true),
            "Use the padding of logins before version 3.17, which is less safe; also understood by \
             clients that log in.",
        ),
    ),
    row(
        "--fq-rate=N[KMGT]",
        Client,
        CheckedValue(|a, v| {
            set(
                &mut a.test.pacing.fq_rate_bps,
                fx::whole(v, Base::Decimal, AMOUNT_MAX).map(positive),
            )
        }),
        "Let the kernel pace each stream at N bit/s (default 0, no pacing).",
    ),
    row(
        "--pacing-timer=N[KMGT]",
        Client,
        CheckedValue(|a, v| set(&mut a.test.pacing.timer_us, fx::whole_u32(v))),
        "Outdated: time in microseconds between two rate checks of old servers (default 1000).",
    ),
    row(
        "--connect-timeout=MS",
        Client,
        CheckedValue(|a, v| set(&mut a.connect_timeout, fx::connect_timeout(v))),
        "Give up connecting to the server after this many milliseconds (default: the kernel's \
         limit).",
    ),
    row(
        "--idle-timeout=SECONDS",
        Server,
        CheckedValue(|a, v| {
            set(
                &mut a.server.idle_timeout,
                bounded(v, 1, DAY_S, E::IdleTimeout).map(fx::seconds_or_none),
            )
        }),
        "Reopen the listening socket after this time without a client; with --one-off, leave \
         instead (default: never).",
    ),
    row(
        "--rcv-timeout=MS",
        Both,
        CheckedValue(fx::rcv_timeout),
        "Give up when nothing is received for this many milliseconds, 100 to 86400000 (default \
         120000).",
    ),
    row(
        "--snd-timeout=MS",
        Both,
        CheckedValue(|a, v| {
            set(
                &mut a.local.snd_timeout,
                bounded(v, 0, DAY_S * 1000, E::SndTimeout).map(|ms| positive(ms).map(fx::millis)),
            )
        }),
        "Give up when sent TCP data stays unacknowledged for this many milliseconds (default: the \
         kernel's limit).",
    ),
    row(
        "--cntl-ka=IDLE/INTERVAL/COUNT",
        Both,
        CheckedMaybe(|a, v| {
            set(
                &mut a.local.control_keepalive,
                fx::control_keepalive(v).map(Some),
            )
        }),
        "Keep the control connection alive: probe after IDLE seconds, every INTERVAL seconds, \
         COUNT times. Empty parts are left to the kernel.",
    ),
    row(
        "-d, --debug=LEVEL",
        Both,
        MaybeValue(fx::debug),
        "Report what happens inside, 1 for little to 4 for everything (default 4).",
    ),
    row(
        "-h, --help",
        Both,
        Switch(|a| a.print = Some(|| long_help(&option_groups()))),
        "Show this text, then leave.",
    ),
    row(
        "--lr-many-streams",
        Added,
        Switch(|_| ()),
        "Let --parallel go up to 16384; the server must be linerate too.",
    ),
    role(
        Role::Both,
        row(
            "--lr-report",
            Added,
            Switch(|_| ()),
            "Report what the original does not: end.linerate in JSON, and more lines with \
             --verbose. Every option that begins with --lr- does so as well.",
        ),
    ),
    row(
        "--lr-path=auto|copy|sendfile|zerocopy",
        Added,
        CheckedValue(|a, v| set(&mut a.test.send_path, fx::send_path(v))),
        "How senders hand their bytes to the kernel: by copying them (default), as pages of a \
         file, or with zero copy (MSG_ZEROCOPY), which pays on network devices. A server \
         that is not linerate knows only the first two.",
    ),
    role(
        Role::Both,
        row(
            "--lr-io=auto|BLOCKS/PAUSE_US|BLOCKS/spin",
            Added,
            CheckedValue(|a, v| set(&mut a.local.io_strategy, fx::io_strategy(v))),
            "How this end writes and reads byte streams where no other option fixes it: the blocks \
             of a send call, and the microseconds between two reads of an emptied \
             queue, or polls without sleep. By default short trials during the test \
             choose; 1/0 is what the original does.",
        ),
    ),
    row(
        "--lr-coalesce",
        Added,
        Switch(|a| a.test.coalesce = true),
        "Let blocks of --length share a write. Small blocks become much faster; what is measured \
         is no longer the cost of small writes.",
    ),
    row(
        "--lr-udp-check=all|burst",
        Added,
        CheckedValue(|a, v| set(&mut a.test.udp.check, fx::udp_check(v))),
        "Read the number of every UDP datagram (default), or only the first of those the kernel \
         joined into a burst: loss stays exact, order inside a burst is not checked.",
    ),
    row(
        "--lr-doctor",
        Added,
        CheckedSwitch(fx::doctor),
        "Watch this host, and the server's if it is linerate, during the test, and say after the \
         report what held it back. UDP receivers then take one datagram at a time, so that \
         the kernel's counters count datagrams.",
    ),
    row(
        "--lr-flame=FILE",
        Added,
        CheckedValue(fx::flame),
        "As --lr-doctor, and draw what the CPUs of this host did during the test as a flame graph \
         (SVG). It needs root, or CAP_PERFMON.",
    ),
    row(
        "--lr-expect=LIMITS",
        Added,
        CheckedValue(fx::expect),
        "Limits of the result, for example rx>=900M,retr<10,rtt<5ms,loss<=0.1%. Each one that is \
         missed is a line on the standard error, and the exit code is then 5.",
    ),
    role(
        Role::Both,
        row(
            "--lr-record=KEY=VALUE[,...]",
            Added,
            CheckedMaybe(fx::record),
            "Keep this run, or every test of a server, in the history, with these labels; the \
             report stays as it is. The history is the file that LINERATE_STORE names, \
             or $XDG_STATE_HOME/linerate/history.db.",
        ),
    ),
    row(
        "--lr-tui",
        Added,
        Switch(|a| a.process.tui = true),
        "Show the test while it runs on the terminal of the standard error; the report is printed \
         at the end and stays as it is.",
    ),
    role(
        Role::Server,
        row(
            "--lr-admit=parallel[:N]|queue[:N[/SECONDS]]|exclusive",
            Added,
            CheckedValue(|a, v| set(&mut a.server.policy.admission, values::admission(&text(v)))),
            "What happens to a client that comes while tests run: its test runs beside the others, \
             at most N at once (default, 1000); it waits until fewer than N run (1), \
             but not longer than SECONDS (25); or it is refused as the server is busy, \
             as by the original. With --one-off always the last.",
        ),
    ),
    role(
        Role::Server,
        row(
            "--lr-liveness=SECONDS",
            Added,
            CheckedValue(fx::liveness),
            "End a test whose client shows no sign of life for this long (default: 10 while \
             another client waits for its place, else 120; at least the time of \
             --rcv-timeout).",
        ),
    ),
    role(
        Role::Server,
        row(
            "--lr-allow=CIDR|@FILE",
            Added,
            CheckedValue(|a, v| fx::access(v, &mut a.server.policy.access.allow)),
            "Serve these addresses only; may be repeated. A file holds one range per line.",
        ),
    ),
    role(
        Role::Server,
        row(
            "--lr-deny=CIDR|@FILE",
            Added,
            CheckedValue(|a, v| fx::access(v, &mut a.server.policy.access.deny)),
            "Do not serve these addresses, even if allowed; may be repeated.",
        ),
    ),
    role(
        Role::Server,
        row(
            "--lr-limit=SCOPE:KEY=N[,...]",
            Added,
            CheckedValue(fx::limit),
            "Limit what the whole server, one client address or one user may use; SCOPE is server, \
             address or user. Keys: tests (at once), streams, duration (seconds) and \
             bytes of one test, rate (bit/s, all tests together). May be repeated \
             (default: a tenth of the places for an address, at least 8).",
        ),
    ),
    role(
        Role::Server,
        row(
            "--lr-allow-split-address",
            Added,
            Switch(|a| a.server.policy.allow_split_address = true),
            "Let UDP streams come from another address than their control connection.",
        ),
    ),
    role(
        Role::Server,
        row(
            "--lr-accept-both-paddings",
            Added,
            Switch(|a| a.auth.both_paddings = true),
            "Accept logins with either padding while clients before version 3.17 are replaced.",
        ),
    ),
    role(
        Role::Server,
        row(
            "--lr-metrics=ADDRESS:PORT",
            Added,
            CheckedValue(|a, v| set(&mut a.process.metrics, fx::metrics(v).map(Some))),
            "Serve the server's metrics for Prometheus at http://ADDRESS:PORT/metrics.",
        ),
    ),
    role(
        Role::Server,
        row(
            "--lr-facts=trusted|all|none",
            Added,
            CheckedValue(|a, v| set(&mut a.server.policy.facts, values::facts(&text(v)))),
            "Clients with --lr-doctor that get facts about this host (its interfaces, settings and \
             counters): those that have logged in, and all if --lr-allow is given \
             (trusted, default); every client; or none.",
        ),
    ),
    role(
        Role::Server,
        row(
            "--lr-no-facts",
            Added,
            Switch(|a| a.server.policy.facts = FactsAccess::None),
            "The same as --lr-facts none.",
        ),
    ),
];
