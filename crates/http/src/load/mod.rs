//! The load generator.
//!
//! A run has one leader and several lanes, threads of this process or of others. A lane owns its connections and its
//! figures; it opens its share of them, waits for the others, sends at its pace, waits for what is outstanding and
//! hands in its [`Tally`]. The leader says when it begins, adds up the seconds and the tallies, and watches over limits.

pub(crate) mod answer;
mod backlog;
mod breaker;
mod connection;
mod course;
mod crew;
pub mod distribution;
pub(crate) mod failure;
#[cfg(feature = "tls")]
mod hyper_lane;
mod lane;
mod message;
mod opener;
mod pace;
mod pool;
pub mod ports;
mod ramp;
mod recorder;
mod run;
mod schedule;
mod second;
pub(crate) mod single;
mod spec;
mod tally;

pub use breaker::Breaker;
pub use crew::{Crew, Processes, work};
pub use distribution::Distribution;
pub use message::{Assignment, Message, Order};
pub use ports::{Local, PortChoice};
pub use run::{LoadError, Observer, run};
pub use second::SecondPart;
pub use spec::LoadSpec;
pub use tally::Tally;
