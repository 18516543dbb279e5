//! The threads of a test.

use std::sync::Arc;

use linerate_model::StreamRole;
use linerate_sys::cpu;

use super::control::{Phase, RunControl};
use super::group::WorkerGroup;
use super::inbox::StreamAssignment;

/// The threads of one test.
pub(crate) struct WorkerPool {
    control: Arc<RunControl>,
    senders: WorkerGroup,
    receivers: WorkerGroup,
}

/// A sender without a rate always has work: more of them than CPUs only take the CPU from each other and from the receivers.
const SENDERS_PER_CPU: usize = 1;
/// The scheduler divides a CPU evenly among threads that have work. With two shares of it receivers keep their queues short, so
/// that the data is still in a cache when it is read. With more threads small writes cause more wake-ups.
const RECEIVERS_PER_CPU: usize = 2;

/// Most threads of a test with this number of streams.
pub(crate) fn threads_max(streams: usize) -> usize {
    streams.min((SENDERS_PER_CPU + RECEIVERS_PER_CPU) * cpu::online_cpus()).max(1)
}

/// What decides how streams are shared out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placement {
    /// The CPU of all threads, if the user named one.
    pub(crate) pin_to: Option<u32>,
    /// Senders keep a rate, and sleep until the next portion is due.
    pub(crate) is_paced: bool,
}

impl Placement {
    fn cpus(self) -> usize {
        if self.pin_to.is_some() { 1 } else { cpu::online_cpus() }
    }

    /// On one CPU a stream each way is faster in one thread that sends and reads in turns: a queue holds one portion then, not
    /// all that is sent until the scheduler switches threads.
    fn takes_turns(self, streams: &[StreamAssignment]) -> bool {
        let is_one_each_way = matches!(streams, [one, other] if one.role != other.role);
        is_one_each_way && self.cpus() == 1 && !self.is_paced
    }
}

impl WorkerPool {
    /// Starts as few threads as the streams need and never more than a small multiple of the CPUs.
    pub(crate) fn start(
        control: &Arc<RunControl>,
        streams: Vec<StreamAssignment>,
        placement: Placement,
    ) -> linerate_sys::Result<Self> {
        let cpus = placement.cpus();
        let takes_turns = placement.takes_turns(&streams);
        let (senders, receivers): (Vec<_>, Vec<_>) =
            streams.into_iter().partition(|stream| takes_turns || stream.role == StreamRole::Sender);
        let start = |workers_max, streams| WorkerGroup::start(control, workers_max, streams, placement.pin_to);
        Ok(Self {
            control: Arc::clone(control),
            senders: start(SENDERS_PER_CPU * cpus, senders)?,
            receivers: start(RECEIVERS_PER_CPU * cpus, receivers)?,
        })
    }

    /// Takes on one more stream while the others run.
    pub(crate) fn add(&mut self, stream: StreamAssignment) -> linerate_sys::Result<()> {
        match stream.role {
            StreamRole::Sender => self.senders.add(stream),
            StreamRole::Receiver => self.receivers.add(stream),
        }
    }

    /// CPU time of all workers so far in ns, and how often they have slept until data arrived or a pause was over.
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
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use linerate_model::StreamId;
    use linerate_model::spec::IoStrategy;

    use super::*;
    use crate::data::worker::{Pump, Pumped, Scratch};

    struct Idle;

    impl Pump for Idle {
        fn pump(&mut self, _now_ns: u64, _scratch: &mut Scratch) -> Pumped {
            Pumped::Blocked
        }
    }

    fn threads(roles: &[StreamRole], placement: Placement) -> usize {
        let control = RunControl::new(IoStrategy::PLAIN).expect("a descriptor");
        let (socket, _peer) = UnixStream::pair().expect("two sockets");
        let streams = roles.iter().enumerate().map(|(index, role)| StreamAssignment {
            id: StreamId(u32::try_from(index).expect("a small number")),
            fd: Arc::new(OwnedFd::from(socket.try_clone().expect("a descriptor"))),
            role: *role,
            pump: Box::new(Idle),
        });
        WorkerPool::start(&control, streams.collect(), placement).expect("threads").size()
    }

    #[test]
    fn many_senders_have_a_thread_per_cpu_and_many_receivers_have_two() {
        let any = Placement { pin_to: None, is_paced: false };
        assert_eq!(threads(&[StreamRole::Sender; 128], any), cpu::online_cpus());
        assert_eq!(threads(&[StreamRole::Receiver; 128], any), 2 * cpu::online_cpus());
        assert_eq!(threads(&[StreamRole::Sender], any), 1);
    }

    #[test]
    fn a_stream_each_way_on_one_cpu_has_one_thread_unless_it_keeps_a_rate() {
        let both = [StreamRole::Sender, StreamRole::Receiver];
        let on_first = Placement { pin_to: Some(0), is_paced: false };
        assert_eq!(threads(&both, on_first), 1);
        assert_eq!(threads(&both, Placement { is_paced: true, ..on_first }), 2);
        assert_eq!(threads(&[both, both].concat(), on_first), 3);
        assert_eq!(threads(&[StreamRole::Receiver; 2], on_first), 2);
    }
}
