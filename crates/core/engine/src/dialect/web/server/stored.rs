//! Results of pages that the server keeps.

use linerate_model::ServerEvent;
use linerate_model::service::PageResult;
use linerate_sys::clock;
use linerate_web::wire::frame;
use linerate_web::wire::page::{self, Stored, StoredResult};
use linerate_web::wire::{self};

use super::super::results::Results;
use super::super::session::{Session, hexadecimal};
use crate::server::ServerContext;

/// Stores the result of a page.
pub(super) fn store(
    session: &mut Session,
    text: &[u8],
    results: &mut Results,
    server: &mut ServerContext<'_>,
) {
    let Some(control) = &mut session.control else {
        return;
    };
    let Some(result) = page::result(text) else {
        return control.close(frame::UNSUPPORTED, "no result");
    };

    let name = hexadecimal();
    let stored = StoredResult {
        at_unix_ms: clock::unix_ms(),
        client: &session.peer.ip().to_string(),
        label: session.label.as_deref(),
        result,
    };
    let text = page::stored(&stored);
    if let Some(result) = measured(&text) {
        server.out.server_event(&ServerEvent::PageResult(result));
    }
    results.store(name.clone(), text, stored.at_unix_ms);
    control.send(&wire::json(&Stored { result: &name }));
    server.out.server_event(&ServerEvent::ResultStored {
        peer: session.peer,
        label: session.label.clone(),
        path: format!("/r/{name}"),
    });
}

/// What a stored result says about its label or client.
pub(super) fn measured(text: &str) -> Option<PageResult> {
    let kept = page::kept(text)?;
    Some(PageResult {
        subject: kept.label.unwrap_or(kept.client),
        at_unix_ms: kept.at_unix_ms,
        down_bps: kept.measured.down_bps,
        up_bps: kept.measured.up_bps,
        loaded_ms: kept.measured.loaded_ms,
    })
}
