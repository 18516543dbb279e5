//! What every server of this program sends to its clients, its service manager and its log.

use std::time::Duration;

use linerate_document::Output;
use linerate_iperf3::report;
use linerate_model::sink::{Forward, PeerRequests};
use linerate_model::{Failure, FailureKind, ServerEvent, ServerReporter};
use linerate_sys::sd_notify;
use tracing::debug;

/// Notifies the service manager when the server can be reached and when it ends, and traces events.
pub(super) fn managed(reporter: Box<dyn ServerReporter>) -> impl ServerReporter {
    Forward::new(reporter, |event: &ServerEvent| {
        trace(event);
        let state = match event {
            ServerEvent::Listening { .. } => "READY=1",
            ServerEvent::Stopping { .. } => "STOPPING=1",
            _ => return,
        };

        // Without its manager a service serves all the same.
        let _ = sd_notify::notify(state);
    })
}

fn trace(event: &ServerEvent) {
    match event {
        ServerEvent::Listening { address } => debug!(%address, "listening"),
        ServerEvent::TestStarted(test) => debug!(
            test = test.number,
            peer = %test.peer,
            user = test.user,
            transport = ?test.transport,
            direction = ?test.direction,
            streams = test.streams,
            "test started"
        ),
        ServerEvent::TestEnded(record) => debug!(
            test = record.facts.number,
            peer = %record.facts.peer,
            received_bytes = record.received_bytes,
            sent_bytes = record.sent_bytes,
            duration_ns = record.duration_ns,
            outcome = ?record.outcome,
            "test ended"
        ),
        ServerEvent::Refused { peer, reason } => debug!(%peer, ?reason, "client refused"),
        ServerEvent::LoginFailed { peer, cause, .. } => debug!(%peer, cause, "login failed"),
        ServerEvent::HandshakeFailed {
            peer, explanation, ..
        } => debug!(%peer, explanation, "handshake failed"),
        ServerEvent::HostKey { text } => debug!(key = text, "host key"),
        ServerEvent::Browsers { url, .. } => debug!(url, "browsers"),
        ServerEvent::Stamp { address } => debug!(%address, "session reflector"),
        ServerEvent::Reloaded => debug!("access lists reloaded"),
        ServerEvent::Stopping { signal_text } => debug!(signal = signal_text, "stopping"),
        _ => {}
    }
}

/// Sends clients that ask for them the server's report and facts about this host.
pub(super) fn peer_requests(options: report::Options) -> PeerRequests {
    #[cfg(feature = "full")]
    let (facts, drops) = (
        crate::diagnose::facts_for_clients(),
        crate::diagnose::drops_for_clients(),
    );
    #[cfg(not(feature = "full"))]
    let (facts, drops) = (None, None);

    PeerRequests {
        report: Some(report::peer_report(options)),
        facts,
        drops,
        status: None,
    }
}

/// Gives the reader of a server's output time to take the rest. After a signal the server ends
/// soon, as promised.
pub fn flush(output: &Output, outcome: &Result<(), Failure>) {
    let is_interrupted = outcome
        .as_ref()
        .is_err_and(|f| f.kind == FailureKind::Interrupted);
    output.flush(if is_interrupted {
        Duration::from_millis(500)
    } else {
        Duration::from_secs(10)
    });
}
