//! History of runs: recorded here, imported from other programs, compared, and watched over time.
//!
//! * [`readers`]: reports of other programs as events
//! * [`run`]: the recorder, and whatever reads or writes the store
//! * [`conclude`]: comparisons, trends and limits of records
//! * [`report`]: what was found as text and HTML, and records in the forms of other programs

#![forbid(unsafe_code)]

pub mod conclude;
pub mod readers;
pub mod report;
pub mod run;
