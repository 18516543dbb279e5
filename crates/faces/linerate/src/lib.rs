//! Network throughput tests and diagnosis as a library.
//!
//! * [`Client`] runs a test against an iperf3 server and returns its totals; [`Server`] serves such
//!   tests.
//! * [`diagnose()`] reads this host, or saved facts, and reports what limits it.
//! * [`sweep()`] finds the best setting of a path; [`http`] serves and loads HTTP.
//! * [`path`] examines a path: rate, latency under load, loss by place, verdict.
//! * [`compare`](mod@compare) judges runs that were kept.
//! * [`fleet`] measures many hosts as one system.
//! * [`watch`] repeats a run on a grid; [`otlp`] sends runs to a collector.
//! * [`import`](import::import_file) adds reports of other programs to the history.
//! * [`report`](report::report) writes a report of recorded runs.
//! * [`history`] lists, shows and keeps records of runs.
//! * [`live`] is the state of what runs; [`view`] draws it on a terminal.
//! * [`command_line`] parses the command lines of iperf3 and iperf 2; [`server::service`] is
//!   `linerate serve`.
//!
//! # Embedding
//!
//! A test runs in the thread that calls it, and returns when it has ended and all of its threads
//! have. Nothing here ends the process, installs a handler of a signal, or keeps state outside the
//! values that the caller holds. What a process shares is changed where a function states it: a
//! server raises the soft limit of descriptors (`RLIMIT_NOFILE`, getrlimit(2)), and a test that
//! names a CPU pins the process while it runs. [`server::service`], [`view`] and [`watch`] are
//! parts of the program: they read signals.
//!
//! A client reports each event as it happens, and another thread can end it:
//!
//! ```
//! use std::time::Duration;
//!
//! use linerate::model::{EndCondition, Event, EventSink, SinkError, TestSpec};
//! use linerate::{Client, Server, StopHandle};
//!
//! struct Intervals(u32);
//!
//! impl EventSink for Intervals {
//!     fn event(&mut self, event: &Event) -> Result<(), SinkError> {
//!         self.0 += u32::from(matches!(event, Event::Interval(_)));
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // It listens when this returns, and ends when it is stopped or dropped.
//! let server = Server::loopback()?;
//! let mut test = TestSpec::default();
//! test.end = EndCondition::Duration(Duration::from_millis(200));
//! test.streams = 2;
//! let client = Client::to("127.0.0.1", server.port(), test);
//! let mut intervals = Intervals(0);
//! // `stop` of the handle or of a clone ends the test early.
//! let result = client.observe(&mut intervals, &StopHandle::new()?);
//! result.outcome?;
//! assert!(intervals.0 > 0);
//! assert_eq!(result.summary.ok_or("no totals")?.streams.len(), 2);
//! server.stop()?;
//! # Ok(())
//! # }
//! ```
//!
//! A failure has the number and the words of iperf3:
//!
//! ```
//! use linerate::model::TestSpec;
//! use linerate::{Client, StopHandle};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Port 9 is one that no server of this host listens on.
//! let failure = Client::to("127.0.0.1", 9, TestSpec::default()).run(&StopHandle::new()?).outcome.unwrap_err();
//! assert_eq!(failure.code, Some(103));
//! assert!(failure.message.ends_with("Connection refused"));
//! # Ok(())
//! # }
//! ```
//!
//! A diagnosis reads saved facts as well as this host:
//!
//! ```
//! use linerate::diagnose::{Query, Source};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let host = Source::Host { interfaces: vec!["lo".to_owned()], peer: None, period: None };
//! let diagnosis = linerate::diagnose(&Query::of(host))?;
//! println!("{}", diagnosis.verdict.sentence);
//! # Ok(())
//! # }
//! ```
//!
//! The folder `examples` holds a client, a server, a diagnosis and a sweep. Rates are in bit/s,
//! amounts in bytes and times in ns unless a name or a type states another unit. A value that could
//! not be measured is `None`.
//!
//! # Versions
//!
//! Inputs implement `Default`, so that struct update syntax works when they get fields:
//!
//! ```
//! use linerate::model::TestSpec;
//!
//! let mut test = TestSpec {
//!     streams: 4,
//!     ..TestSpec::default()
//! };
//! test.socket.no_delay = true;
//! ```
//!
//! Results of this library that may get fields are `#[non_exhaustive]`. `make semver` compares the
//! interface with the last commit.
//!
//! # Features
//!
//! Control threads emit [`tracing`] events at level `debug`: connection accepted, dialect
//! recognised, admission decided, state sent, test ended.
//!
//! Without the feature `full` what is left is the drop-in part: clients and servers of both iperf
//! dialects. Its command lines refuse what the products do.

#![forbid(unsafe_code)]

pub mod client;
pub mod command_line;
#[cfg(feature = "full")]
pub mod compare;
#[cfg(feature = "full")]
pub mod diagnose;
#[cfg(feature = "full")]
pub mod expect;
#[cfg(feature = "full")]
pub mod fleet;
#[cfg(feature = "full")]
pub mod history;
#[cfg(feature = "full")]
pub mod http;
#[cfg(feature = "full")]
pub mod import;
pub mod live;
#[cfg(feature = "full")]
pub mod otlp;
#[cfg(feature = "full")]
pub mod path;
#[cfg(feature = "full")]
pub mod record;
#[cfg(feature = "full")]
pub mod report;
pub mod server;
#[cfg(feature = "full")]
pub mod sweep;
#[cfg(feature = "full")]
pub mod trend;
pub mod trial;
#[cfg(feature = "full")]
pub mod view;
#[cfg(feature = "full")]
pub mod watch;

pub use client::Client;
#[cfg(feature = "full")]
pub use diagnose::diagnose;
pub use linerate_document::progress::{self, Progress};
pub use linerate_engine::dialect::iperf3::client::ClientResult;
pub use linerate_engine::{Interrupts, StopHandle};
pub use linerate_model as model;
pub use linerate_model::outcome::{Error, Outcome};
pub use server::Server;
#[cfg(feature = "full")]
pub use sweep::sweep;
