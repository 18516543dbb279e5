//! A load with both hosts watched while it is recorded.

use std::net::IpAddr;
use std::time::Duration;

use linerate_http::control::CellMark;
use linerate_http::load::{Observer, SecondPart};
use linerate_model::http::SideFigures;

use super::server_side::ServerSide;
use super::signals::Stop;
use super::watch::{STEP, STEP_LONG, Watch};

/// Says how far a load is.
pub(super) trait Voice {
    /// Its connections are open.
    fn ramped(&mut self, opened: u64, wanted: u64);

    /// A second is over.
    fn second(&mut self, second: &SecondPart, watch: &Watch);
}

/// Begins and ends the figures of both hosts with the window of a load.
pub(super) struct Observed<'a> {
    pub(super) watch: &'a Watch,
    pub(super) side: Option<&'a mut ServerSide>,
    pub(super) stop: &'a mut Stop,
    pub(super) voice: &'a mut dyn Voice,
    /// What the server's host is told of it.
    pub(super) mark: CellMark,
    pub(super) server: IpAddr,
    pub(super) figures: BothSides,
}

/// What a load cost both hosts.
#[derive(Debug, Default)]
pub(super) struct BothSides {
    pub(super) client: Option<SideFigures>,
    pub(super) server: Option<SideFigures>,
}

impl Observer for Observed<'_> {
    fn started(&mut self, workers: &[u32]) {
        self.watch.count_in(workers);
    }

    fn ramped(&mut self, opened: u64, wanted: u64) {
        self.voice.ramped(opened, wanted);
    }

    fn load_begins(&mut self) {
        self.watch.prepare(Some(self.server), self.step());
        if let Some(side) = &mut self.side {
            side.prepare(&self.mark);
        }
    }

    fn window_opened(&mut self) {
        self.watch.begin(Some(self.server), self.step());
        if let Some(side) = &mut self.side {
            side.begin(&self.mark);
        }
    }

    fn second(&mut self, second: &SecondPart) {
        self.voice.second(second, self.watch);
    }

    fn window_closed(&mut self) {
        self.figures.client = self.watch.end();
        // They end with the run.
        self.watch.count_in(&[]);
        self.figures.server = self.side.as_mut().and_then(|side| side.end(&self.mark.id));
    }

    fn is_stopped(&mut self) -> bool {
        self.stop.is_wanted()
    }
}

impl Observed<'_> {
    /// Time between two looks.
    fn step(&self) -> Duration {
        let expected_ms = self.mark.expected_ms.unwrap_or(0);
        if u128::from(expected_ms) > LONG.as_millis() {
            STEP_LONG
        } else {
            STEP
        }
    }
}

const LONG: Duration = Duration::from_secs(60);
