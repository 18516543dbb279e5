//! From the wire: every key is optional, every value is checked, with the error numbers of release
//! 3.22.

use linerate_model::Transport;
use linerate_model::spec::{SendPath, SequenceCheck};

use super::{
    DEFAULT_BLOCK_LEN_BYTES, DEFAULT_PACING_TIMER_US, DEFAULT_TIME_S, FIRST_OF_BURST,
    MAX_BLOCK_LEN_BYTES, MAX_BURST, MAX_CPU, MAX_FLOW_LABEL, MAX_MSS_BYTES, MAX_OMIT_S,
    MAX_STREAMS, MAX_STREAMS_EXTENDED, MAX_TIME_S, MAX_UDP_BLOCK_LEN_BYTES, MAX_WINDOW_BYTES,
    MIN_UDP_BLOCK_LEN_BYTES, Params, UdpOffload,
};
use crate::wire::error_code::ErrorCode;
use crate::wire::json::Object;

impl Params {
    /// Reads the JSON text a client sent.
    ///
    /// # Errors
    /// `RecvParams` when the text is not JSON or a plain number is negative, else the code of the
    /// value that is out of its range.
    pub fn parse(text: &[u8]) -> Result<Self, ErrorCode> {
        // cJSON does not check the encoding, so titles of real clients may be in any.
        let text = String::from_utf8_lossy(text);
        let json = Object::parse(&text).map_err(|_| ErrorCode::RecvParams)?;
        let transport = transport(&json);
        let additions = json.object("linerate");
        let linerate_protocol = additions.as_ref().and_then(protocol);

        Ok(Self {
            transport,
            omit_s: ranged(&json, "omit", 0, MAX_OMIT_S, ErrorCode::Omit)?.unwrap_or(0),
            server_affinity: ranged(&json, "server_affinity", 0, MAX_CPU, ErrorCode::Affinity)?,
            time_s: ranged(&json, "time", 0, MAX_TIME_S, ErrorCode::Duration)?
                .unwrap_or(DEFAULT_TIME_S),
            num_bytes: amount(&json, "num")?,
            block_count: amount(&json, "blockcount")?,
            mss_bytes: non_zero(ranged(&json, "MSS", 0, MAX_MSS_BYTES, ErrorCode::Mss)?),
            no_delay: json.flag("nodelay"),
            parallel: streams(&json, linerate_protocol.is_some())?,
            reverse: json.flag("reverse"),
            bidirectional: json.flag("bidirectional"),
            mptcp: json.flag("mptcp"),
            window_bytes: non_zero(ranged(
                &json,
                "window",
                0,
                MAX_WINDOW_BYTES,
                ErrorCode::BufSize,
            )?),
            len_bytes: block_len(&json, transport)?,
            bandwidth_bps: amount(&json, "bandwidth")?,
            fq_rate_bps: amount(&json, "fqrate")?,
            pacing_timer_us: json
                .integer("pacing_timer")
                .map_or(DEFAULT_PACING_TIMER_US, saturated),
            burst: ranged(&json, "burst", 1, MAX_BURST, ErrorCode::Burst)?,
            offload: offload(&json)?,
            tos: ranged(&json, "TOS", 0, u32::from(u8::MAX), ErrorCode::BadTos)?.unwrap_or(0) as u8,
            flow_label: ranged(&json, "flowlabel", 1, MAX_FLOW_LABEL, ErrorCode::SetFlow)?,
            title: json.string("title"),
            extra_data: json.string("extra_data"),
            congestion: json.string("congestion"),
            // Of the next three the original tests the presence, not the value (get_parameters).
            get_server_output: json.number("get_server_output").is_some(),
            udp_counters_64bit: json.number("udp_counters_64bit").is_some(),
            repeating_payload: json.number("repeating_payload").is_some(),
            send_path: send_path(&json, additions.as_ref()),
            dont_fragment: switch(&json, "dont_fragment"),
            auth_token: json.string("authtoken"),
            skip_rx_copy: switch(&json, "skip_rx_copy"),
            client_version: json.string("client_version"),
            linerate_protocol,
            coalesce: additions
                .as_ref()
                .is_some_and(|added| added.flag("coalesce")),
            udp_check: udp_check(additions.as_ref()),
            want_facts: linerate_protocol.is_some()
                && additions.as_ref().is_some_and(|added| added.flag("facts")),
        })
    }
}

/// Real servers read the three keys in this order and the last one counts.
fn transport(json: &Object<'_>) -> Transport {
    if json.flag("sctp") {
        Transport::Sctp
    } else if json.flag("udp") {
        Transport::Udp
    } else {
        Transport::Tcp
    }
}

fn send_path(json: &Object<'_>, additions: Option<&Object<'_>>) -> SendPath {
    let named = additions.and_then(|added| added.string("send_path"));
    match named.and_then(|name| SendPath::from_name(&name)) {
        Some(path) => path,
        None if switch(json, "zerocopy") => SendPath::SendFile,
        None => SendPath::Auto,
    }
}

fn udp_check(additions: Option<&Object<'_>>) -> SequenceCheck {
    let named = additions.and_then(|added| added.string("udp_check"));
    match named.as_deref() {
        Some(FIRST_OF_BURST) => SequenceCheck::FirstOfBurst,
        _ => SequenceCheck::EveryDatagram,
    }
}

fn protocol(additions: &Object<'_>) -> Option<u32> {
    let version = additions.integer("protocol")?;
    u32::try_from(version).ok().filter(|version| *version > 0)
}

fn streams(json: &Object<'_>, extended: bool) -> Result<u32, ErrorCode> {
    // Both ends number streams beyond the original's 128 alike if both are linerate.
    let max = if extended {
        MAX_STREAMS_EXTENDED
    } else {
        MAX_STREAMS
    };
    Ok(ranged(json, "parallel", 1, max, ErrorCode::NumStreams)?.unwrap_or(1))
}

/// UDP has no usable default: the length of the TCP blocks does not fit into a datagram, and is
/// refused.
fn block_len(json: &Object<'_>, transport: Transport) -> Result<u32, ErrorCode> {
    let (min, max, code) = match transport {
        Transport::Udp => (
            MIN_UDP_BLOCK_LEN_BYTES,
            MAX_UDP_BLOCK_LEN_BYTES,
            ErrorCode::UdpBlockSize,
        ),
        _ => (1, MAX_BLOCK_LEN_BYTES, ErrorCode::BlockSize),
    };
    match ranged(json, "len", min, max, code)? {
        Some(len) => Ok(len),
        None if transport == Transport::Udp => Err(code),
        None => Ok(DEFAULT_BLOCK_LEN_BYTES),
    }
}

fn offload(json: &Object<'_>) -> Result<UdpOffload, ErrorCode> {
    let defaults = UdpOffload::default();
    let size = |key| ranged(json, key, 0, u32::MAX, ErrorCode::RecvParams);
    Ok(UdpOffload {
        gso: size("gso")?.unwrap_or(defaults.gso),
        gso_datagram_bytes: size("gso_dg_size")?.unwrap_or(defaults.gso_datagram_bytes),
        gso_buffer_bytes: size("gso_bf_size")?.unwrap_or(defaults.gso_buffer_bytes),
        gro: ranged(json, "gro", 0, 1, ErrorCode::RecvParams)?.unwrap_or(defaults.gro),
        gro_buffer_bytes: size("gro_bf_size")?.unwrap_or(defaults.gro_buffer_bytes),
    })
}

/// A number that must lie in a range when it is present.
fn ranged(
    json: &Object<'_>,
    key: &str,
    min: u32,
    max: u32,
    code: ErrorCode,
) -> Result<Option<u32>, ErrorCode> {
    let Some(number) = json.integer(key) else {
        return Ok(None);
    };
    match u32::try_from(number) {
        Ok(number) if (min..=max).contains(&number) => Ok(Some(number)),
        _ => Err(code),
    }
}

/// A 64-bit amount, 0 when absent.
fn amount(json: &Object<'_>, key: &str) -> Result<u64, ErrorCode> {
    let number = json.integer(key).unwrap_or(0);
    u64::try_from(number).map_err(|_| ErrorCode::RecvParams)
}

/// A switch that travels as 0 or 1.
fn switch(json: &Object<'_>, key: &str) -> bool {
    json.integer(key).is_some_and(|number| number != 0)
}

fn non_zero(number: Option<u32>) -> Option<u32> {
    number.filter(|number| *number != 0)
}

fn saturated(number: i64) -> u32 {
    number.clamp(0, i64::from(u32::MAX)) as u32
}
