//! The load of a phase: streams of frames, and what one end counts of them. The same for client and
//! server.

mod echo;
mod frame_writer;
mod pump;
mod run;
mod subflows;

pub(super) use echo::{EchoSamples, EchoSchedule};
pub(super) use run::{LoadRun, LoadStream};
