//! The protocol as its users see it: recorded peers, whole tests in simulated time, and everything that can go wrong.

mod dialogue;
mod failures;
#[allow(dead_code, reason = "unit tests use the rest")]
#[path = "../../../../fuzz/src/iperf3.rs"]
pub mod fuzzing;
mod items;
mod pair;
mod replay;
