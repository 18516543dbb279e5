//! The protocol as its users see it: recorded peers, whole tests in simulated time, and everything
//! that can go wrong.

mod dialogue;
mod failures;
#[path = "../../../../../tests/fuzz/src/iperf3.rs"]
pub mod fuzzing;
mod items;
mod pair;
mod params;
mod replay;
mod results;
#[path = "../../../../../tests/fuzz/src/script.rs"]
mod script;
