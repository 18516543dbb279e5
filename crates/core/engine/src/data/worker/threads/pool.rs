//! The threads of a test.

use std::sync::Arc;

use linerate_model::StreamRole;
use linerate_sys::{clock, cpu};

use super::assignments::StreamAssignment;
use super::control::{Phase, RunControl};
use super::group::{GroupSize, WorkerGroup};
use super::incoming_cpu_checks::IncomingCpuChecks;
use super::receiver_count::{RECEIVERS_PER_CPU_MAX, ReceiverCount};
use super::scale_up::{ScaleUp, idle_time};

/// The threads of one test.
pub(crate) struct WorkerPool {
    control: Arc<RunControl>,
    senders: WorkerGroup,
    receivers: WorkerGroup,
    /// CPUs that workers may use.
    cpus: Vec<u32>,
    receiver_count: ReceiverCount,
    scale_up: ScaleUp,
    incoming_cpus: IncomingCpuChecks,
    /// Senders have many streams, and no rate.
    senders_outpace_peer: bool,
    /// A saturated receiver was relieved: they do not become fewer with the CPUs that data arrives
    /// on.
    receivers_saturated: bool,
    /// A trial has decided, or decides, how many receivers there are.
    receiver_trial_active: bool,
}

/// A sender without a rate always has work: more of them than CPUs only take the CPU from each
/// other and from the receivers.
const SENDERS_PER_CPU: usize = 1;
/// Most streams that have a sender each where calls are short: as many as iperf3 takes. With few
/// senders the scheduler lets each receiver on this machine that a write wakes run at once, for
/// that write alone; beside a sender per stream it takes its turn, and reads what has come since.
const STREAMS_WITH_SENDER_EACH_MAX: usize = 128;
/// Senders of more streams than this overtake a peer on this machine that receives with a single
/// thread: the queues of the streams outgrow the caches, and stay so. Where the kernel paces that
/// number of streams by timers, these take time from receivers.
const STREAMS_PER_FREE_SENDER: usize = 4;

/// Most threads of a test with this number of streams.
pub(crate) fn threads_max(streams: usize) -> usize {
    let cpus = cpu::online_cpus();
    let senders_max = STREAMS_WITH_SENDER_EACH_MAX.max(SENDERS_PER_CPU * cpus);
    streams
        .min(senders_max + RECEIVERS_PER_CPU_MAX * cpus)
        .max(1)
}

/// Facts that decide how streams are shared out.
#[derive(Clone, Copy)]
pub(crate) struct Placement {
    /// The CPU of all threads, if the user named one.
    pub(crate) pin_to: Option<u32>,
    /// Senders keep a rate, and sleep until the next portion is due.
    pub(crate) is_paced: bool,
    /// The kernel paces what senders write, by timers: BBR does.
    pub(crate) has_pacing_timers: bool,
    /// Senders to byte streams make short calls without pauses between them.
    pub(crate) makes_short_calls: bool,
    /// Receivers read large blocks from byte streams.
    pub(crate) receives_large_blocks: bool,
    /// The CPU on which segments of all streams that are received arrived before the start, if it
    /// is one.
    pub(crate) incoming_cpu: Option<u32>,
}

/// CPUs that workers may use; none where the kernel does not report them.
fn usable_cpus(pin_to: Option<u32>) -> Vec<u32> {
    let of_process =
        || cpu::affinity().map_or_else(|_| Vec::new(), |usable| usable.cpus().collect());
    let usable = pin_to.map_or_else(of_process, |cpu| vec![cpu as usize]);
    usable
        .into_iter()
        .filter_map(|cpu| u32::try_from(cpu).ok())
        .collect()
}

/// On one CPU a stream each way is faster in one thread that sends and reads in turns: a queue
/// holds one portion then, not all that is sent until the scheduler switches threads.
fn take_turns(streams: &[StreamAssignment], cpus: usize, is_paced: bool) -> bool {
    let is_one_each_way = matches!(streams, [one, other] if one.role != other.role);
    is_one_each_way && cpus == 1 && !is_paced
}

impl WorkerPool {
    /// Starts a few threads; there may be more while the streams move data.
    pub(crate) fn start(
        control: &Arc<RunControl>,
        streams: Vec<StreamAssignment>,
        placement: Placement,
    ) -> linerate_sys::Result<Self> {
        let cpus = usable_cpus(placement.pin_to);
        let cpu_count = cpus.len().max(1);
        let takes_turns = take_turns(&streams, cpu_count, placement.is_paced);
        let (senders, receivers): (Vec<_>, Vec<_>) = streams
            .into_iter()
            .partition(|stream| takes_turns || stream.role == StreamRole::Sender);

        // More receivers than senders would take the CPU from these where a test has both.
        let may_share_cpus = placement.receives_large_blocks && senders.is_empty();
        let receiver_count = ReceiverCount::new(cpus.clone(), may_share_cpus);
        let start = |size, streams| WorkerGroup::start(control, size, streams, placement.pin_to);
        // To iperf3 3.22 ten streams of 32-byte writes on one CPU had 0.102 Gbit/s with a sender
        // each, 0.048 with a single one.
        let has_sender_each =
            placement.makes_short_calls && senders.len() <= STREAMS_WITH_SENDER_EACH_MAX;
        let senders_max = if has_sender_each {
            STREAMS_WITH_SENDER_EACH_MAX
        } else {
            SENDERS_PER_CPU * cpu_count
        };
        let many_streams = senders.len() > STREAMS_PER_FREE_SENDER * senders_max;
        let timers_active = placement.has_pacing_timers && many_streams;
        // Pacing timers (tcp_pace_kick in net/ipv4/tcp_output.c) interrupt the CPUs that receivers
        // run on, so half of the CPUs are left to these.
        let senders_initial = if timers_active {
            senders_max.div_ceil(2)
        } else {
            senders_max
        };

        let now_ns = clock::monotonic_ns();
        Ok(Self {
            control: Arc::clone(control),
            senders: start(
                GroupSize {
                    initial: senders_initial,
                    max: senders_max,
                },
                senders,
            )?,
            receivers: start(receiver_count.size(placement.incoming_cpu), receivers)?,
            cpus,
            receiver_count,
            scale_up: ScaleUp::new(now_ns, idle_time),
            incoming_cpus: IncomingCpuChecks::new(now_ns),
            senders_outpace_peer: !placement.is_paced && many_streams,
            receivers_saturated: false,
            receiver_trial_active: false,
        })
    }

    /// When to call [`WorkerPool::relieve_saturated`] or [`WorkerPool::follow_incoming_cpus`] next,
    /// monotonic ns; `None` when the number of workers stays.
    pub(crate) fn next_check_ns(&self) -> Option<u64> {
        self.next_relief_ns()
            .into_iter()
            .chain(self.next_cpu_check_ns())
            .min()
    }

    fn next_relief_ns(&self) -> Option<u64> {
        let can_grow =
            self.senders.can_grow() || !self.receiver_trial_active && self.receivers.can_grow();
        // A group that grows after a stop would have a worker that the stop does not count, and the
        // owner would wait for one acknowledgement too few.
        (can_grow && self.is_running()).then(|| self.scale_up.next_ns())
    }

    /// Once a call is due, each worker that hardly waited since the last one gives half of its
    /// streams to another worker. Senders only where a CPU was idle: else they would take time from
    /// a receiver on this machine, which may be the peer's only thread.
    pub(crate) fn relieve_saturated(&mut self, now_ns: u64) {
        if self.next_relief_ns().is_none_or(|due_ns| now_ns < due_ns) {
            return;
        }

        let elapsed_ns = self.scale_up.end_period(now_ns);
        let saturated = self.senders.saturated(elapsed_ns);
        // Reading `/proc/stat` costs milliseconds on hosts with hundreds of CPUs, so only when a
        // sender could use the answer.
        let idle_cpus = if saturated.is_empty() {
            0
        } else {
            self.scale_up.idle_cpus(now_ns)
        };
        let mut has_grown = self.senders.relieve(&saturated, idle_cpus);

        if !self.receiver_trial_active {
            let saturated = self.receivers.saturated(elapsed_ns);
            // Regardless of idle CPUs: a receiver that shares its CPU with many senders falls
            // behind with a hundredth of it, and then its own CPU time says nothing.
            let receivers_grew = self.receivers.relieve(&saturated, usize::MAX);
            self.receivers_saturated |= receivers_grew;
            has_grown |= receivers_grew;
        }

        self.scale_up.begin_period(has_grown);
    }

    fn next_cpu_check_ns(&self) -> Option<u64> {
        let follows = self.may_gather_senders() || self.may_follow_with_receivers();
        (follows && self.is_running()).then(|| self.incoming_cpus.next_ns())
    }

    fn may_gather_senders(&self) -> bool {
        self.senders_outpace_peer && self.senders.active() > 1
    }

    fn may_follow_with_receivers(&self) -> bool {
        !self.receiver_trial_active && (self.receivers.active() > 1 || self.receivers.can_grow())
    }

    /// Once a call is due, compares the number of workers of each role with the CPUs on which
    /// segments of their streams arrive, none where that is not known. Where it stays different,
    /// there is a receiver for each of the CPUs from then on, or several of large blocks where all
    /// that workers may use are among them. Where the senders of many streams stay more, they
    /// become fewer, once: saturated ones are relieved again where a CPU is idle.
    pub(crate) fn follow_incoming_cpus(
        &mut self,
        now_ns: u64,
        incoming_cpus: impl Fn(StreamRole) -> Vec<u32>,
    ) {
        if self
            .next_cpu_check_ns()
            .is_none_or(|due_ns| now_ns < due_ns)
        {
            return;
        }

        self.incoming_cpus.end_period(now_ns);
        if self.may_follow_with_receivers() {
            let wanted = self
                .receiver_count
                .of(&incoming_cpus(StreamRole::Receiver))
                .min(self.receivers_max());
            let found = &mut self.incoming_cpus.receivers;
            found.take(self.receivers.active(), wanted);

            // A receiver that was saturated needs its relief even where the peer has fewer CPUs.
            if found.too_few_workers() || found.too_many_workers() && !self.receivers_saturated {
                self.receivers.set_active(wanted);
            }
        }

        if self.may_gather_senders() {
            let cpus = incoming_cpus(StreamRole::Sender).len();
            self.incoming_cpus.senders.take(self.senders.active(), cpus);

            if self.incoming_cpus.senders.too_many_workers() {
                self.senders.set_active(cpus);
                // Once: a second reduction would undo the relief of saturated senders, and the two
                // would alternate.
                self.senders_outpace_peer = false;
            }
        }
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

    /// Shares the streams that are received out among this number of workers, as far as there are
    /// enough streams. They are not relieved from then on: how many are best has been measured, or
    /// is.
    pub(crate) fn set_receivers(&mut self, workers: usize) {
        if workers != self.receivers.active() && self.is_running() {
            // Relief would change the number that the trial measures.
            self.receiver_trial_active = true;
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
