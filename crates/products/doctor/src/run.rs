//! Diagnoses that read this host, and tests that are diagnosed. Only [`prove()`] changes settings, and
//! restores them.

pub mod diagnosed_client;
mod file_error;
mod host_watch;
mod profile_files;
mod prove;
mod query;
mod test_observer;

pub use profile_files::ProfileFiles;
pub use prove::{ProofSpec, ProofTests, TestSeries, check as check_proof, prove};
pub use query::{Query, Readers, Source, check, diagnose};
pub use test_observer::{TestObserver, drops_for_clients, facts_for_clients};
