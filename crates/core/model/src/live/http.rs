//! An HTTP load or experiment.

use std::collections::BTreeMap;

use super::{LiveLevel, LiveLine};
use crate::http::{CellKey, Reading};

/// The current run and the cells so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveHttp {
    /// The server.
    pub target: String,
    /// Description of the current run; empty before the first run.
    pub running: String,
    /// Number of the run, from 1; 0 before the first one and in a load.
    pub run: u32,
    /// Runs in all, as planned now; 0 in a load.
    pub runs: u32,
    /// Time left in s; `None` when unknown.
    pub left_s: Option<f64>,
    /// Complete 2xx answers of each second of the run.
    pub ok_per_s: LiveLine,
    /// Bytes of their bodies in the last second.
    pub payload_bytes: u64,
    /// 99th percentile of the latency in the last second; `None` without answers.
    pub p99_ns: Option<u64>,
    /// Failures of the run so far.
    pub errors: u64,
    /// Connections open now.
    pub open: u64,
    /// The last sample of this host.
    pub client: Option<Reading>,
    /// That of the server; absent without a control channel.
    pub server: Option<Reading>,
    /// Answers per second of the runs of each cell.
    pub cells: BTreeMap<CellKey, LiveLevel>,
}

impl LiveHttp {
    /// A run begins.
    pub fn begin(&mut self, running: String) {
        self.running = running;
        self.ok_per_s = LiveLine::default();
        self.payload_bytes = 0;
        self.p99_ns = None;
        self.errors = 0;
        self.open = 0;
    }
}
