//! History of runs: recorded here, imported from other programs, compared, and watched over time.
//!
//! * [`readers`]: reports of other programs as events
//! * [`plan`]: start times of the runs of a watch
//! * [`run`]: the recorder, the watch, and what reads or changes the store
//! * [`conclude`]: comparisons, trends and limits of records
//! * [`report`]: what was found as text and HTML, and records in the forms of other programs

#![forbid(unsafe_code)]

pub mod conclude;
pub mod plan;
pub mod readers;
pub mod report;
pub mod run;
