//! History of runs.
//!
//! * [`readers`]: reports of other programs as events

#![forbid(unsafe_code)]

pub mod readers;
