//! One run of a cell: the load, and both hosts while it lasts.

use linerate_http::control::CellMark;
use linerate_http::load::{self, Breaker, Crew, LoadSpec, SecondPart};
use linerate_lab::http::cells::{self, PlannedRun};
use linerate_lab::http::plan::{Close, Ramp};
use linerate_lab::http::preflight::too_many_connections;
use linerate_lab::http::{estimate, flags};
use linerate_model::http::{CellRun, Flag, LoadResult, Phase, RunState, SideFigures};
use linerate_sys::clock;

use super::screen::Screen;
use super::site::{self, Site};
use crate::cli::http::lab::LabSpec;
use crate::cli::http::load::nanoseconds;
use crate::run::http::generator;
use crate::run::http::observed::{BothSides, Observed, Voice, step_of};
use crate::run::http::signals::Stop;
use crate::run::http::trouble::Trouble;
use crate::run::http::watch::Watch;

/// What a run needs from around it.
pub(super) struct Bench<'a> {
    pub(super) spec: &'a LabSpec,
    pub(super) site: &'a mut Site,
    pub(super) watch: &'a Watch,
    pub(super) stop: &'a mut Stop,
    pub(super) screen: &'a mut Screen,
    pub(super) bytes_max: Option<u64>,
}

impl Bench<'_> {
    /// Makes the run, and once more when its two halves do not agree.
    pub(super) fn run(&mut self, planned: &PlannedRun, is_dirty: bool) -> Result<CellRun, Trouble> {
        let first = self.once(planned, is_dirty)?;
        let is_unsteady = first.flags.contains(&Flag::Unsteady);
        let is_lost = first.flags.contains(&Flag::ControlLost);
        if first.state == RunState::Done && (is_unsteady || is_lost) {
            return self.once(planned, is_dirty);
        }
        Ok(first)
    }

    fn once(&mut self, planned: &PlannedRun, is_dirty: bool) -> Result<CellRun, Trouble> {
        let load = self.load_spec(planned)?;
        let crew = match self.crew(&load) {
            Ok(crew) => crew,
            Err(reason) => return Ok(skipped(planned, &reason)),
        };
        let breaker = Breaker::new(self.spec.tolerates_failures || self.site.claims.is_ours, self.bytes_max);
        let started_unix_ms = clock::unix_ms();
        let mark = self.mark(planned, &load);
        let mut voice = CellVoice {
            planned,
            screen: self.screen,
        };
        let mut seen = Observed {
            watch: self.watch,
            mark,
            server: self.site.address().ip(),
            side: self.site.server.as_mut(),
            stop: self.stop,
            voice: &mut voice,
            step: step_of(&load),
            figures: BothSides::default(),
        };
        let outcome = load::run(load, &crew, Some(breaker), &mut seen);
        let figures = seen.figures;
        let result = outcome.map_err(Trouble::failed)?;
        Ok(self.cell_run(planned, started_unix_ms, result, figures, is_dirty))
    }

    /// Threads and processes for a load, or why this host cannot make it.
    fn crew(&self, load: &LoadSpec) -> Result<Crew, String> {
        let too_many = too_many_connections(load.connections, load.streams);
        if let Some(why) = too_many.filter(|_| !load.protocol.is_plain_http1()) {
            return Err(why);
        }
        let threads = generator::threads(self.site.is_local(), self.spec.plan.defaults.explicit_threads());
        generator::crew(load.connections, threads, None)
    }

    fn cell_run(
        &mut self,
        planned: &PlannedRun,
        started_unix_ms: u64,
        result: LoadResult,
        figures: BothSides,
        is_dirty: bool,
    ) -> CellRun {
        let mut flags = flags::flags(&result);
        flags.extend(is_dirty.then_some(Flag::DirtyStart));
        let is_lost = self.site.server.as_mut().is_some_and(|side| side.take_loss());
        flags.extend(is_lost.then_some(Flag::ControlLost));
        let is_aborted = flags.contains(&Flag::Interrupted);
        CellRun {
            key: planned.key,
            repeat: planned.repeat,
            state: if is_aborted { RunState::Aborted } else { RunState::Done },
            reason: is_aborted.then(|| "interrupted".to_owned()),
            started_unix_ms,
            load: Some(result),
            client: figures.client.unwrap_or_default(),
            server: figures.server,
            flags,
        }
    }

    fn mark(&self, planned: &PlannedRun, load: &LoadSpec) -> CellMark {
        let key = &planned.key;
        CellMark {
            phase: Some(key.phase),
            payload_bytes: Some(key.payload_bytes),
            connections: Some(key.connections),
            expected_ms: Some(load.duration_ns / 1_000_000),
            peer: self.site.client,
            ..CellMark::named(format!("{}-r{}", cells::cell_name(key), planned.repeat))
        }
    }

    fn load_spec(&self, planned: &PlannedRun) -> Result<LoadSpec, Trouble> {
        let (plan, key) = (&self.spec.plan, &planned.key);
        let is_idle = key.phase == Phase::Idle;
        let is_ours = self.site.claims.is_ours;
        Ok(LoadSpec {
            destinations: self.site.destinations.clone(),
            sources: plan.source.addresses.clone(),
            ports: site::port_choice(plan.source.ports),
            request: self.site.request(key.payload_bytes)?,
            is_head: false,
            protocol: self.spec.protocol.clone(),
            streams: plan.protocol.streams,
            mode: cells::mode(plan, key),
            connections: key.connections,
            touches: is_idle && plan.c10k.idle.touch,
            ramp_per_s: match plan.defaults.ramp {
                Ramp::PerSecond(rate) => Some(rate),
                Ramp::Max => None,
            },
            connects_in_flight: CONNECTS_IN_FLIGHT,
            connect_timeout_ns: CONNECT_TIMEOUT_NS,
            timeout_ns: nanoseconds(plan.defaults.timeout),
            warmup_ns: if is_idle { 0 } else { nanoseconds(plan.defaults.warmup) },
            duration_ns: nanoseconds(estimate::window(plan, key)),
            reconnects_max: RECONNECTS_MAX,
            resets_at_end: match plan.source.close {
                Close::Auto => is_ours,
                Close::Reset => true,
                Close::Fin => false,
            },
            verifies: false,
            spins: false,
            tcp_keepalive_s: None,
            seed: plan.seed,
            port_range: generator::port_range(),
            ports_skipped: generator::reserved_ports(),
        })
    }
}

/// Shows the seconds of a run.
struct CellVoice<'a> {
    planned: &'a PlannedRun,
    screen: &'a mut Screen,
}

impl Voice for CellVoice<'_> {
    fn ramped(&mut self, opened: u64, _: u64) {
        self.screen.ramped(opened);
    }

    fn second(&mut self, second: &SecondPart, watch: &Watch) {
        self.screen.second(self.planned, second, watch);
    }
}

/// A run that could not be made.
pub(super) fn skipped(planned: &PlannedRun, reason: &str) -> CellRun {
    CellRun {
        key: planned.key,
        repeat: planned.repeat,
        state: RunState::Skipped,
        reason: Some(reason.to_owned()),
        started_unix_ms: clock::unix_ms(),
        load: None,
        client: SideFigures::default(),
        server: None,
        flags: Vec::new(),
    }
}

const CONNECTS_IN_FLIGHT: u32 = 256;
const CONNECT_TIMEOUT_NS: u64 = 3_000_000_000;
const RECONNECTS_MAX: u8 = 3;
