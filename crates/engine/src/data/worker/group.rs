//! Threads whose streams have one role.

use std::sync::Arc;
use std::thread::JoinHandle;

use linerate_sys::poll::EventFd;
use linerate_sys::{OsError, cpu};

use super::control::RunControl;
use super::inbox::{Inbox, StreamAssignment};
use super::worker_loop::{Worker, WorkerLoad};

/// The workers of a test that send, or those that receive.
pub(super) struct WorkerGroup {
    control: Arc<RunControl>,
    workers: Vec<WorkerHandle>,
    workers_max: usize,
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

impl WorkerGroup {
    /// Starts as few threads as the streams need, and at most `workers_max`.
    pub(super) fn start(
        control: &Arc<RunControl>,
        workers_max: usize,
        streams: Vec<StreamAssignment>,
        pin_to: Option<u32>,
    ) -> linerate_sys::Result<Self> {
        let mut group = Self { control: Arc::clone(control), workers: Vec::new(), workers_max, pin_to, assigned: 0 };
        let size = streams.len().min(workers_max);
        let mut shares: Vec<Vec<StreamAssignment>> = (0..size).map(|_| Vec::new()).collect();
        for (i, stream) in streams.into_iter().enumerate() {
            shares[i % size].push(stream);
        }
        for share in shares {
            group.spawn(share)?;
        }
        Ok(group)
    }

    /// Takes on one more stream while the others run.
    pub(super) fn add(&mut self, stream: StreamAssignment) -> linerate_sys::Result<()> {
        if self.workers.len() < self.workers_max {
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

    /// CPU time of the workers so far in ns, and how often they have slept until data arrived or a pause was over.
    pub(super) fn load(&self) -> (u64, u64) {
        let loads = self.workers.iter().map(|worker| &worker.load);
        loads.fold((0, 0), |(cpu_ns, waits), load| (cpu_ns + load.cpu_ns(), waits + load.waits()))
    }

    pub(super) fn size(&self) -> usize {
        self.workers.len()
    }

    pub(super) fn wake(&self) {
        for worker in &self.workers {
            worker.wake.signal();
        }
    }

    /// Waits for the threads, which have been asked to end.
    pub(super) fn join(&mut self) {
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                // A worker that panicked left no result.
                let _ = thread.join();
            }
        }
    }
}
