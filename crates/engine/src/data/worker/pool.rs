//! The threads of a test.

use std::sync::Arc;
use std::thread::JoinHandle;

use linerate_sys::poll::EventFd;
use linerate_sys::{OsError, cpu};

use super::control::{Phase, RunControl};
use super::inbox::{Inbox, StreamAssignment};
use super::worker_loop::{Worker, WorkerLoad};

/// The threads of one test.
pub(crate) struct WorkerPool {
    control: Arc<RunControl>,
    workers: Vec<WorkerHandle>,
    pin_to: Option<u32>,
    /// Streams taken on so far; decides who gets the next one.
    assigned: usize,
}

struct WorkerHandle {
    wake: Arc<EventFd>,
    inbox: Arc<Inbox>,
    load: Arc<WorkerLoad>,
    thread: Option<JoinHandle<()>>,
}

/// Threads per CPU before streams share threads. Between one and four made no measurable difference on
/// loopback; more only costs memory and switches.
const THREADS_PER_CPU: usize = 4;

fn size_max() -> usize {
    THREADS_PER_CPU * cpu::online_cpus()
}

/// Threads of a test with so many streams.
pub(crate) fn threads_for(streams: usize) -> usize {
    streams.min(size_max()).max(1)
}

impl WorkerPool {
    /// Starts as few threads as the streams need and never more than a small multiple of the CPUs.
    pub(crate) fn start(
        control: &Arc<RunControl>,
        streams: Vec<StreamAssignment>,
        pin_to: Option<u32>,
    ) -> linerate_sys::Result<Self> {
        let size = threads_for(streams.len());
        let mut shares: Vec<Vec<StreamAssignment>> = (0..size).map(|_| Vec::new()).collect();
        for (i, stream) in streams.into_iter().enumerate() {
            shares[i % size].push(stream);
        }
        let mut pool = Self { control: Arc::clone(control), workers: Vec::with_capacity(size), pin_to, assigned: 0 };
        for share in shares {
            pool.spawn(share)?;
        }
        Ok(pool)
    }

    /// Takes on one more stream while the others run.
    pub(crate) fn add(&mut self, stream: StreamAssignment) -> linerate_sys::Result<()> {
        if self.assigned < self.workers.len() || self.workers.len() < size_max() {
            return self.spawn(vec![stream]);
        }
        let worker = &self.workers[self.assigned % self.workers.len()];
        self.assigned += 1;
        worker.inbox.put(stream);
        worker.wake.signal();
        Ok(())
    }

    fn spawn(&mut self, share: Vec<StreamAssignment>) -> linerate_sys::Result<()> {
        self.assigned += share.len();
        let pin_to = self.pin_to;
        let wake = Arc::new(EventFd::new()?);
        let inbox = Arc::new(Inbox::default());
        let load = Arc::new(WorkerLoad::default());
        let (control, for_worker) = (Arc::clone(&self.control), Arc::clone(&load));
        let mut worker = Worker::new(control, Arc::clone(&wake), Arc::clone(&inbox), for_worker)?;
        worker.assign(share)?;
        let thread = std::thread::Builder::new()
            .name("linerate-data".into())
            .spawn(move || {
                if let Some(cpu) = pin_to {
                    // The control thread has checked that this CPU exists.
                    let _ = cpu::pin_thread(cpu as usize);
                }
                worker.run();
            })
            .map_err(|source| OsError::new("create thread", "", source))?;
        self.workers.push(WorkerHandle { wake, inbox, load, thread: Some(thread) });
        Ok(())
    }

    /// CPU time of all workers so far in ns, and how often they have slept until data arrived or a pause was over.
    pub(crate) fn load(&self) -> (u64, u64) {
        let loads = self.workers.iter().map(|worker| &worker.load);
        loads.fold((0, 0), |(cpu_ns, waits), load| (cpu_ns + load.cpu_ns(), waits + load.waits()))
    }

    /// How many [`Notice::Stopped`] will follow a stop.
    pub(crate) fn size(&self) -> usize {
        self.workers.len()
    }

    /// Stops the senders; with `drain` the receivers read what has arrived before they acknowledge.
    pub(crate) fn request_stop(&self, drain: bool) {
        self.set_phase(if drain { Phase::StopAndDrain } else { Phase::StopSending });
    }

    fn set_phase(&self, phase: Phase) {
        self.control.advance_to(phase);
        for worker in &self.workers {
            worker.wake.signal();
        }
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.set_phase(Phase::Quit);
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                // A worker that panicked left no result.
                let _ = thread.join();
            }
        }
    }
}
