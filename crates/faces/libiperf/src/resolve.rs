//! From what was set to what is to be done, with the bounds of iperf3's command line, and back from
//! a command line.

use std::ffi::{c_char, c_int};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use linerate::command_line::iperf3::{Command, OutputOptions};
use linerate::command_line::values::split_device;
use linerate_boundary::Kept;
use linerate_iperf3::wire::ErrorCode;
use linerate_model::spec::{
    AcceptedPadding, ClientSpec, Credentials, LocalOptions, Pacing, Payload, SendPath, ServerAuth,
    ServerSpec, SocketTuning, TestSpec,
};
use linerate_model::units::UnitFormat;
use linerate_model::{Direction, EndCondition, Transport};

use crate::settings::{Parsed, SCTP, Settings, TCP, UDP};

const DAY_S: c_int = 86_400;
/// Largest block of a stream transport.
const BLOCK_LEN: RangeInclusive<c_int> = 1..=1_048_576;
/// Sizes of a UDP datagram: room for the header, and what IPv4 can carry.
const DATAGRAM_LEN: RangeInclusive<c_int> = 16..=65_507;
/// Amounts beyond this do not fit the signed numbers of the protocol.
const AMOUNT_MAX: u64 = i64::MAX as u64;

type Result<T> = std::result::Result<T, ErrorCode>;

impl Settings {
    /// The test of a client.
    ///
    /// # Errors
    /// The first value that is out of its bounds.
    pub(crate) fn client(&self) -> Result<ClientSpec> {
        let (host, device) = address_and_device(&self.host);
        let mut local = self.local(&self.parsed.client.local)?;
        local.bind.device = device.or(local.bind.device);

        let mut spec = self.parsed.client.clone();
        // The loopback interface, as getaddrinfo(3) without a name has it.
        spec.host = host.unwrap_or_else(|| "localhost".to_owned());
        spec.local = local;
        // The port of a setter replaces a range.
        spec.ports = None;
        spec.test = self.test()?;
        // A negative number does not convert, and leaves the limit to the system.
        spec.connect_timeout = u64::try_from(self.connect_timeout_ms)
            .ok()
            .map(Duration::from_millis);
        spec.credentials = self.credentials()?;

        Ok(spec)
    }

    /// A server for one test.
    ///
    /// # Errors
    /// The first value that is out of its bounds.
    pub(crate) fn server(&self) -> Result<ServerSpec> {
        let idle_s = bounded(self.idle_timeout_s, 0..=DAY_S, ErrorCode::IdleTimeout)?;
        let mut spec = self.parsed.server.clone();
        spec.local = self.local(&self.parsed.server.local)?;
        // iperf_run_server of iperf_api.h serves one test; callers repeat it.
        spec.one_off = true;
        spec.idle_timeout = (idle_s > 0).then(|| seconds(idle_s));
        spec.auth = self.auth()?;
        Ok(spec)
    }

    /// Format of the reports.
    pub(crate) fn output(&self) -> OutputOptions {
        let format = self.timestamp_format.get().unwrap_or("%c ").to_owned();
        let parsed = self.parsed.output.clone();
        let unit = match letter(self.unit_format) {
            // `a` is the value of a test without this setting, so the parsed format stays.
            'a' => parsed.format,
            letter => UnitFormat::from_letter(letter).unwrap_or_default(),
        };
        let mut output = parsed;
        output.json = self.json != 0;
        output.verbose = self.verbose != 0;
        output.format = unit;
        output.timestamps = (self.timestamps != 0).then_some(format);
        output.logfile = self.logfile.get().map(PathBuf::from);

        output
    }

    fn local(&self, parsed: &LocalOptions) -> Result<LocalOptions> {
        let interval_s = self.reporter_interval_s;
        // An interval of 0 is no interval; other values have the bounds of `-i`.
        if interval_s != 0.0 && !(0.1..=60.0).contains(&interval_s) {
            return Err(ErrorCode::Interval);
        }

        let mut local = parsed.clone();
        local.port = port(self.port)?;
        let (host, device) = address_and_device(&self.bind_address);
        local.bind.host = host.filter(|host| !host.is_empty());
        local.bind.device = device.or_else(|| self.bind_device.get().map(str::to_owned));
        local.bind.client_port = (self.bind_port != 0)
            .then(|| port(self.bind_port))
            .transpose()?;
        local.interval = (interval_s != 0.0).then(|| Duration::from_secs_f64(interval_s));

        Ok(local)
    }

    fn test(&self) -> Result<TestSpec> {
        let transport = match self.protocol {
            TCP => Transport::Tcp,
            UDP => Transport::Udp,
            SCTP => Transport::Sctp,
            _ => return Err(ErrorCode::Protocol),
        };
        let mut test = self.parsed.client.test.clone();
        test.transport = transport;
        test.direction = self.direction()?;
        test.streams = bounded(self.streams, 1..=128, ErrorCode::NumStreams)?;
        test.end = self.end()?;
        test.omit = seconds(bounded(self.omit_s, 0..=600, ErrorCode::Omit)?);
        // A length of 0 is the default of the transport.
        test.block_len_explicit = self.is_block_len_set && self.block_len_bytes != 0;
        test.block_len_bytes = self.block_len(transport)?;
        test.pacing = self.pacing()?;
        test.socket = self.socket(test.socket)?;
        test.payload = if self.repeating_payload == 0 {
            Payload::Random
        } else {
            Payload::Repeating
        };

        if self.zerocopy != 0 {
            test.send_path = SendPath::SendFile;
        }

        test.udp.counters_64bit = self.udp_counters_64bit != 0;
        test.extra_data = self.extra_data.get().map(str::to_owned);
        test.want_server_output = self.get_server_output != 0;
        Ok(test)
    }

    fn direction(&self) -> Result<Direction> {
        match (self.reverse != 0, self.bidirectional != 0) {
            (false, false) => Ok(Direction::Forward),
            (true, false) => Ok(Direction::Reverse),
            (false, true) => Ok(Direction::Bidirectional),
            (true, true) => Err(ErrorCode::ReverseBidir),
        }
    }

    /// An amount takes the place of the duration, which has a default.
    fn end(&self) -> Result<EndCondition> {
        let duration_s = bounded(self.duration_s, 0..=DAY_S, ErrorCode::Duration)?;
        match (self.bytes.min(AMOUNT_MAX), self.blocks.min(AMOUNT_MAX)) {
            // As `-t 0` of iperf3: the test has no end.
            (0, 0) if duration_s == 0 => Ok(EndCondition::Unlimited),
            (0, 0) => Ok(EndCondition::Duration(seconds(duration_s))),
            (bytes, 0) => Ok(EndCondition::Bytes(bytes)),
            (0, blocks) => Ok(EndCondition::Blocks(blocks)),
            _ => Err(ErrorCode::EndConditions),
        }
    }

    /// Unless it was set, the length of UDP follows from the path: the default is no datagram.
    fn block_len(&self, transport: Transport) -> Result<u32> {
        match (
            transport,
            self.is_block_len_set && self.block_len_bytes != 0,
        ) {
            (Transport::Udp, true) => {
                bounded(self.block_len_bytes, DATAGRAM_LEN, ErrorCode::UdpBlockSize)
            }
            // The engine takes the segment size of the path, as iperf3 does without `-l`.
            (Transport::Udp, false) => Ok(0),
            (_, true) => bounded(self.block_len_bytes, BLOCK_LEN, ErrorCode::BlockSize),
            (Transport::Tcp, false) => Ok(128 * 1024),
            (Transport::Sctp, false) => Ok(64 * 1024),
        }
    }

    fn pacing(&self) -> Result<Pacing> {
        let burst = bounded(self.burst, 0..=1000, ErrorCode::Burst)?;
        let pacing = Pacing {
            rate_bps: (self.rate_bps > 0).then_some(self.rate_bps.min(AMOUNT_MAX)),
            burst_blocks: (burst > 0).then_some(burst),
            fq_rate_bps: (self.fq_rate_bps > 0).then_some(self.fq_rate_bps.min(AMOUNT_MAX)),
            timer_us: u32::try_from(self.pacing_timer_us).unwrap_or(0),
        };
        Ok(pacing)
    }

    fn socket(&self, parsed: SocketTuning) -> Result<SocketTuning> {
        let buffer_bytes = bounded(self.socket_buffer_bytes, 0..=512 << 20, ErrorCode::BufSize)?;
        let mss_bytes = bounded(self.mss_bytes, 0..=32_767, ErrorCode::Mss)?;
        let mut socket = parsed;
        socket.window_bytes = (buffer_bytes > 0).then_some(buffer_bytes);
        socket.mss_bytes = (mss_bytes > 0).then_some(mss_bytes);
        socket.no_delay = self.no_delay != 0;
        socket.congestion = self.congestion.get().map(str::to_owned);
        // The field is an `int` in C, the byte of IP has eight bits (RFC 2474, section 3).
        socket.tos = u8::try_from(self.tos).map_err(|_| ErrorCode::BadTos)?;
        socket.dont_fragment = self.dont_fragment != 0;

        Ok(socket)
    }

    fn credentials(&self) -> Result<Option<Credentials>> {
        let login = &self.login;
        match (
            login.username.get(),
            login.password.get(),
            login.public_key.get(),
        ) {
            (None, None, None) => Ok(self.parsed.credentials.clone()),
            (Some(username), Some(password), Some(key)) => {
                let key = pem(key).ok_or(ErrorCode::SetClientAuth)?;
                Ok(Some(Credentials::new(username, password, key)))
            }
            _ => Err(ErrorCode::SetClientAuth),
        }
    }

    fn auth(&self) -> Result<Option<ServerAuth>> {
        let login = &self.login;
        match (login.private_key.get(), login.users_file.get()) {
            (None, None) => Ok(self.parsed.auth.clone()),
            (Some(key), Some(users_file)) => {
                let mut auth =
                    ServerAuth::new(pem(key).ok_or(ErrorCode::SetServerAuth)?, users_file);
                auth.max_skew = seconds(bounded(
                    login.skew_s,
                    1..=c_int::MAX,
                    ErrorCode::SkewThreshold,
                )?);
                // The interface has no function for the padding, so both are accepted.
                auth.padding = AcceptedPadding::Both;
                Ok(Some(auth))
            }
            _ => Err(ErrorCode::SetServerAuth),
        }
    }

    /// Takes over a command line.
    pub(crate) fn take_command(&mut self, command: Command) {
        match command {
            Command::Client { spec, output, .. } => self.take_client(*spec, output),
            Command::Server { spec, output, .. } => {
                self.role = b's' as c_char;
                self.one_off = spec.one_off.into();
                self.idle_timeout_s = spec.idle_timeout.map_or(0, whole_seconds);
                self.take_local(&spec.local);
                self.take_output(&output);

                let auth = spec.auth.clone();
                self.parsed = Parsed {
                    server: *spec,
                    output,
                    auth,
                    ..Parsed::default()
                };
            }
        }
    }

    fn take_client(&mut self, spec: ClientSpec, output: OutputOptions) {
        let test = &spec.test;
        self.role = b'c' as c_char;
        self.host.set(Some(&spec.host));
        self.protocol = match test.transport {
            Transport::Tcp => TCP,
            Transport::Udp => UDP,
            Transport::Sctp => SCTP,
        };
        self.reverse = (test.direction == Direction::Reverse).into();
        self.bidirectional = (test.direction == Direction::Bidirectional).into();
        self.streams = number(test.streams);
        let (time, bytes, blocks) = test.end.amounts();
        self.duration_s = whole_seconds(time);
        self.bytes = bytes;
        self.blocks = blocks;
        self.omit_s = whole_seconds(test.omit);
        self.is_block_len_set = test.block_len_explicit;
        self.block_len_bytes = number(test.block_len_bytes);
        self.rate_bps = test.pacing.rate_bps.unwrap_or(0);
        self.fq_rate_bps = test.pacing.fq_rate_bps.unwrap_or(0);
        self.burst = number(test.pacing.burst_blocks.unwrap_or(0));
        self.pacing_timer_us = number(test.pacing.timer_us);
        self.socket_buffer_bytes = number(test.socket.window_bytes.unwrap_or(0));
        self.mss_bytes = number(test.socket.mss_bytes.unwrap_or(0));
        self.tos = test.socket.tos.into();
        self.no_delay = test.socket.no_delay.into();
        self.dont_fragment = test.socket.dont_fragment.into();
        self.congestion.set(test.socket.congestion.as_deref());
        self.zerocopy = (test.send_path == SendPath::SendFile).into();
        self.repeating_payload = (test.payload == Payload::Repeating).into();
        self.udp_counters_64bit = test.udp.counters_64bit.into();
        self.extra_data.set(test.extra_data.as_deref());
        self.get_server_output = test.want_server_output.into();
        self.connect_timeout_ms = spec.connect_timeout.map_or(-1, |time| {
            c_int::try_from(time.as_millis()).unwrap_or(c_int::MAX)
        });
        self.take_local(&spec.local);
        self.take_output(&output);

        let credentials = spec.credentials.clone();
        self.parsed = Parsed {
            client: spec,
            output,
            credentials,
            ..Parsed::default()
        };
    }

    fn take_local(&mut self, local: &LocalOptions) {
        self.port = local.port.into();
        self.bind_address.set(local.bind.host.as_deref());
        self.bind_device.set(local.bind.device.as_deref());
        self.bind_port = local.bind.client_port.unwrap_or(0).into();
        self.reporter_interval_s = local.interval.map_or(0.0, |time| time.as_secs_f64());
        self.stats_interval_s = self.reporter_interval_s;
    }

    fn take_output(&mut self, output: &OutputOptions) {
        self.json = output.json.into();
        self.verbose = output.verbose.into();
        self.timestamps = output.timestamps.is_some().into();
        self.timestamp_format.set(output.timestamps.as_deref());
        self.logfile
            .set(output.logfile.as_deref().and_then(|path| path.to_str()));
    }
}

/// The PEM text of a key, if it is one.
fn pem(base64: &str) -> Option<String> {
    let text = String::from_utf8(BASE64.decode(base64).ok()?).ok()?;
    text.contains("-----BEGIN ").then_some(text)
}

fn port(number: c_int) -> Result<u16> {
    u16::try_from(number)
        .ok()
        .filter(|port| *port != 0)
        .ok_or(ErrorCode::BadPort)
}

fn bounded(value: c_int, bounds: RangeInclusive<c_int>, code: ErrorCode) -> Result<u32> {
    if bounds.contains(&value) {
        u32::try_from(value).map_err(|_| code)
    } else {
        Err(code)
    }
}

fn seconds(number: u32) -> Duration {
    Duration::from_secs(number.into())
}

fn whole_seconds(time: Duration) -> c_int {
    c_int::try_from(time.as_secs()).unwrap_or(c_int::MAX)
}

fn number(value: u32) -> c_int {
    c_int::try_from(value).unwrap_or(c_int::MAX)
}

fn letter(character: c_char) -> char {
    // `c_char` is signed on some platforms; the byte is the same.
    char::from(character.to_ne_bytes()[0])
}

/// The address and the device of `address%device`.
fn address_and_device(text: &Kept) -> (Option<String>, Option<String>) {
    text.get()
        .map(split_device)
        .map_or((None, None), |(address, device)| (Some(address), device))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_of_a_link_local_address_stays_and_a_device_does_not() {
        let bind = |host: &str| {
            let mut settings = Settings::defaults();
            settings.host.set(Some(host));
            settings
                .client()
                .map(|spec| (spec.host, spec.local.bind.device))
        };
        assert_eq!(bind("fe80::1%eth0"), Ok(("fe80::1%eth0".to_owned(), None)));
        assert_eq!(
            bind("192.0.2.1%eth0"),
            Ok(("192.0.2.1".to_owned(), Some("eth0".to_owned())))
        );
        assert_eq!(
            Settings::defaults().client().map(|spec| spec.host),
            Ok("localhost".to_owned())
        );
    }
}
