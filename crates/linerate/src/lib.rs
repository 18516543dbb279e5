//! Network throughput tests and diagnosis as a library.
//!
//! * [`Client`] runs a test against an iperf3 server and returns its totals; [`Server`] serves such tests.
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
//! * [`command_line`] parses the command lines of iperf3 and iperf 2; [`server::service`] is `linerate serve`.
//!
//! The folder `examples` holds a client, a server and a diagnosis. Rates are in bit/s, amounts in bytes and times in ns
//! unless a name or a type states another unit. A value that could not be measured is `None`.
//!
//! Control threads emit [`tracing`] events at level `debug`: connection accepted, dialect recognised, admission decided,
//! state sent, test ended.
//!
//! Without the feature `full` what is left is the drop-in part. Modules whose types it needs have a
//! counterpart in the folder `absent`, which refuses what the build leaves out.

#![forbid(unsafe_code)]

pub mod client;
pub mod command_line;
#[cfg(feature = "full")]
pub mod compare;
#[cfg_attr(not(feature = "full"), path = "absent/diagnose.rs")]
pub mod diagnose;
#[cfg_attr(not(feature = "full"), path = "absent/expect.rs")]
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
mod outcome;
#[cfg(feature = "full")]
pub mod path;
pub mod progress;
#[cfg_attr(not(feature = "full"), path = "absent/record.rs")]
pub mod record;
#[cfg(feature = "full")]
pub mod report;
pub mod server;
#[cfg(feature = "full")]
pub mod sweep;
#[cfg(feature = "full")]
pub mod trend;
pub mod trial;
#[cfg_attr(not(feature = "tui"), path = "view/without.rs")]
pub mod view;
#[cfg(feature = "full")]
pub mod watch;

pub use client::Client;
#[cfg(feature = "full")]
pub use diagnose::diagnose;
pub use linerate_engine::dialect::iperf3::client::ClientResult;
pub use linerate_engine::{Interrupts, StopHandle};
pub use linerate_model as model;
pub use outcome::{Error, Outcome};
pub use progress::Progress;
pub use server::Server;
#[cfg(feature = "full")]
pub use sweep::sweep;
