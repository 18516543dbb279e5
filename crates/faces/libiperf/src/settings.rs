//! Values that the functions of the interface set, unchanged. Values are checked when a test runs.

use std::ffi::{c_char, c_int};

use linerate::command_line::iperf3::OutputOptions;
use linerate_boundary::Kept;
use linerate_model::spec::{ClientSpec, Credentials, ServerAuth, ServerSpec};

/// `SOCK_STREAM`: TCP.
pub(crate) const TCP: c_int = 1;
/// `SOCK_DGRAM`: UDP.
pub(crate) const UDP: c_int = 2;
/// SCTP, a number of the interface.
pub(crate) const SCTP: c_int = 12;

/// Everything a program can set about a test, in the types of the interface.
#[derive(Clone, Default)]
pub(crate) struct Settings {
    /// `c`, `s` or NUL.
    pub role: c_char,
    /// The server's name or address.
    pub host: Kept,
    pub port: c_int,
    pub bind_address: Kept,
    pub bind_device: Kept,
    pub bind_port: c_int,
    pub protocol: c_int,
    pub reverse: c_int,
    pub bidirectional: c_int,
    pub streams: c_int,
    pub duration_s: c_int,
    pub omit_s: c_int,
    pub bytes: u64,
    pub blocks: u64,
    pub block_len_bytes: c_int,
    /// The length was set and is no default.
    pub is_block_len_set: bool,
    pub rate_bps: u64,
    pub fq_rate_bps: u64,
    pub burst: c_int,
    pub pacing_timer_us: c_int,
    pub socket_buffer_bytes: c_int,
    pub mss_bytes: c_int,
    pub tos: c_int,
    pub no_delay: c_int,
    pub dont_fragment: c_int,
    pub congestion: Kept,
    pub zerocopy: c_int,
    pub repeating_payload: c_int,
    pub udp_counters_64bit: c_int,
    pub extra_data: Kept,
    pub get_server_output: c_int,
    /// -1 for the system's limit.
    pub connect_timeout_ms: c_int,
    pub one_off: c_int,
    pub idle_timeout_s: c_int,
    pub verbose: c_int,
    pub json: c_int,
    pub reporter_interval_s: f64,
    pub stats_interval_s: f64,
    pub unit_format: c_char,
    pub timestamps: c_int,
    pub timestamp_format: Kept,
    pub logfile: Kept,
    /// A name of temporary files, which this library does not need.
    pub template: Kept,
    pub login: Login,
    /// Values that `iperf_parse_arguments` read and that have no function of their own.
    pub parsed: Parsed,
}

/// Names, passwords and keys; keys as base64 of their PEM text.
#[derive(Clone, Default)]
pub(crate) struct Login {
    pub username: Kept,
    pub password: Kept,
    pub public_key: Kept,
    pub private_key: Kept,
    pub users_file: Kept,
    pub skew_s: c_int,
}

/// Specifications of a command line, to which the other settings are applied.
#[derive(Clone, Default)]
pub(crate) struct Parsed {
    pub client: ClientSpec,
    pub server: ServerSpec,
    pub output: OutputOptions,
    pub credentials: Option<Credentials>,
    pub auth: Option<ServerAuth>,
}

impl Settings {
    /// The values of a new test.
    pub(crate) fn defaults() -> Self {
        Self {
            port: 5201,
            protocol: TCP,
            streams: 1,
            duration_s: 10,
            block_len_bytes: 128 * 1024,
            // Microseconds, the default of `--pacing-timer`.
            pacing_timer_us: 1000,
            connect_timeout_ms: -1,
            reporter_interval_s: 1.0,
            stats_interval_s: 1.0,
            unit_format: b'a' as c_char,
            login: Login {
                skew_s: 10,
                ..Login::default()
            },
            ..Self::default()
        }
    }

    /// Defaults for what a client decides about a test; addresses, output and logins stay, as after
    /// a test of the original.
    pub(crate) fn reset(&mut self) {
        let old = std::mem::take(self);
        *self = Self {
            // iperf_reset_test of the original leaves a test as a server.
            role: b's' as c_char,
            host: old.host,
            port: old.port,
            bind_address: old.bind_address,
            bind_device: old.bind_device,
            bytes: old.bytes,
            blocks: old.blocks,
            one_off: old.one_off,
            idle_timeout_s: old.idle_timeout_s,
            verbose: old.verbose,
            json: old.json,
            reporter_interval_s: old.reporter_interval_s,
            stats_interval_s: old.stats_interval_s,
            unit_format: old.unit_format,
            timestamps: old.timestamps,
            timestamp_format: old.timestamp_format,
            logfile: old.logfile,
            template: old.template,
            login: old.login,
            connect_timeout_ms: old.connect_timeout_ms,
            parsed: old.parsed,
            ..Self::defaults()
        };
    }
}
