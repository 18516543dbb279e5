//! The protocol as its peers see it: dialogues as data, and machines under arbitrary input.

mod agent_pipe;
mod bounds;
mod coordinator_pipe;
mod dialogue;
mod dialogues;
mod fleet_run;
#[path = "../../../../../tests/fuzz/src/fleet.rs"]
pub mod fuzzing;
mod garbage;
mod many_hosts;
mod player;
#[path = "../../../../../tests/fuzz/src/segments.rs"]
mod segments;
