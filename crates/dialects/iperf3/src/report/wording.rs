//! Failures and times in the words of iperf3.

use jiff::Timestamp;
use linerate_model::event::Endpoint;
use linerate_model::{Failure, FailureKind};

/// The lines a failed test prints, without the program name in front.
pub(super) fn failure_lines(failure: &Failure, endpoint: Endpoint) -> Vec<String> {
    let message = &failure.message;
    match &failure.kind {
        FailureKind::Interrupted => vec![format!("interrupt - {message}")],
        FailureKind::Peer { .. } => vec![server_error(failure), format!("error - {message}")],
        FailureKind::PeerTerminated | FailureKind::PeerClosed => match endpoint {
            Endpoint::Client => vec![format!("error - {message}")],
            Endpoint::Server => vec![message.clone()],
        },
        _ => vec![format!("error - {message}")],
    }
}

/// The `error` member of a JSON document. A client leaves the prefix of the text form away, a
/// server keeps it.
///
/// Of the two texts iperf3 has for an error of the peer this is the plain one: parsers of JSON keep
/// the last of two members with the same name, so that is what consumers have always seen.
pub(super) fn failure_json(failure: &Failure, endpoint: Endpoint) -> String {
    let message = &failure.message;
    match (&failure.kind, endpoint) {
        (FailureKind::Interrupted, _) => format!("interrupt - {message}"),
        (FailureKind::Error | FailureKind::Peer { .. }, Endpoint::Server) => {
            format!("error - {message}")
        }
        _ => message.clone(),
    }
}

/// The `error` event of a JSON stream. iperf3 keeps the first of the two texts for an error of the
/// peer here.
pub(super) fn failure_json_stream(failure: &Failure, endpoint: Endpoint) -> String {
    match failure.kind {
        FailureKind::Peer { .. } => server_error(failure),
        _ => failure_json(failure, endpoint),
    }
}

/// Wall-clock time as RFC 1123 section 5.2.14 writes dates.
pub(super) fn rfc1123(unix_ms: u64) -> String {
    i64::try_from(unix_ms)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
        .map(|t| t.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
        .unwrap_or_default()
}

fn server_error(failure: &Failure) -> String {
    let message = &failure.message;
    match &failure.kind {
        FailureKind::Peer {
            errno_text: Some(reason),
            ..
        } => format!("SERVER ERROR - {message}, errno: {reason}"),
        _ => format!("SERVER ERROR - {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_in_greenwich_time() {
        assert_eq!(rfc1123(1_795_287_210_000), "Sat, 21 Nov 2026 18:53:30 GMT");
        assert_eq!(rfc1123(u64::MAX), "");
    }
}
