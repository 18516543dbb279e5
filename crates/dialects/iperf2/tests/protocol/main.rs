//! The protocol as its users see it: recorded peers, whole tests in simulated time, and everything
//! that can go wrong.

mod captures;
mod failures;
mod flows;
#[path = "../../../../../tests/fuzz/src/iperf2.rs"]
pub mod fuzzing;
mod hostile;
mod replay;
#[path = "../../../../../tests/fuzz/src/script.rs"]
mod script;
mod streams;
