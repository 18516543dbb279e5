//! The coordinator machine over a carrier: one loop, which ends at an action.

use std::collections::BTreeMap;

use crate::protocol::coordinator::{Action, Coordinator, Input, Step};
use crate::run::carrier::{Carrier, HostEvent, wait};
use linerate_model::record::RunId;
use linerate_sys::clock::monotonic_ns;
use linerate_sys::signal::Signals;

/// Longest wait for connections that end.
const CLOSE_NS: u64 = 3_000_000_000;

/// The machine and what carries its lines.
pub(super) struct Control<'a> {
    pub coordinator: Coordinator,
    carrier: Box<dyn Carrier>,
    signals: &'a Signals,
    /// Why hosts take part no longer. Untrusted text.
    pub reasons: BTreeMap<usize, String>,
    cancels: u32,
    /// Hosts that had no plan when the run was ended: they confirm nothing.
    without_plan: Vec<usize>,
    /// Lines of results of an earlier coordinator of the run, with their hosts.
    pub history: Vec<(usize, Vec<u8>)>,
}

/// A coordinator in charge of its hosts.
pub(super) struct Lease {
    pub carrier: Box<dyn Carrier>,
    /// The epoch of its commands; 1 where no other coordinator can be in charge.
    pub epoch: u64,
    /// The new run, or the one that is continued.
    pub run: RunId,
    /// Lines of results that the run has so far, with their hosts.
    pub history: Vec<(usize, Vec<u8>)>,
}

/// The run ended before the awaited action.
pub(super) enum Ended {
    /// The user cancelled it. With hosts that did not confirm their end.
    Cancelled(Vec<usize>),
    /// The system refused what the loop needs.
    Failed(String),
}

impl<'a> Control<'a> {
    pub(super) fn new(
        coordinator: Coordinator,
        carrier: Box<dyn Carrier>,
        signals: &'a Signals,
    ) -> Self {
        Self {
            coordinator,
            carrier,
            signals,
            reasons: BTreeMap::new(),
            cancels: 0,
            without_plan: Vec::new(),
            history: Vec::new(),
        }
    }

    /// Passes a decision on, and runs until this step has ended: all actions in order.
    pub(super) fn step(&mut self, input: Input, step: Step) -> Result<Vec<Action>, Ended> {
        self.pass(input)?;
        self.run_until(|action| *action == Action::StepDone(step))
    }

    /// Passes a decision on.
    pub(super) fn pass(&mut self, input: Input) -> Result<(), Ended> {
        let taken = self.coordinator.handle_local(monotonic_ns(), input);
        taken.map_err(|busy| Ended::Failed(busy.to_string()))
    }

    /// Runs until the last of the awaited actions.
    pub(super) fn run_until(
        &mut self,
        is_last: impl Fn(&Action) -> bool,
    ) -> Result<Vec<Action>, Ended> {
        let mut actions = Vec::new();
        self.run_each(|_, action| {
            let is_over = is_last(&action);
            actions.push(action);
            is_over
        })?;
        Ok(actions)
    }

    /// Passes a decision on, and every action that follows to `take` until it is the last one.
    pub(super) fn step_each(
        &mut self,
        input: Input,
        take: impl FnMut(&Coordinator, Action) -> bool,
    ) -> Result<(), Ended> {
        self.pass(input)?;
        self.run_each(take)
    }

    fn run_each(
        &mut self,
        mut take: impl FnMut(&Coordinator, Action) -> bool,
    ) -> Result<(), Ended> {
        loop {
            while let Some(action) = self.coordinator.poll_action() {
                match &action {
                    Action::Send { hosts, line } => {
                        self.carrier.send_all(hosts, line);
                        continue;
                    }
                    Action::Dropped { host, reason } => {
                        // The first reason is the cause; later ones follow from it.
                        let known = self.reasons.entry(*host);
                        known.or_insert_with(|| reason.to_string());
                        self.carrier.close(*host);
                    }
                    Action::Finished { unconfirmed } => {
                        let mut all = std::mem::take(&mut self.without_plan);
                        all.extend(unconfirmed);
                        return Err(Ended::Cancelled(all));
                    }
                    _ => {}
                }
                if take(&self.coordinator, action) {
                    return Ok(());
                }
            }

            self.wait()?;
        }
    }

    /// Ends the run at all hosts and closes their connections. Hosts that did not confirm their
    /// end.
    pub(super) fn finish(mut self) -> Vec<usize> {
        self.without_plan = self.hosts_by_plan(false);
        let unconfirmed = match self.step_each(Input::Cancel, |_, _| false) {
            Err(Ended::Cancelled(unconfirmed)) => unconfirmed,
            // It has ended before.
            _ => Vec::new(),
        };

        self.close();
        unconfirmed
    }

    fn close(&mut self) {
        let hosts = 0..self.coordinator.hosts();
        hosts.for_each(|host| self.carrier.close(host));

        let until_ns = monotonic_ns().saturating_add(CLOSE_NS);
        while self.carrier.has_open() && monotonic_ns() < until_ns {
            if wait(&*self.carrier, None, Some(until_ns)).is_err() {
                return;
            }

            self.carrier.poll(monotonic_ns());
        }
    }

    /// Hosts that have a plan, or those that have none.
    fn hosts_by_plan(&self, has_plan: bool) -> Vec<usize> {
        let hosts = 0..self.coordinator.hosts();
        hosts
            .filter(|host| self.coordinator.is_planned(*host) == has_plan)
            .collect()
    }

    fn wait(&mut self) -> Result<(), Ended> {
        let events = self.carrier.poll(monotonic_ns());
        // Of a time before the read, a line that arrives meanwhile would have been under way for
        // less than it was.
        let now_ns = monotonic_ns();
        let is_due = self
            .coordinator
            .poll_timeout()
            .is_some_and(|at_ns| now_ns >= at_ns);
        let has_input = is_due || !events.is_empty();

        for (host, event) in events {
            match event {
                HostEvent::Line(line) => self.coordinator.handle_line(now_ns, host, &line),
                HostEvent::TooLong => self.coordinator.handle_too_long(now_ns, host),
                HostEvent::Lost { reason } => {
                    self.reasons.entry(host).or_insert(reason);
                    self.coordinator.handle_lost(now_ns, host);
                }
            }
        }

        if is_due {
            self.coordinator.handle_timeout(now_ns);
        }

        // What follows from it comes before the next wait.
        if has_input {
            return Ok(());
        }

        let until_ns = self.coordinator.poll_timeout();
        let is_signalled = wait(&*self.carrier, Some(self.signals), until_ns)
            .map_err(|error| Ended::Failed(error.to_string()))?;
        if is_signalled {
            self.cancel()?;
        }

        Ok(())
    }

    /// The first signal ends the run, the second one the wait for its end.
    fn cancel(&mut self) -> Result<(), Ended> {
        self.cancels += 1;
        if self.cancels > 1 {
            // The second signal does not wait: tests of these hosts end by their leases.
            return Err(Ended::Cancelled(self.hosts_by_plan(true)));
        }

        self.without_plan = self.hosts_by_plan(false);
        self.pass(Input::Cancel)
    }
}
