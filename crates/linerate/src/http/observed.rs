//! A load with both hosts watched while it is recorded.

use std::net::IpAddr;
use std::time::Duration;

use linerate_http::control::CellMark;
use linerate_http::load::{LoadSpec, Observer, SecondPart};
use linerate_model::http::{EndpointStats, Mode};

use super::server_side::ServerSide;
use super::signals::Stop;
use super::watch::{STEP, STEP_LONG, Watch};

/// Says how far a load is.
pub(super) trait LoadProgress {
    /// Its connections are open.
    fn ramped(&mut self, opened: u64, wanted: u64);

    /// A second is over.
    fn second(&mut self, second: &SecondPart, watch: &Watch);
}

/// Begins and ends the statistics of both hosts with the window of a load.
pub(super) struct Observed<'a> {
    pub(super) watch: &'a Watch,
    pub(super) side: Option<&'a mut ServerSide>,
    pub(super) stop: &'a mut Stop,
    pub(super) progress: &'a mut dyn LoadProgress,
    /// What is sent to the server's host.
    pub(super) mark: CellMark,
    pub(super) server: IpAddr,
    /// Time between two samples of this host, see [`step_of`].
    pub(super) step: Duration,
    pub(super) stats: BothSides,
}

/// What a load cost both hosts.
#[derive(Debug, Default)]
pub(super) struct BothSides {
    pub(super) client: Option<EndpointStats>,
    pub(super) server: Option<EndpointStats>,
}

impl Observer for Observed<'_> {
    fn started(&mut self, process_ids: &[u32]) {
        self.watch.count_in(process_ids);
    }

    fn ramped(&mut self, opened: u64, wanted: u64) {
        self.progress.ramped(opened, wanted);
    }

    fn load_begins(&mut self) {
        self.watch.prepare(Some(self.server), self.step);
        if let Some(side) = &mut self.side {
            side.prepare(&self.mark);
        }
    }

    fn window_opened(&mut self) {
        self.watch.begin(Some(self.server), self.step);
        if let Some(side) = &mut self.side {
            side.begin(&self.mark);
        }
    }

    fn second(&mut self, second: &SecondPart) {
        self.progress.second(second, self.watch);
    }

    fn window_closed(&mut self) {
        self.stats.client = self.watch.end();
        // They end with the run.
        self.watch.count_in(&[]);
        self.stats.server = self.side.as_mut().and_then(|side| side.end(&self.mark.id));
    }

    fn is_stopped(&mut self) -> bool {
        self.stop.is_wanted()
    }
}

/// Time between two samples of this host under such a load. Samples are most of the cost of idle connections.
pub(super) fn step_of(load: &LoadSpec) -> Duration {
    if matches!(load.mode, Mode::Idle { .. }) || Duration::from_nanos(load.duration_ns) > LONG {
        STEP_LONG
    } else {
        STEP
    }
}

const LONG: Duration = Duration::from_secs(60);
