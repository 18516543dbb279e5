//! What holds a link back: pure functions from facts about hosts to explained findings.
//!
//! Nothing here reads a file, asks a kernel or changes anything. Facts come from `linerate-host` or from text that
//! somebody pasted ([`import`]); counters over a [`Window`] come from several readings of one host; a test, if there was
//! one, stands in the snapshot as facts under `run.N.` (see [`runs`]).
//!
//! * [`diagnose`]: all rules of the [`catalogue`] on one or more hosts
//! * [`compare`]: two hosts or two moments
//! * [`arithmetic`]: ceilings of links, buses, windows and hashes
//! * [`diagnose_test`]: a test that one or both ends watched
//! * [`split_loss`]: where the datagrams of a UDP test went

#![forbid(unsafe_code)]

pub mod account;
pub mod arithmetic;
pub mod classes;
pub mod course;
pub mod import;
pub mod runs;

mod derive;
mod diff;
mod judge;
mod loss;
mod rule;
mod rules;
mod scope;
mod slices;
mod verdict;
mod vote;
mod window;

pub use account::{Account, diagnose_test};
pub use course::Course;
pub use derive::derive;
pub use diff::compare;
pub use judge::{Observed, diagnose};
pub use loss::split_loss;
pub use rule::{Phase, Rule};
pub use window::{Delta, NoWindow, Window};

/// Every rule, in the order in which a reader should think about them.
pub fn catalogue() -> impl Iterator<Item = &'static Rule> {
    rules::all()
}
