//! Threads whose streams have one role.

use std::sync::Arc;
use std::thread::JoinHandle;

use linerate_sys::poll::EventFd;
use linerate_sys::{OsError, cpu};

use super::assignments::{Assignments, Migration, Part, StreamAssignment};
use super::control::RunControl;
use super::worker_loop::{Worker, WorkerLoad};
use crate::data::plan::GroupSize;

/// The workers of a test that send, or those that receive.
pub(crate) struct WorkerGroup {
    control: Arc<RunControl>,
    workers: Vec<WorkerHandle>,
    /// Number of workers that have streams, the first ones; the others sleep.
    active: usize,
    limits: GroupSize,
    pin_to: Option<u32>,
}

struct WorkerHandle {
    wake: Arc<EventFd>,
    assignments: Arc<Assignments>,
    load: Arc<WorkerLoad>,
    /// Streams assigned to it, ended ones included.
    streams: usize,
    /// CPU time in ns and number of waits at the last check.
    checked: (u64, u64),
    thread: Option<JoinHandle<()>>,
}

/// A saturated worker waits at most once in this time. A sender at full speed finds a full window
/// now and then.
const SATURATED_WAIT_NS: u64 = 10_000_000;
/// It runs for this part of the time: senders of a peer on this machine, or another process, may
/// have its CPU for the rest.
const SATURATED_CPU_SHARE: u64 = 128;

impl WorkerHandle {
    /// It hardly waited since the last check, `period_ns` ago.
    fn was_saturated(&mut self, period_ns: u64) -> bool {
        let now = (self.load.cpu_ns(), self.load.waits());
        let (cpu_ns, waits) = std::mem::replace(&mut self.checked, now);
        now.1.saturating_sub(waits) <= period_ns / SATURATED_WAIT_NS
            && now.0.saturating_sub(cpu_ns) > period_ns / SATURATED_CPU_SHARE
    }
}

impl WorkerGroup {
    /// Starts as few threads as the streams need, and at most the initial number.
    pub(crate) fn start(
        control: &Arc<RunControl>,
        limits: GroupSize,
        streams: Vec<StreamAssignment>,
        pin_to: Option<u32>,
    ) -> linerate_sys::Result<Self> {
        let mut group = Self {
            control: Arc::clone(control),
            workers: Vec::new(),
            active: 0,
            limits,
            pin_to,
        };
        let size = streams.len().min(limits.initial);
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
    pub(crate) fn add(&mut self, stream: StreamAssignment) -> linerate_sys::Result<()> {
        if self.active == self.workers.len() && self.active < self.limits.initial {
            return self.spawn(vec![stream]);
        }

        let Some(worker) = self.workers[..self.active]
            .iter_mut()
            .min_by_key(|worker| worker.streams)
        else {
            return Ok(());
        };
        worker.streams += 1;
        worker.assignments.push(stream);
        worker.wake.signal();

        Ok(())
    }

    /// Workers that hardly waited since the last call, `period_ns` ago.
    pub(crate) fn saturated(&mut self, period_ns: u64) -> Vec<usize> {
        let active = self.workers[..self.active].iter_mut().enumerate();
        active
            .filter_map(|(index, worker)| worker.was_saturated(period_ns).then_some(index))
            .collect()
    }

    /// Each of these workers gives half of its streams to another one, as long as there are at most
    /// `more_max` more. True if one did.
    pub(crate) fn relieve(&mut self, saturated: &[usize], more_max: usize) -> bool {
        let before = self.active;
        for index in saturated {
            if self.active - before < more_max {
                self.halve(*index);
            }
        }
        self.active > before
    }

    /// From now on this number of workers has the streams, as far as there are enough streams.
    pub(crate) fn set_active(&mut self, wanted: usize) {
        while self.active > wanted.max(1) {
            self.retire_last();
        }

        while self.active < wanted {
            let most = (0..self.active).max_by_key(|index| self.workers[*index].streams);
            if most.is_none_or(|index| !self.halve(index)) {
                return;
            }
        }
    }

    /// The worker gives half of its streams to one that has none. False if it has a single one, or
    /// there may be no more workers.
    fn halve(&mut self, index: usize) -> bool {
        if self.active == self.limits.max || self.workers[index].streams < 2 {
            return false;
        }

        if self.active < self.workers.len() {
            self.active += 1;
        } else if self.spawn(Vec::new()).is_err() {
            // Without a further thread the test continues as it is.
            return false;
        }

        self.transfer(Part::Half, index, self.active - 1);
        true
    }

    /// The last of the active workers gives its streams to the one that has fewest.
    fn retire_last(&mut self) {
        self.active -= 1;
        if let Some(fewest) = (0..self.active).min_by_key(|index| self.workers[*index].streams) {
            self.transfer(Part::All, self.active, fewest);
        }
    }

    fn transfer(&mut self, part: Part, from: usize, to: usize) {
        let moved = part.of(self.workers[from].streams);
        let receiver = &mut self.workers[to];
        receiver.streams += moved;

        let migration = Migration::announce(part, &receiver.assignments, &receiver.wake);
        let giver = &mut self.workers[from];
        giver.streams -= moved;
        giver.assignments.request(migration);
        giver.wake.signal();
    }

    pub(crate) fn active(&self) -> usize {
        self.active
    }

    /// Most workers that may be active with the streams there are.
    pub(crate) fn active_max(&self) -> usize {
        let streams: usize = self.workers.iter().map(|worker| worker.streams).sum();
        streams.min(self.limits.max)
    }

    /// Announces all streams of a worker that the test plays itself.
    #[cfg(test)]
    pub(crate) fn announce_to_first(&self) -> Migration {
        Migration::announce(
            Part::All,
            &self.workers[0].assignments,
            &self.workers[0].wake,
        )
    }

    /// There may be more active workers.
    pub(crate) fn can_grow(&self) -> bool {
        self.active < self.limits.max
            && self.workers[..self.active]
                .iter()
                .any(|worker| worker.streams > 1)
    }

    /// Starts one more worker when all are active.
    fn spawn(&mut self, streams: Vec<StreamAssignment>) -> linerate_sys::Result<()> {
        let pin_to = self.pin_to;
        let stream_count = streams.len();
        let wake = Arc::new(EventFd::new()?);
        let assignments = Arc::new(Assignments::default());
        let load = Arc::new(WorkerLoad::default());
        let control = Arc::clone(&self.control);
        let for_worker = Arc::clone(&load);
        let mut worker = Worker::new(
            control,
            Arc::clone(&wake),
            Arc::clone(&assignments),
            for_worker,
        )?;
        worker.assign(streams)?;

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
        let streams = stream_count;
        self.workers.push(WorkerHandle {
            wake,
            assignments,
            load,
            streams,
            checked: (0, 0),
            thread: Some(thread),
        });
        self.active += 1;

        Ok(())
    }

    /// CPU time of the workers so far in ns, and how often they had nothing to do.
    pub(crate) fn load(&self) -> (u64, u64) {
        let loads = self.workers.iter().map(|worker| &worker.load);
        loads.fold((0, 0), |(cpu_ns, waits), load| {
            (cpu_ns + load.cpu_ns(), waits + load.waits())
        })
    }

    pub(crate) fn size(&self) -> usize {
        self.workers.len()
    }

    pub(crate) fn wake(&self) {
        for worker in &self.workers {
            worker.wake.signal();
        }
    }

    /// Waits for the threads, which have been asked to end.
    pub(crate) fn join(&mut self) {
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                // A worker that panicked left no result.
                let _ = thread.join();
            }
        }
    }
}
