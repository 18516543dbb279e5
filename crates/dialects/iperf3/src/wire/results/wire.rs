//! Results as JSON: lenient when reading, the key set and order of release 3.22 when writing.

use linerate_model::CpuUsage;
use linerate_model::event::ServerOutput;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Results, StreamResult};
use crate::wire::error_code::ErrorCode;
use crate::wire::json::Object;
use crate::wire::params::{LINERATE_PROTOCOL, MAX_STREAMS_EXTENDED};

/// Most entries that are read: both directions of the largest test.
const MAX_ENTRIES: usize = 2 * MAX_STREAMS_EXTENDED as usize;
/// Longest facts of a peer that are passed on.
const MAX_FACTS_BYTES: usize = 1 << 20;

impl Results {
    /// Reads the JSON text of the peer.
    ///
    /// # Errors
    /// `RecvResults` when the text is not JSON, lacks a required key, or names only half of what
    /// was lost in the warm-up.
    pub fn parse(text: &[u8]) -> Result<Self, ErrorCode> {
        let text = String::from_utf8_lossy(text);
        let malformed = ErrorCode::RecvResults;
        let json = Object::parse(&text).map_err(|_| malformed)?;
        let streams = json
            .array("streams", MAX_ENTRIES)
            .ok_or(malformed)?
            .map_err(|_| malformed)?;
        let additions = json.object("linerate");
        let addition = |key| additions.as_ref().and_then(|added| added.integer(key));

        Ok(Self {
            cpu: CpuUsage {
                total_percent: measured(&json, "cpu_util_total")?,
                user_percent: measured(&json, "cpu_util_user")?,
                system_percent: measured(&json, "cpu_util_system")?,
            },
            sender_has_retransmits: json
                .integer_or_minus_one("sender_has_retransmits")
                .ok_or(malformed)?,
            congestion_used: json.string("congestion_used"),
            server_output: server_output(&json),
            streams: streams.into_iter().map(stream).collect::<Result<_, _>>()?,
            linerate: additions.is_some(),
            ran_beside: addition("ran_beside").and_then(|number| u32::try_from(number).ok()),
            overflows: addition("overflows").and_then(|number| u64::try_from(number).ok()),
            facts: additions.as_ref().and_then(facts),
        })
    }

    /// The JSON text, without its length.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(&WireResults::from(self)).expect("plain fields always serialise")
    }
}

fn stream(text: &str) -> Result<StreamResult, ErrorCode> {
    let malformed = ErrorCode::RecvResults;
    let json = &Object::parse(text).map_err(|_| malformed)?;
    let omitted_errors = json.integer("omitted_errors").map(count);
    let omitted_packets = json.integer("omitted_packets").map(count);
    // Losses after the warm-up need both; the original refuses half of them (get_results).
    if omitted_errors.is_some() != omitted_packets.is_some() {
        return Err(malformed);
    }

    let retransmits = json.integer_or_minus_one("retransmits").ok_or(malformed)?;
    Ok(StreamResult {
        wire_id: u32::try_from(json.integer("id").ok_or(malformed)?).unwrap_or(0),
        bytes: required_count(json, "bytes")?,
        retransmits: u64::try_from(retransmits).ok(),
        jitter_s: measured(json, "jitter")?,
        errors: required_count(json, "errors")?,
        omitted_errors,
        packets: required_count(json, "packets")?,
        omitted_packets,
        start_time_s: json.number("start_time").map(non_negative),
        end_time_s: json.number("end_time").map(non_negative),
    })
}

/// An object that is passed on unread, unless it is larger than any host's facts.
fn facts(additions: &Object<'_>) -> Option<String> {
    let text = additions
        .raw("facts")
        .filter(|text| text.starts_with('{'))?;
    (text.len() <= MAX_FACTS_BYTES).then(|| text.to_owned())
}

fn server_output(json: &Object<'_>) -> Option<ServerOutput> {
    let as_json = json
        .raw("server_output_json")
        .filter(|text| text.starts_with('{'));
    match as_json {
        Some(text) => Some(ServerOutput::Json(text.to_owned())),
        None => json.string("server_output_text").map(ServerOutput::Text),
    }
}

/// A required figure. Real programs write `null` for what is not a number; that is no reason to
/// lose a test.
fn measured(json: &Object<'_>, key: &str) -> Result<f64, ErrorCode> {
    // cJSON prints what is not a number, such as a ratio of zeros, as null.
    if json.raw(key) == Some("null") {
        return Ok(0.0);
    }

    json.number(key)
        .map(non_negative)
        .ok_or(ErrorCode::RecvResults)
}

fn required_count(json: &Object<'_>, key: &str) -> Result<u64, ErrorCode> {
    json.integer(key).map(count).ok_or(ErrorCode::RecvResults)
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn non_negative(number: f64) -> f64 {
    if number > 0.0 { number } else { 0.0 }
}

#[derive(Serialize)]
struct WireResults<'a> {
    #[serde(serialize_with = "short_number")]
    cpu_util_total: f64,
    #[serde(serialize_with = "short_number")]
    cpu_util_user: f64,
    #[serde(serialize_with = "short_number")]
    cpu_util_system: f64,
    sender_has_retransmits: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion_used: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_output_text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_output_json: Option<&'a RawValue>,
    streams: &'a [StreamResult],
    #[serde(skip_serializing_if = "Option::is_none")]
    linerate: Option<WireLinerate<'a>>,
}

#[derive(Serialize)]
struct WireLinerate<'a> {
    protocol: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ran_beside: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overflows: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<&'a RawValue>,
}

impl<'a> From<&'a Results> for WireResults<'a> {
    fn from(results: &'a Results) -> Self {
        let (text, json) = match &results.server_output {
            Some(ServerOutput::Text(text)) => (Some(text.as_str()), None),
            Some(ServerOutput::Json(json)) => (None, serde_json::from_str::<&RawValue>(json).ok()),
            None => (None, None),
        };
        WireResults {
            cpu_util_total: results.cpu.total_percent,
            cpu_util_user: results.cpu.user_percent,
            cpu_util_system: results.cpu.system_percent,
            sender_has_retransmits: results.sender_has_retransmits,
            congestion_used: results.congestion_used.as_deref(),
            server_output_text: text,
            server_output_json: json,
            streams: &results.streams,
            linerate: results.linerate.then_some(WireLinerate {
                protocol: LINERATE_PROTOCOL,
                ran_beside: results.ran_beside,
                overflows: results.overflows,
                facts: results
                    .facts
                    .as_deref()
                    .and_then(|text| serde_json::from_str(text).ok()),
            }),
        }
    }
}

/// -1 for what this end does not count.
pub(super) fn known_or_minus_one<S: Serializer>(
    number: &Option<u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => serializer.serialize_u64(*number),
        None => serializer.serialize_i64(-1),
    }
}

/// Whole numbers without a decimal point, as real peers write them.
pub(super) fn short_number<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    const EXACT_BELOW: f64 = 9e15;

    if number.fract() == 0.0 && number.abs() < EXACT_BELOW {
        serializer.serialize_i64(*number as i64)
    } else if number.is_finite() {
        serializer.serialize_f64(*number)
    } else {
        serializer.serialize_i64(0)
    }
}

#[allow(clippy::ref_option)] // the signature serde requires
pub(super) fn short_optional_number<S: Serializer>(
    number: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    short_number(&number.unwrap_or(0.0), serializer)
}
