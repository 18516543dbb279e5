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
        // Totals come every second.
        if !matches!(event, ServerEvent::Progress(_)) {
            debug!(?event);
        }
        let state = match event {
            ServerEvent::Listening { .. } => "READY=1",
            ServerEvent::Stopping { .. } => "STOPPING=1",
            _ => return,
        };

        // Without its manager a service serves all the same.
        let _ = sd_notify::notify(state);
    })
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
