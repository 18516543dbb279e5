//! TCP alone before a single load: a download from the server under test.

use linerate_model::http::units::payload_bytes;
use linerate_model::http::{Baseline, Mode};
use linerate_model::outcome::Error;

use super::planned::PlannedLoad;
use crate::conclude::study::Kept;
use crate::load::{Breaker, LoadSpec};
use crate::request::RequestSpec;
use crate::run::requests::{CellMark, RESTART_CAPABILITY};
use crate::run::sampled_load::Observed;
use crate::run::{Stop, generator, tcp_baseline};
use crate::target::Target;

/// Time for outstanding responses of the download: a slow path must not delay the load.
const TIMEOUT_NS: u64 = 1_000_000_000;

/// Goodput of TCP alone, or a note with the reason why that is unknown; neither where the load
/// needs none.
pub(super) fn measure(load: &mut PlannedLoad, stop: &mut Stop) -> Kept {
    let mut kept = Kept::default();
    // Two ends on one host have no link between them.
    if load.is_local() || !is_needed(load) {
        return kept;
    }

    match download(load, stop) {
        Ok(found) => kept.baseline.extend(found),
        Err(why) => kept.notes.push(format!("no TCP baseline: {why}")),
    }

    kept
}

/// The baseline in words, one line each.
pub(super) fn remarks(kept: &Kept) -> Vec<String> {
    let found = kept.baseline.iter().map(tcp_baseline::text);
    found.chain(kept.notes.clone()).collect()
}

/// True if the server has linerate's payloads, and the user names no rate.
fn is_needed(load: &PlannedLoad) -> bool {
    let size = load
        .target
        .path
        .strip_prefix("/b/")
        .and_then(|size| payload_bytes(size.split('?').next()?).ok());
    let has_payloads = (load.answer.status, Some(load.answer.body_bytes)) == (200, size);

    let side = load.side.as_ref();
    let is_ours = has_payloads || side.is_some_and(|side| side.info.can(RESTART_CAPABILITY));
    let is_idle = matches!(load.spec.mode, Mode::Idle { .. });
    is_ours && load.line_rate_bps.is_none() && !is_idle && load.spec.protocol.is_plain_http1()
}

/// `None`: the download exceeds the limits of the target, or the user ended it.
fn download(load: &mut PlannedLoad, stop: &mut Stop) -> Result<Option<Baseline>, String> {
    let text = |error: Error| error.to_string();
    let spec = download_spec(load)?;
    let Ok(bytes_max) = load.permit(&spec) else {
        return Ok(None);
    };

    let threads = generator::threads(false, load.threads);
    let pool = generator::worker_pool(spec.connections, threads, None).map_err(text)?;
    let watch = generator::watch(spec.destinations.first().copied()).map_err(text)?;

    let hosts = Observed::new(
        &watch,
        load.side.as_mut(),
        stop,
        None,
        CellMark::named(tcp_baseline::ID),
    );
    tcp_baseline::judged(hosts.run(spec, &pool, Breaker::new(true, bytes_max)))
}

fn download_spec(load: &PlannedLoad) -> Result<LoadSpec, String> {
    let target = Target {
        path: format!("/b/{}", tcp_baseline::BODY_BYTES),
        ..load.target.clone()
    };
    let request = RequestSpec::get()
        .bytes(&target)
        .map_err(|error| error.to_string())?;

    Ok(LoadSpec {
        timeout_ns: load.spec.timeout_ns.min(TIMEOUT_NS),
        ..tcp_baseline::download(&load.spec, request, tcp_baseline::OF_LOAD)
    })
}
