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
    pub(crate) role: c_char,
    /// The server's name or address.
    pub(crate) host: Kept,
    pub(crate) port: c_int,
    pub(crate) bind_address: Kept,
    pub(crate) bind_device: Kept,
    pub(crate) bind_port: c_int,
    pub(crate) protocol: c_int,
    pub(crate) reverse: c_int,
    pub(crate) bidirectional: c_int,
    pub(crate) streams: c_int,
    pub(crate) duration_s: c_int,
    pub(crate) omit_s: c_int,
    pub(crate) bytes: u64,
    pub(crate) blocks: u64,
    pub(crate) block_len_bytes: c_int,
    /// The length was set and is no default.
    pub(crate) is_block_len_set: bool,
    pub(crate) rate_bps: u64,
    pub(crate) fq_rate_bps: u64,
    pub(crate) burst: c_int,
    pub(crate) pacing_timer_us: c_int,
    pub(crate) socket_buffer_bytes: c_int,
    pub(crate) mss_bytes: c_int,
    pub(crate) tos: c_int,
    pub(crate) no_delay: c_int,
    pub(crate) dont_fragment: c_int,
    pub(crate) congestion: Kept,
    pub(crate) zerocopy: c_int,
    pub(crate) repeating_payload: c_int,
    pub(crate) udp_counters_64bit: c_int,
    pub(crate) extra_data: Kept,
    pub(crate) get_server_output: c_int,
    /// -1 for the system's limit.
    pub(crate) connect_timeout_ms: c_int,
    pub(crate) one_off: c_int,
    pub(crate) idle_timeout_s: c_int,
    pub(crate) verbose: c_int,
    pub(crate) json: c_int,
    pub(crate) reporter_interval_s: f64,
    pub(crate) stats_interval_s: f64,
    pub(crate) unit_format: c_char,
    pub(crate) timestamps: c_int,
    pub(crate) timestamp_format: Kept,
    pub(crate) logfile: Kept,
    /// A name of temporary files, which this library does not need.
    pub(crate) template: Kept,
    pub(crate) login: Login,
    /// Values that `iperf_parse_arguments` read and that have no function of their own.
    pub(crate) parsed: Parsed,
}

/// Names, passwords and keys; keys as base64 of their PEM text.
#[derive(Clone, Default)]
pub(crate) struct Login {
    pub(crate) username: Kept,
    pub(crate) password: Kept,
    pub(crate) public_key: Kept,
    pub(crate) private_key: Kept,
    pub(crate) users_file: Kept,
    pub(crate) skew_s: c_int,
}

/// Specifications of a command line, to which the other settings are applied.
#[derive(Clone, Default)]
pub(crate) struct Parsed {
    pub(crate) client: ClientSpec,
    pub(crate) server: ServerSpec,
    pub(crate) output: OutputOptions,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) auth: Option<ServerAuth>,
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
