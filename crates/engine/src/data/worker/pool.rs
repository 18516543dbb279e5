//! The threads of a test.

use std::sync::Arc;

use linerate_model::StreamRole;
use linerate_sys::{clock, cpu};

use super::control::{Phase, RunControl};
use super::group::{GroupSize, WorkerGroup};
use super::growth::{Growth, idle_time};
use super::inbox::StreamAssignment;
use super::incoming_cpu_checks::IncomingCpuChecks;

/// The threads of one test.
pub(crate) struct WorkerPool {
    control: Arc<RunControl>,
    senders: WorkerGroup,
    receivers: WorkerGroup,
    /// CPUs that workers may use.
    cpus: Vec<u32>,
    /// Receivers where data arrives on all CPUs.
    receivers_on_all_cpus: usize,
    growth: Growth,
    incoming_cpus: IncomingCpuChecks,
    /// Senders have many streams, and no rate.
    do_senders_overtake: bool,
    /// A saturated receiver was relieved: they do not become fewer with the CPUs that data arrives on.
    were_receivers_saturated: bool,
    /// A trial has decided, or decides, how many receivers there are.
    are_receivers_in_trial: bool,
}

/// A sender without a rate always has work: more of them than CPUs only take the CPU from each other and from the receivers.
const SENDERS_PER_CPU: usize = 1;
/// Senders of more streams than this overtake a peer on this machine that receives with a single thread: the queues of the streams
/// outgrow the caches, and stay so. Where the kernel paces that number of streams by timers, these take time from receivers.
const STREAMS_PER_FREE_SENDER: usize = 4;
/// The scheduler divides a CPU evenly among threads that have work, and often runs a receiver on the CPU of its sender. With several
/// shares of a CPU receivers keep their queues short, so that the data is still in a cache when it is read.
const RECEIVERS_PER_SHARED_CPU: usize = 8;
/// Most of them. Receivers share an only CPU with all senders of a peer on this machine, which may have a thread per stream.
const RECEIVERS_PER_CPU_MAX: usize = 64;
/// The same where writes are small: more receivers are woken more often.
const RECEIVERS_PER_CPU_OF_SMALL_BLOCKS_MAX: usize = 2;

/// Most threads of a test with this number of streams.
pub(crate) fn threads_max(streams: usize) -> usize {
    streams.min((SENDERS_PER_CPU + RECEIVERS_PER_CPU_MAX) * cpu::online_cpus()).max(1)
}

/// What decides how streams are shared out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placement {
    /// The CPU of all threads, if the user named one.
    pub(crate) pin_to: Option<u32>,
    /// Senders keep a rate, and sleep until the next portion is due.
    pub(crate) is_paced: bool,
    /// The kernel paces what senders write, by timers: BBR does.
    pub(crate) has_pacing_timers: bool,
    /// Receivers read large blocks from byte streams.
    pub(crate) receives_large_blocks: bool,
    /// The CPU on which segments of all streams that are received arrived before the start, if it is one.
    pub(crate) incoming_cpu: Option<u32>,
}

impl Placement {
    /// CPUs that workers may use; none where the kernel does not report them.
    fn cpus(self) -> Vec<u32> {
        let of_process = || cpu::affinity().map_or_else(|_| Vec::new(), |usable| usable.cpus().collect());
        let usable = self.pin_to.map_or_else(of_process, |cpu| vec![cpu as usize]);
        usable.into_iter().filter_map(|cpu| u32::try_from(cpu).ok()).collect()
    }

    fn cpu_count(self) -> usize {
        self.cpus().len().max(1)
    }

    fn receivers(self) -> GroupSize {
        let arrives_on_all = include_all(self.incoming_cpu.as_slice(), &self.cpus());
        let initial = if arrives_on_all { self.receivers_on_all_cpus() } else { self.cpu_count() };
        let per_cpu_max =
            if self.receives_large_blocks { RECEIVERS_PER_CPU_MAX } else { RECEIVERS_PER_CPU_OF_SMALL_BLOCKS_MAX };
        GroupSize { initial, max: per_cpu_max * self.cpu_count() }
    }

    /// Receivers where data arrives on all CPUs: a peer on this machine has at least as many threads then.
    fn receivers_on_all_cpus(self) -> usize {
        match self.cpu_count() {
            cpus if !self.receives_large_blocks => cpus,
            1 => RECEIVERS_PER_CPU_MAX,
            cpus => RECEIVERS_PER_SHARED_CPU * cpus,
        }
    }

    /// On one CPU a stream each way is faster in one thread that sends and reads in turns: a queue holds one portion then, not
    /// all that is sent until the scheduler switches threads.
    fn takes_turns(self, streams: &[StreamAssignment]) -> bool {
        let is_one_each_way = matches!(streams, [one, other] if one.role != other.role);
        is_one_each_way && self.cpu_count() == 1 && !self.is_paced
    }
}

/// Data arrives on all CPUs that workers may use.
fn include_all(incoming_cpus: &[u32], usable: &[u32]) -> bool {
    !usable.is_empty() && usable.iter().all(|cpu| incoming_cpus.contains(cpu))
}

impl WorkerPool {
    /// Starts a few threads; there may be more while the streams move data.
    pub(crate) fn start(
        control: &Arc<RunControl>,
        streams: Vec<StreamAssignment>,
        placement: Placement,
    ) -> linerate_sys::Result<Self> {
        let takes_turns = placement.takes_turns(&streams);
        let (senders, receivers): (Vec<_>, Vec<_>) =
            streams.into_iter().partition(|stream| takes_turns || stream.role == StreamRole::Sender);
        // More receivers than senders would take the CPU from these where a test has both.
        let receives_large_blocks = placement.receives_large_blocks && senders.is_empty();
        let placement = Placement { receives_large_blocks, ..placement };
        let start = |size, streams| WorkerGroup::start(control, size, streams, placement.pin_to);
        let senders_max = SENDERS_PER_CPU * placement.cpu_count();
        let have_many_streams = senders.len() > STREAMS_PER_FREE_SENDER * senders_max;
        let do_timers_interrupt = placement.has_pacing_timers && have_many_streams;
        let senders_initial = if do_timers_interrupt { senders_max.div_ceil(2) } else { senders_max };
        let now_ns = clock::monotonic_ns();
        Ok(Self {
            control: Arc::clone(control),
            senders: start(GroupSize { initial: senders_initial, max: senders_max }, senders)?,
            receivers: start(placement.receivers(), receivers)?,
            cpus: placement.cpus(),
            receivers_on_all_cpus: placement.receivers_on_all_cpus(),
            growth: Growth::new(now_ns, idle_time),
            incoming_cpus: IncomingCpuChecks::new(now_ns),
            do_senders_overtake: !placement.is_paced && have_many_streams,
            were_receivers_saturated: false,
            are_receivers_in_trial: false,
        })
    }

    /// When to call [`WorkerPool::relieve_saturated`] or [`WorkerPool::follow_incoming_cpus`] next, monotonic ns; `None` when the number
    /// of workers stays.
    pub(crate) fn next_check_ns(&self) -> Option<u64> {
        self.next_relief_ns().into_iter().chain(self.next_cpu_check_ns()).min()
    }

    fn next_relief_ns(&self) -> Option<u64> {
        let can_grow = self.senders.can_grow() || !self.are_receivers_in_trial && self.receivers.can_grow();
        (can_grow && self.is_running()).then(|| self.growth.next_ns())
    }

    /// Once a call is due, each worker that hardly waited since the last one gives half of its streams to another worker. Senders
    /// only where a CPU was idle: else they would take time from a receiver on this machine, which may be the peer's only thread.
    pub(crate) fn relieve_saturated(&mut self, now_ns: u64) {
        if self.next_relief_ns().is_none_or(|due_ns| now_ns < due_ns) {
            return;
        }
        let elapsed_ns = self.growth.end_period(now_ns);
        let saturated = self.senders.saturated(elapsed_ns);
        let idle_cpus = if saturated.is_empty() { 0 } else { self.growth.idle_cpus(now_ns) };
        let mut has_grown = self.senders.relieve(&saturated, idle_cpus);
        if !self.are_receivers_in_trial {
            let saturated = self.receivers.saturated(elapsed_ns);
            let have_receivers_grown = self.receivers.relieve(&saturated, usize::MAX);
            self.were_receivers_saturated |= have_receivers_grown;
            has_grown |= have_receivers_grown;
        }
        self.growth.begin_period(has_grown);
    }

    fn next_cpu_check_ns(&self) -> Option<u64> {
        let follows = self.may_gather_senders() || self.may_follow_with_receivers();
        (follows && self.is_running()).then(|| self.incoming_cpus.next_ns())
    }

    fn may_gather_senders(&self) -> bool {
        self.do_senders_overtake && self.senders.active() > 1
    }

    fn may_follow_with_receivers(&self) -> bool {
        !self.are_receivers_in_trial && (self.receivers.active() > 1 || self.receivers.can_grow())
    }

    /// Once a call is due, compares the number of workers of each role with the CPUs on which segments of their streams arrive, none
    /// where that is not known. Where it stays different, there is a receiver for each of the CPUs from then on, or several of large
    /// blocks where all that workers may use are among them. Where the senders of many streams stay more, they become fewer, once:
    /// saturated ones are relieved again where a CPU is idle.
    pub(crate) fn follow_incoming_cpus(&mut self, now_ns: u64, incoming_cpus: impl Fn(StreamRole) -> Vec<u32>) {
        if self.next_cpu_check_ns().is_none_or(|due_ns| now_ns < due_ns) {
            return;
        }
        self.incoming_cpus.end_period(now_ns);
        if self.may_follow_with_receivers() {
            let wanted = self.receivers_of(&incoming_cpus(StreamRole::Receiver)).min(self.receivers_max());
            let found = &mut self.incoming_cpus.receivers;
            found.take(self.receivers.active(), wanted);
            if found.are_workers_too_few() || found.are_workers_too_many() && !self.were_receivers_saturated {
                self.receivers.set_active(wanted);
            }
        }
        if self.may_gather_senders() {
            let cpus = incoming_cpus(StreamRole::Sender).len();
            self.incoming_cpus.senders.take(self.senders.active(), cpus);
            if self.incoming_cpus.senders.are_workers_too_many() {
                self.senders.set_active(cpus);
                self.do_senders_overtake = false;
            }
        }
    }

    /// Receivers of data that arrives on these CPUs; 0 where none is known.
    fn receivers_of(&self, incoming_cpus: &[u32]) -> usize {
        let arrives_on_all = include_all(incoming_cpus, &self.cpus);
        if arrives_on_all { self.receivers_on_all_cpus } else { incoming_cpus.len().min(self.cpus.len()) }
    }

    /// The CPU of all workers, if they may use no other.
    pub(crate) fn only_cpu(&self) -> Option<u32> {
        if let [only] = self.cpus[..] { Some(only) } else { None }
    }

    /// There are more receivers than CPUs.
    pub(crate) fn do_receivers_share_cpus(&self) -> bool {
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

    /// Shares the streams that are received out among this number of workers, as far as there are enough streams. They are not
    /// relieved from then on: how many are best has been measured, or is.
    pub(crate) fn set_receivers(&mut self, workers: usize) {
        if workers != self.receivers.active() && self.is_running() {
            self.are_receivers_in_trial = true;
            self.receivers.set_active(workers);
        }
    }

    /// Most workers that may receive the streams there are.
    pub(crate) fn receivers_max(&self) -> usize {
        self.receivers.active_max()
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

    /// How many [`Notice::Stopped`](super::Notice::Stopped) will follow a stop.
    pub(crate) fn size(&self) -> usize {
        self.senders.size() + self.receivers.size()
    }

    /// Stops the senders; with `drain` the receivers read what has arrived before they acknowledge.
    pub(crate) fn request_stop(&self, drain: bool) {
        self.set_phase(if drain { Phase::StopAndDrain } else { Phase::StopSending });
    }

    /// No stop has been requested: each worker that runs then acknowledges it, and there may be no more.
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
        self.set_phase(Phase::Quit);
        self.senders.join();
        self.receivers.join();
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
