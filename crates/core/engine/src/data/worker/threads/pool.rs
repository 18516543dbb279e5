//! The threads of a test.

use std::sync::Arc;

use linerate_model::StreamRole;
use linerate_sys::clock;

use super::assignments::StreamAssignment;
use super::control::{Phase, RunControl};
use super::group::WorkerGroup;
use super::worker_checks::{WorkerChecks, idle_time};
use crate::data::plan::{ThreadPlan, arrives_on_all};

/// The threads of one test.
pub(crate) struct WorkerPool {
    control: Arc<RunControl>,
    senders: WorkerGroup,
    receivers: WorkerGroup,
    /// CPUs that workers may use.
    cpus: Vec<u32>,
    plan: ThreadPlan,
    checks: WorkerChecks,
    /// A saturated receiver was relieved: they do not become fewer with the CPUs that data arrives
    /// on.
    receivers_saturated: bool,
}

impl WorkerPool {
    /// Starts the threads of a plan, all of them on `pin_to` where the user named a CPU; there may
    /// be more or fewer while the streams move data.
    pub(crate) fn start(
        control: &Arc<RunControl>,
        streams: Vec<StreamAssignment>,
        plan: ThreadPlan,
        cpus: Vec<u32>,
        pin_to: Option<u32>,
    ) -> linerate_sys::Result<Self> {
        let (senders, receivers): (Vec<_>, Vec<_>) = streams
            .into_iter()
            .partition(|stream| plan.takes_turns || stream.role == StreamRole::Sender);

        Ok(Self {
            control: Arc::clone(control),
            senders: WorkerGroup::start(control, plan.senders, senders, pin_to)?,
            receivers: WorkerGroup::start(control, plan.receivers, receivers, pin_to)?,
            cpus,
            plan,
            checks: WorkerChecks::new(clock::monotonic_ns(), idle_time),
            receivers_saturated: false,
        })
    }

    /// When to call [`WorkerPool::adjust`] next, monotonic ns; `None` when the number of workers
    /// stays.
    pub(crate) fn next_check_ns(&self) -> Option<u64> {
        let may_change = self.senders.can_grow()
            || self.receivers.can_grow()
            || self.receivers.active() > 1
            || self.may_gather_senders();
        // A group that grows after a stop would have a worker that the stop does not count, and the
        // owner would wait for one acknowledgement too few.
        (may_change && self.is_running()).then(|| self.checks.next_ns())
    }

    /// Once a call is due, changes the number of workers to what was seen since the last one: the
    /// CPUs on which segments of the streams of a role arrive, none where that is not known, and
    /// workers without idle time.
    pub(crate) fn adjust(&mut self, now_ns: u64, incoming_cpus: impl Fn(StreamRole) -> Vec<u32>) {
        if self.next_check_ns().is_none_or(|due_ns| now_ns < due_ns) {
            return;
        }

        let saturation_ns = self.checks.end_period(now_ns);
        self.follow_incoming_cpus(incoming_cpus);
        if let Some(elapsed_ns) = saturation_ns
            && self.relieve_saturated(now_ns, elapsed_ns)
        {
            self.checks.has_grown(now_ns);
        }
    }

    /// Where the number of CPUs that segments arrive on stays different from that of the workers,
    /// there is a receiver for each of the CPUs from then on, or as many as the plan has for all.
    /// Where the senders of many streams stay more, they become fewer, once: saturated ones are
    /// relieved again where a CPU is idle.
    fn follow_incoming_cpus(&mut self, incoming_cpus: impl Fn(StreamRole) -> Vec<u32>) {
        if self.receivers.active() > 1 || self.receivers.can_grow() {
            let cpus = incoming_cpus(StreamRole::Receiver);
            let wanted = if arrives_on_all(&self.cpus, &cpus) {
                self.plan.receivers_on_all_cpus
            } else {
                cpus.len().min(self.cpus.len())
            };
            let wanted = wanted.min(self.receivers.active_max());
            let found = &mut self.checks.receivers;
            found.take(self.receivers.active(), wanted);

            // A receiver that was saturated needs its relief even where the peer has fewer CPUs.
            if found.too_few_workers() || found.too_many_workers() && !self.receivers_saturated {
                self.receivers.set_active(wanted);
            }
        }

        if self.may_gather_senders() {
            let cpus = incoming_cpus(StreamRole::Sender).len();
            self.checks.senders.take(self.senders.active(), cpus);

            if self.checks.senders.too_many_workers() {
                self.senders.set_active(cpus);
                // Once: a second reduction would undo the relief of saturated senders, and the two
                // would alternate.
                self.plan.gathers_senders = false;
            }
        }
    }

    /// Each worker that hardly waited for `elapsed_ns` gives half of its streams to another worker.
    /// Senders only where a CPU was idle: else they would take time from a receiver on this
    /// machine, which may be the peer's only thread. True if there are more workers then.
    fn relieve_saturated(&mut self, now_ns: u64, elapsed_ns: u64) -> bool {
        let saturated = self.senders.saturated(elapsed_ns);
        // Reading `/proc/stat` costs milliseconds on hosts with hundreds of CPUs, so only when a
        // sender could use the answer.
        let idle_cpus = if saturated.is_empty() {
            0
        } else {
            self.checks.idle_cpus(now_ns)
        };
        let senders_grew = self.senders.relieve(&saturated, idle_cpus);

        let saturated = self.receivers.saturated(elapsed_ns);
        // Regardless of idle CPUs: a receiver that shares its CPU with many senders falls behind
        // with a hundredth of it, and then its own CPU time says nothing.
        let receivers_grew = self.receivers.relieve(&saturated, usize::MAX);
        self.receivers_saturated |= receivers_grew;
        senders_grew || receivers_grew
    }

    fn may_gather_senders(&self) -> bool {
        self.plan.gathers_senders && self.senders.active() > 1
    }

    /// The CPU of all workers, if they may use no other.
    pub(crate) fn only_cpu(&self) -> Option<u32> {
        if let [only] = self.cpus[..] {
            Some(only)
        } else {
            None
        }
    }

    /// There are more receivers than CPUs.
    pub(crate) fn receivers_share_cpus(&self) -> bool {
        self.receivers.active() > self.cpus.len()
    }

    /// Workers that have streams to send.
    pub(crate) fn senders(&self) -> usize {
        self.senders.active()
    }

    /// Workers that have streams to receive.
    pub(crate) fn receivers(&self) -> usize {
        self.receivers.active()
    }

    /// Takes on one more stream while the others run.
    pub(crate) fn add(&mut self, stream: StreamAssignment) -> linerate_sys::Result<()> {
        match stream.role {
            StreamRole::Sender => self.senders.add(stream),
            StreamRole::Receiver => self.receivers.add(stream),
        }
    }

    /// CPU time of all workers so far in ns, and how often they had nothing to do.
    pub(crate) fn load(&self) -> (u64, u64) {
        let [(sent_ns, send_waits), (received_ns, receive_waits)] =
            [&self.senders, &self.receivers].map(WorkerGroup::load);
        (sent_ns + received_ns, send_waits + receive_waits)
    }

    /// Number of [`Notice::Stopped`](super::Notice::Stopped) that follow a stop.
    pub(crate) fn size(&self) -> usize {
        self.senders.size() + self.receivers.size()
    }

    /// Stops the senders; with `drain` the receivers read what has arrived before they acknowledge.
    pub(crate) fn request_stop(&self, drain: bool) {
        self.set_phase(if drain {
            Phase::StopAndDrain
        } else {
            Phase::StopSending
        });
    }

    /// No stop has been requested: each worker that runs then acknowledges it, and there may be no
    /// more.
    fn is_running(&self) -> bool {
        self.control.phase() == Phase::Run
    }

    fn set_phase(&self, phase: Phase) {
        self.control.advance_to(phase);
        self.senders.wake();
        self.receivers.wake();
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        // Workers own clones of the sockets: without the join a port could stay bound after the
        // test.
        self.set_phase(Phase::Quit);
        self.senders.join();
        self.receivers.join();
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
