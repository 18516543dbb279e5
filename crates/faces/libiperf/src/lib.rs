//! `libiperf.so.0`: the C interface of iperf3 (`iperf_api.h` of release 3.12), on linerate's
//! engine.
//!
//! A program that was linked against the original library, or loads it at run time, works with this
//! one. No function ends the process but `iperf_errexit`, whose callers request it. What a program
//! can only do with the parts of the original's engine (its streams, timers and messages) fails
//! with `IEUNIMP`.

// Exported names are unsafe attributes, and the C half of functions with a variable number of
// arguments is named in assembly. Blocks of unsafe code are in `linerate-boundary`.
#![allow(unsafe_code)]

mod error;
mod functions;
mod resolve;
mod settings;
mod test;
