//! Limits of a link: explained findings from facts about hosts.
//!
//! The rules are pure functions; only [`run`] reads files, queries the kernel or changes anything.
//! Facts come from `linerate-host`, live or from pasted text; counters over a [`Period`] come from
//! several snapshots of one host; a test, if there was one, is in the snapshot as facts under
//! `run.N.` (see [`runs`]).
//!
//! * [`diagnose`]: all rules of the [`catalogue`] on one or more hosts
//! * [`compare`]: two hosts or two points in time
//! * [`arithmetic`]: ceilings of links, buses, windows and hashes
//! * [`diagnose_test`]: a test observed by one or both ends, and where the datagrams of a UDP test
//!   went
//! * [`path::diagnose_path`]: an examined path, phase by phase
//! * [`sweep_reasons`]: why a setting of a sweep is worse than another
//! * [`http`]: what limited the cells of the HTTP lab, and what its plans need
//! * [`run`]: this host or saved facts, tests that are diagnosed, and the proof of a fix
//! * [`proof`]: the statistics of that proof
//! * [`report`]: diagnoses, rules, ceilings and proofs as text

#![forbid(unsafe_code)]

pub mod arithmetic;
pub mod classes;
pub mod observation;
pub mod path;
pub mod proof;
pub mod report;
pub mod run;
pub mod timeline;

mod command;
mod derive;
mod diff;
mod drops;
mod elimination;
mod groups;
mod judge;
mod limit;
mod observed;
mod period;
mod placement;
mod read_tests;
mod rule;
mod rules;
mod ruling;
mod scope;
mod setting;
mod slices;
mod table;
mod verdict;
mod vote;
mod work;

pub use command::is_token;
pub use derive::derive;
pub use diff::compare;
pub use groups::separating;
pub use judge::diagnose;
pub use linerate_model::runs;
pub use observation::{EndpointObservation, diagnose_test};
pub use observed::Observed;
pub use period::{Delta, Period};
pub use rule::Rule;
pub use rules::sweep::sweep_reasons;
pub use timeline::TestTimeline;

/// Rules of the HTTP lab: verdicts of cells, flags of runs, checks of both hosts before an
/// experiment.
pub mod http {
    pub use crate::rules::cell::cell_verdict;
    pub use crate::rules::flags::run_flags;
    pub use crate::rules::preflight::{
        Preflight, descriptors_for, too_many_connections, worker_processes,
    };
}

/// Every rule, in the order in which a reader should think about them.
pub fn catalogue() -> impl Iterator<Item = &'static Rule> {
    rules::all().map(|(_, rule)| rule)
}
