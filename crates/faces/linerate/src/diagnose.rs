//! Diagnosis of this host, or of hosts whose facts were saved. Only [`prove()`] changes settings,
//! and restores them.

mod pasted;
mod prove;

use std::io;

use linerate_doctor::run::{self, Readers};
use linerate_history::readers::decode;
use linerate_model::finding::Diagnosis;
use linerate_model::record::{Body, RunKind, RunState, Trial};
use linerate_store::keys;

use crate::Error;
use crate::record::{RecordOptions, Recorded, Recording, Run};

pub use linerate_doctor::report;
pub(crate) use linerate_doctor::run::diagnosed_client::run_client;
pub use linerate_doctor::run::{ProfileFiles, ProofSpec, Query, Source};
pub(crate) use linerate_doctor::run::{drops_for_clients, facts_for_clients};
pub use pasted::import_texts;
pub use prove::prove;

/// Readers of all forms that this program knows.
const READERS: Readers = Readers {
    decode: |bytes| decode(bytes).map_err(io::Error::other),
    import: import_texts,
};

/// Collects or reads facts and applies the rules.
///
/// # Errors
/// An unknown rule, or facts that cannot be read.
pub fn diagnose(query: &Query) -> Result<Diagnosis, Error> {
    run::check(query)?;
    Ok(run::diagnose(query, &READERS)?.0)
}

/// As [`diagnose`], of this host and with a record.
///
/// # Errors
/// As [`diagnose`].
pub fn diagnose_recorded(
    query: &Query,
    options: RecordOptions,
) -> Result<(Diagnosis, Recorded), Error> {
    run::check(query)?;
    let server = match &query.source {
        Source::Host { peer, .. } => peer.clone(),
        _ => None,
    };

    let described = Run {
        kind: RunKind::Doctor,
        body: Body::Doctor,
        server,
        spec_key: keys::spec_key("doctor", &query.only),
        peer: None,
    };
    let mut recording = Recording::begin(options, described);

    let (diagnosis, observed) = match run::diagnose(query, &READERS) {
        Ok(found) => found,
        Err(error) => {
            // The reason is that of the command.
            let _ = recording.finish(RunState::Failed, Some(error.to_string()), Body::Doctor);
            return Err(error);
        }
    };
    let snapshot = observed
        .into_iter()
        .next()
        .map(|observed| observed.snapshot);
    recording.diagnosed(diagnosis.clone(), snapshot);

    let trial = Trial::complete(recording.elapsed_ns());
    Ok((diagnosis, recording.finish_trial(trial)))
}
