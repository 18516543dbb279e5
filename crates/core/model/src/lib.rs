//! The nouns every linerate crate shares.
//!
//! Nothing here performs I/O or reads a clock. One way in ([`spec::TestSpec`]) and one way out
//! ([`event::Event`]) serve every dialect; units stand in field names, and a value that could not
//! be measured is `None`, never zero.

#![forbid(unsafe_code)]

pub mod command_line;
pub mod data_path;
pub mod event;
pub mod facts;
pub mod failure;
pub mod finding;
pub mod fleet;
pub mod fnv;
pub mod http;
pub mod interval;
pub mod json_path;
pub mod link_local;
pub mod live;
pub mod measure;
pub mod metrics;
mod name;
pub mod network;
pub mod numbers;
pub mod outcome;
pub mod outliers;
pub mod path;
pub mod placement;
pub mod policy;
mod port_range;
pub mod printable;
pub mod record;
pub mod runs;
pub mod service;
pub mod sink;
pub mod snapshot;
pub mod spec;
pub mod spread;
pub mod stats;
pub mod stream;
pub mod summary;
pub mod sweep;
mod tcp_interval;
mod text;
pub mod two_sample;
pub mod units;
pub mod words;
pub mod workload;

pub use event::Event;
pub use failure::{Failure, FailureKind};
pub use interval::{IntervalReport, StreamInterval, TcpInterval, UdpInterval};
pub use name::{from_stored_name, stored_name};
pub use outcome::{Error, Outcome};
pub use port_range::PortRange;
pub use service::ServerEvent;
pub use sink::{EventSink, ServerReporter, SinkError};
pub use spec::{Direction, EndCondition, TestSpec, Transport};
pub use stream::{Flow, Stream, StreamId, StreamRole};
pub use summary::{CpuUsage, EndpointTotals, StreamSummary, Summary};
