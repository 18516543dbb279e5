//! Test of a path: its phases, the end of a load, and what follows from the samples.
//!
//! * [`spec`]: the test that the user requests
//! * [`plan`]: the phases of a test, and the control of a load
//! * [`conclude`]: the results of the phases as one report
//! * [`report`]: that report as text, JSON and HTML, and the progress of a test
//! * [`run`]: the phases against a server
//!
//! Only [`run`] has clocks, threads and sockets; the rest are pure functions and state machines.
//! Directions are seen from the client.

#![forbid(unsafe_code)]

pub mod conclude;
#[cfg(any(test, fuzzing))]
#[path = "../fuzzing/mod.rs"]
pub mod fuzzing;
pub mod plan;
pub mod report;
pub mod run;
pub mod spec;
