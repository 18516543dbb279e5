//! A load with both hosts sampled while it is recorded.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_model::http::{EndpointStats, LoadResult, Mode};
use linerate_model::outcome::Error;

use super::Stop;
use super::progress::SecondsPrinter;
use super::requests::CellMark;
use super::server_side::ServerSide;
use super::watch::{STEP, STEP_LONG, Watch};
use crate::load::{self, Breaker, LoadSpec, Observer, SecondPart, WorkerPool};

/// Begins and ends the statistics of both hosts with the window of a load.
pub(super) struct Observed<'a> {
    watch: &'a Watch,
    side: Option<&'a mut ServerSide>,
    stop: &'a mut Stop,
    /// `None` where nothing is shown.
    progress: Option<&'a mut SecondsPrinter>,
    /// Mark that is sent to the server's host.
    mark: CellMark,
    server: Option<IpAddr>,
    /// Time between two samples of this host.
    step: Duration,
    stats: BothSides,
}

impl<'a> Observed<'a> {
    pub(super) fn new(
        watch: &'a Watch,
        side: Option<&'a mut ServerSide>,
        stop: &'a mut Stop,
        progress: Option<&'a mut SecondsPrinter>,
        mark: CellMark,
    ) -> Self {
        Self {
            watch,
            side,
            stop,
            progress,
            mark,
            server: None,
            step: STEP,
            stats: BothSides::default(),
        }
    }

    /// Runs a load.
    ///
    /// # Errors
    /// The generator's.
    pub(super) fn run(
        mut self,
        load: LoadSpec,
        pool: &WorkerPool,
        breaker: Breaker,
    ) -> Result<(LoadResult, BothSides), Error> {
        self.mark.expected_ms = Some(load.duration_ns / 1_000_000);
        self.server = load.destinations.first().map(SocketAddr::ip);
        self.step = step_of(&load);
        let result = load::run(load, pool, breaker, &mut self)?;
        Ok((result, self.stats))
    }
}

/// Cost of a load at both hosts.
#[derive(Debug, Default)]
pub(super) struct BothSides {
    pub client: Option<EndpointStats>,
    pub server: Option<EndpointStats>,
}

impl Observer for Observed<'_> {
    fn started(&mut self, process_ids: &[u32]) {
        self.watch.count_in(process_ids);
    }

    fn ramped(&mut self, opened: u64, wanted: u64) {
        if let Some(progress) = &mut self.progress {
            progress.ramped(opened, wanted);
        }
    }

    fn load_begins(&mut self) {
        self.watch.prepare(self.server, self.step);
        if let Some(side) = &mut self.side {
            side.prepare(&self.mark);
            // Samples during the load are for a display alone.
            if self.progress.as_ref().is_some_and(|shown| shown.is_shown()) {
                side.request_sample();
            }
        }
    }

    fn window_opened(&mut self) {
        self.watch.begin(self.server, self.step);
        if let Some(side) = &mut self.side {
            side.begin(&self.mark);
        }
    }

    fn second(&mut self, second: &SecondPart) {
        if let Some(progress) = &mut self.progress {
            let side = self.side.as_mut().filter(|_| progress.is_shown());
            let server = side.and_then(|side| side.last_reading());
            progress.second(second, [self.watch.last_reading(), server]);
        }
    }

    fn window_closed(&mut self) {
        // The window of this host ends first: the response of the server takes a round trip.
        self.stats.client = self.watch.end();
        // They end with the run.
        self.watch.count_in(&[]);
        self.stats.server = self.side.as_mut().and_then(|side| side.end(&self.mark.id));
    }

    fn is_stopped(&mut self) -> bool {
        self.stop.is_wanted()
    }
}

/// Time between two samples of this host under such a load. Samples are most of the cost of idle
/// connections.
fn step_of(load: &LoadSpec) -> Duration {
    if matches!(load.mode, Mode::Idle { .. }) || Duration::from_nanos(load.duration_ns) > LONG {
        STEP_LONG
    } else {
        STEP
    }
}

const LONG: Duration = Duration::from_secs(60);
