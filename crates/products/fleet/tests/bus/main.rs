//! Lines over a bus, with a real broker: the dialogues of the protocol, the lease, and a broker
//! that is killed.

#[path = "../protocol/agent_pipe.rs"]
mod agent_pipe;
#[path = "../../../../../tests/live/src/broker.rs"]
#[allow(dead_code, reason = "live tests of the program use the rest")]
pub mod broker;
mod connections;
#[path = "../protocol/coordinator_pipe.rs"]
mod coordinator_pipe;
#[path = "../protocol/dialogue.rs"]
mod dialogue;
mod dialogues;
mod ends;
#[path = "../protocol/player.rs"]
mod player;
