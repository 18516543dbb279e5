//! Watches: one command line of this program, repeated on a grid. Each slot leaves one record.

mod child;
mod history;
mod results;
pub mod systemd;

use std::ffi::OsString;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use linerate_document::progress::Progress;
use linerate_model::outcome::{Error, Outcome};
use linerate_model::record::{RunKind, RunRecord, Trial};
use linerate_sys::poll::{Interest, wait_fd};
use linerate_sys::signal::{Signal, Signals};
use serde_json::{Value, json};

use super::history::local_time;
use super::record::unix_ms;
use crate::conclude::alarm::{Alarm, Transition};
use crate::conclude::episodes::{Episode, Grouping, episodes};
use crate::conclude::expect::Expectations;
use crate::conclude::grid::Grid;
use crate::plan::quiet::Quiet;
use crate::plan::schedule::{Schedule, Slot};
use child::Ended;
use history::History;
pub(super) use history::SKIPPED;
pub use results::{Outlet, write_metrics};

/// Time of the command of an alert.
const ALERT_TIMEOUT: Duration = Duration::from_secs(30);
/// States of a watch in its alerts.
const FAILING: &str = "failing";
const OK: &str = "ok";
/// First pause before a failed run is tried again; each is twice as long as the one before.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Specification of a watch: the repeated command, its times, and the destination of the results.
#[derive(Debug)]
pub struct WatchSpec {
    /// Name of the watch; the grid follows from it.
    pub name: String,
    /// Words of the command line of this program.
    pub command: Vec<OsString>,
    /// Expected time of a run.
    pub run_length: Duration,
    /// Time between two runs.
    pub period: Duration,
    /// Runs until the end; `None` for no limit.
    pub count: Option<u32>,
    /// One run now.
    pub is_once: bool,
    /// When nothing is run.
    pub quiet: Quiet,
    /// Limits of the measures.
    pub expect: Option<Expectations>,
    /// Command line of the shell for alerts.
    pub alert: Option<String>,
    /// Database of the runs, as [`linerate_store::Place::find`] takes it.
    pub store: Option<String>,
}

impl WatchSpec {
    /// `command`, which takes `run_length`, every `period` without an end, a quiet time, limits or
    /// reports.
    pub fn new(
        name: impl Into<String>,
        command: Vec<OsString>,
        run_length: Duration,
        period: Duration,
    ) -> Self {
        Self {
            name: name.into(),
            command,
            run_length,
            period,
            count: None,
            is_once: false,
            quiet: Quiet::default(),
            expect: None,
            alert: None,
            store: None,
        }
    }
}

/// Repeats a run until its number of runs or a signal ends it. The outcome is that of the last run.
/// `outlets` opens what takes the results besides the history, once the period is known to fit.
/// `grouping` finds what cells of a fleet that got worse have in common.
///
/// # Errors
/// A period that a run does not fit in, or results that cannot be kept.
pub fn watch(
    spec: &WatchSpec,
    outlets: impl FnOnce() -> Result<Vec<Outlet>, String>,
    grouping: Grouping,
    signals: &Signals,
    progress: Progress,
) -> Result<Outcome, Error> {
    let zone = TimeZone::system();
    let quiet = spec.quiet.clone();
    let schedule = Schedule::new(&spec.name, spec.period, spec.run_length, quiet, zone)
        .map_err(Error::usage)?;
    let history = History::open(&spec.name, spec.store.as_deref()).map_err(Error::failed)?;
    let outlets = outlets().map_err(Error::failed)?;

    let mut watch = Watch {
        spec,
        schedule,
        signals,
        progress,
        history,
        outlets,
        grouping,
        alarm: Alarm::default(),
    };
    watch.restore();

    let ended = if spec.is_once {
        watch.once()
    } else {
        watch.repeat()
    };
    match ended {
        Ok(outcome) => Ok(outcome),
        // systemd stops a service with SIGTERM (systemd.kill(5)): a regular end.
        Err(Stop::Signal(Signal::Terminate)) => Ok(Outcome::Done),
        Err(Stop::Signal(_)) => Ok(Outcome::Interrupted),
        Err(Stop::Failed(error)) => Err(error),
    }
}

struct Watch<'a> {
    spec: &'a WatchSpec,
    schedule: Schedule,
    signals: &'a Signals,
    progress: Progress,
    history: History,
    outlets: Vec<Outlet>,
    grouping: Grouping,
    alarm: Alarm,
}

/// Why no further run is made.
enum Stop {
    Signal(Signal),
    Failed(Error),
}

impl Watch<'_> {
    /// State and results after the runs of an earlier process, which reported their alerts.
    fn restore(&mut self) {
        for end in 1..=self.history.runs().len() {
            let result = self.judge(end).0;
            let _ = self.alarm.observe(result);
        }
    }

    fn once(&mut self) -> Result<Outcome, Stop> {
        let now = Timestamp::now();
        if self.schedule.is_quiet(now) {
            self.progress.line("nothing is run in quiet hours");
            return Ok(Outcome::Done);
        }
        self.run_slot()
    }

    fn repeat(&mut self) -> Result<Outcome, Stop> {
        let mut outcome = Outcome::Done;
        let mut after = Timestamp::now();

        let mut runs = 0;
        while self.spec.count.is_none_or(|count| runs < count) {
            let none = || Stop::Failed(Error::usage("the quiet hours leave no time for a run"));
            let slot = self.schedule.next(after).ok_or_else(none)?;
            self.wait_until(slot.start)?;
            outcome = self.run_slot()?;
            runs += 1;
            // A clock that was set back must not run the slot a second time.
            after = Timestamp::now().max(slot.start);
            self.skip_overrun(slot, after);
        }

        Ok(outcome)
    }

    /// The clock may be set while this waits, so it is read again every few seconds.
    fn wait_until(&mut self, start: Timestamp) -> Result<(), Stop> {
        const READ_CLOCK: Duration = Duration::from_secs(10);

        if self.progress.is_terminal() {
            self.progress
                .update(&format!("next run at {}", local_time(unix_ms(start))));
        }

        loop {
            let left = start
                .duration_since(Timestamp::now())
                .max(jiff::SignedDuration::ZERO)
                .unsigned_abs();
            if left.is_zero() {
                return Ok(());
            }

            self.pause(left.min(READ_CLOCK))?;
        }
    }

    fn pause(&self, time: Duration) -> Result<(), Stop> {
        let failed = |error| Stop::Failed(Error::failed(error));
        let is_ready = wait_fd(self.signals, Interest::READ, Some(time)).map_err(failed)?;

        match self.signals.take().map_err(failed)? {
            Some(signal) if is_ready => Err(Stop::Signal(signal)),
            _ => Ok(()),
        }
    }

    /// One run, which is tried again after a failure while half of the slot is not over.
    fn run_slot(&mut self) -> Result<Outcome, Stop> {
        let started = Instant::now();
        let mut pause = RETRY_PAUSE;
        let run = loop {
            let run = self.run_once()?;
            // The pause counts already, so that no attempt begins in the second half.
            if history::has_result(&run) || started.elapsed() + pause > self.schedule.retry_time() {
                break run;
            }

            self.pause(pause)?;
            pause *= 2;
        };

        self.finish(run)
    }

    fn run_once(&mut self) -> Result<RunRecord, Stop> {
        let failed = |text| Stop::Failed(Error::failed(text));
        let started = Timestamp::now();
        let output = self.history.output();
        let limit = self.time_limit();
        let ended = child::run_self(
            &self.spec.command,
            &[("LINERATE_STORE", output.into())],
            limit,
            self.signals,
        );
        match ended.map_err(failed)? {
            Ended::Exited(status, message) => {
                let reason = message.unwrap_or_else(|| format!("the run ended with {status}"));
                Ok(self.history.take(started, &reason))
            }
            Ended::Interrupted(signal) => Err(Stop::Signal(signal)),
            Ended::TimedOut => {
                let taken = limit.as_secs_f64();
                let expected = self.spec.run_length.as_secs_f64();
                Ok(self.history.failed(
                    started,
                    &format!("no end after {taken:.0} s; a run takes {expected:.0} s"),
                ))
            }
        }
    }

    /// Time after which a run is ended: on a path that is cut off TCP would wait for minutes.
    fn time_limit(&self) -> Duration {
        let run = self.spec.run_length;
        // On a path that is cut off a run waits for its return: one of 1 s took 40 s.
        run + run.max(self.spec.period / 2)
    }

    fn finish(&mut self, run: RunRecord) -> Result<Outcome, Stop> {
        if let Some(message) = self.history.keep(run) {
            self.progress.line(&message);
        }

        let (result, reason) = self.judge(self.history.runs().len());
        let transition = self.alarm.observe(result);
        let episodes = self.episodes();
        let open = episodes.iter().filter(|episode| episode.ended.is_none());
        let open = open.map(|episode| episode.sentence(|at| self.round(at)));
        let open = open.collect::<Vec<_>>().join("; ");
        let (result, reason) = match result {
            Outcome::Done if !open.is_empty() => (Outcome::Worse, Some(open)),
            _ => (result, reason),
        };
        let run = self.history.runs().last();
        self.progress
            .line(&run.map_or_else(String::new, |run| results::line(run, reason.as_deref())));

        if let Some(transition) = transition {
            let reason = reason.as_deref().unwrap_or_default();
            self.alert(&self.alert_of_run(transition, reason))?;
        }
        for alert in self.alerts_of_episodes(&episodes) {
            self.alert(&alert)?;
        }

        for outlet in &self.outlets {
            if let Err(error) = outlet(self.history.runs()) {
                self.progress.line(&error);
            }
        }

        Ok(result)
    }

    /// Result of the last of the first `end` runs, and the reason where it is not good.
    fn judge(&self, end: usize) -> (Outcome, Option<String>) {
        let Some(run) = end
            .checked_sub(1)
            .and_then(|last| self.history.runs().get(last))
        else {
            return (Outcome::Done, None);
        };
        if !history::has_result(run) {
            return (Outcome::NotCompleted, run.reason.clone());
        }

        // A fleet is judged by its cells as well, which have states of their own.
        let is_fleet = run.kind == RunKind::Fleet;
        let trials: Vec<&Trial> = run.trials.iter().collect();
        let missed = self
            .spec
            .expect
            .as_ref()
            .map_or_else(Vec::new, |expect| expect.missed(&trials));
        if !missed.is_empty() {
            let clauses: Vec<String> = missed.iter().map(ToString::to_string).collect();
            return (Outcome::ObjectiveMissed, Some(clauses.join("; ")));
        }

        match history::change(self.history.runs().get(..end).unwrap_or_default()) {
            Some(change) if !is_fleet => (Outcome::Worse, Some(change)),
            _ => (Outcome::Done, None),
        }
    }

    fn skip_overrun(&mut self, slot: Slot, now: Timestamp) {
        for skipped in self.schedule.overrun(slot, now) {
            self.progress.line(&format!(
                "{} skipped: the run before it had not ended",
                local_time(unix_ms(skipped.start))
            ));
            self.history.skip(skipped.start);
        }
    }

    /// Episodes of the cells of a fleet; none of another run.
    fn episodes(&self) -> Vec<Episode> {
        let runs = self.history.runs();
        if runs.last().is_some_and(|run| run.kind == RunKind::Fleet) {
            episodes(&Grid::of_fleet(runs), self.grouping)
        } else {
            Vec::new()
        }
    }

    /// A run by its number since the watch began.
    fn round(&self, at: usize) -> String {
        format!("round {}", at + self.history.first_round())
    }

    /// The alert of the run as a whole.
    fn alert_of_run(&self, transition: Transition, reason: &str) -> Value {
        let state = match transition {
            Transition::Failing => FAILING,
            Transition::Recovered => OK,
        };
        let run = self.history.runs().last();
        // A fleet has a trial for each cell, which may be thousands.
        let tested = run.filter(|run| run.kind != RunKind::Fleet);
        json!({
            "watch": self.spec.name, "state": state, "reason": reason,
            "run": run.map(|run| run.run_id), "started_at": run.map(|run| &run.started_at),
            "trials": tested.map(|run| run.trials.iter().map(|trial| &trial.measures).collect::<Vec<_>>()),
        })
    }

    /// Alerts of the episodes that the last run began or ended.
    fn alerts_of_episodes(&self, episodes: &[Episode]) -> Vec<Value> {
        let last = self.history.runs().len().saturating_sub(1);
        let first = self.history.first_round();
        let run = self.history.runs().last();
        let alert = |episode: &Episode| {
            let (state, began, reason) = match episode.ended {
                Some((began, found)) if found == last => {
                    (OK, began, episode.recovery(|at| self.round(at)))
                }
                _ if episode.found == last => (
                    FAILING,
                    episode.began,
                    Some(episode.sentence(|at| self.round(at))),
                ),
                _ => return None,
            };
            Some(json!({
                "watch": self.spec.name, "state": state, "reason": reason,
                "run": run.map(|run| run.run_id), "started_at": run.map(|run| &run.started_at),
                "subject": episode.subject, "round": began + first, "finding": episode.finding,
            }))
        };
        episodes.iter().filter_map(alert).collect()
    }

    fn alert(&mut self, text: &Value) -> Result<(), Stop> {
        let Some(command) = &self.spec.alert else {
            return Ok(());
        };
        let failure =
            match child::run_shell(command, &format!("{text}\n"), ALERT_TIMEOUT, self.signals) {
                Ok(Ended::Exited(status, _)) if status.success() => return Ok(()),
                Ok(Ended::Exited(status, message)) => message.unwrap_or_else(|| status.to_string()),
                Ok(Ended::Interrupted(signal)) => return Err(Stop::Signal(signal)),
                Ok(Ended::TimedOut) => format!("no end within {} s", ALERT_TIMEOUT.as_secs()),
                Err(error) => error,
            };
        self.progress.line(&format!("alert command: {failure}"));

        Ok(())
    }
}
