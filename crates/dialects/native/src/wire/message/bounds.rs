//! Bounds of texts and lists.

use linerate_model::path::{EndpointPhase, PhaseSpec};

use super::fault::{
    Fault, LOAD_SAMPLES_MAX, REQUEST_BODY_MAX_BYTES, TEXT_MAX_CHARS, TRANSACTION_STREAMS_MAX, cut,
};
use super::json_text::JsonText;

/// Most features or notes.
const LIST_MAX: usize = 64;
/// Most subflows of a phase: 128 streams of both directions with 9 each.
const SUBFLOWS_MAX: usize = 2_304;
/// Longest password in characters.
const PASSWORD_MAX_CHARS: usize = 1024;
/// Largest code point, RFC 2474.
const DSCP_MAX: u8 = 63;

/// A name: not cut, since it would be another one.
pub(super) fn name(member: &str, text: &str) -> Result<(), Fault> {
    chars(member, text, TEXT_MAX_CHARS)
}

pub(super) fn password(member: &str, text: &str) -> Result<(), Fault> {
    chars(member, text, PASSWORD_MAX_CHARS)
}

fn chars(member: &str, text: &str, max: usize) -> Result<(), Fault> {
    if text.chars().nth(max).is_some() {
        return Err(Fault::new(member, format!("longer than {max} characters")));
    }

    if text.chars().any(char::is_control) {
        Err(Fault::new(member, "contains a control character"))
    } else {
        Ok(())
    }
}

pub(super) fn hex<const N: usize>(member: &str, text: &str) -> Result<(), Fault> {
    let bytes: Option<[u8; N]> = crate::wire::hex::decode(text);
    bytes
        .map(|_| ())
        .ok_or_else(|| Fault::new(member, format!("not {} hexadecimal digits", 2 * N)))
}

pub(super) fn count(member: &str, len: usize, max: usize) -> Result<(), Fault> {
    if len > max {
        Err(Fault::new(
            member,
            format!("{len} entries, at most {max} are allowed"),
        ))
    } else {
        Ok(())
    }
}

pub(super) fn names(member: &str, list: &[String]) -> Result<(), Fault> {
    count(member, list.len(), LIST_MAX)?;
    list.iter().try_for_each(|text| name(member, text))
}

pub(super) fn notes(member: &str, list: &mut [String]) -> Result<(), Fault> {
    count(member, list.len(), LIST_MAX)?;
    list.iter_mut().for_each(cut);
    Ok(())
}

pub(super) fn json(member: &str, text: &JsonText) -> Result<(), Fault> {
    match text.as_str().len() {
        len if len > REQUEST_BODY_MAX_BYTES => Err(Fault::new(
            member,
            format!("longer than {REQUEST_BODY_MAX_BYTES} bytes"),
        )),
        _ => Ok(()),
    }
}

pub(super) fn spec(spec: &PhaseSpec) -> Result<(), Fault> {
    if spec.dscp > DSCP_MAX {
        return Err(Fault::new(
            "spec.dscp",
            format!("{} is above {DSCP_MAX}", spec.dscp),
        ));
    }

    spec.congestion
        .as_deref()
        .map_or(Ok(()), |text| name("spec.congestion", text))
}

pub(super) fn result(result: &mut EndpointPhase) -> Result<(), Fault> {
    count("result.load", result.load.len(), LOAD_SAMPLES_MAX)?;
    // Streams of both directions.
    count(
        "result.streams",
        result.streams.len(),
        2 * TRANSACTION_STREAMS_MAX as usize,
    )?;

    for stream in &mut result.streams {
        stream.congestion.iter_mut().for_each(cut);
    }

    count("result.subflows", result.subflows.len(), SUBFLOWS_MAX)?;
    for subflow in &mut result.subflows {
        cut(&mut subflow.local);
        cut(&mut subflow.remote);
    }

    notes("result.notes", &mut result.notes)
}
