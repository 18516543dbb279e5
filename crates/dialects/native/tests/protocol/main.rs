//! The protocol as its users see it: whole sessions in simulated time, lost connections, and peers
//! that are wrong.

mod dialogue;
mod failures;
#[path = "../../../../../tests/fuzz/src/native.rs"]
pub mod fuzzing;
mod pair;
mod properties;
mod resume;
// Part of it is for the machines of other crates.
#[allow(dead_code)]
#[path = "../../../../../tests/fuzz/src/script.rs"]
mod script;
#[path = "../../../../../tests/fuzz/src/segments.rs"]
mod segments;
