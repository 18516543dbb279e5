//! The writer thread of a process: a run never waits for its record, and no failure of the store
//! changes its result.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linerate_model::record::{RunId, RunRecord, Trial};

use crate::database::BUSY;
use crate::{Place, Store, StoreError, spool};

/// Trials and records that may wait for the writer.
const QUEUE: usize = 256;
/// Time between two measurements of the space of the store.
const SIZE_EVERY: Duration = Duration::from_secs(10);

/// The trials of a record that are not kept in it: each call begins at the first one. A run of many
/// hosts has a hundred thousand.
pub type Trials = Box<dyn Fn() -> Box<dyn Iterator<Item = Trial>> + Send>;

/// Writes the runs of a process in a thread of its own. The thread opens the store when the first
/// run begins.
#[derive(Debug)]
pub struct Recorder {
    queue: SyncSender<Job>,
    /// `None` where no thread could be started: every record is lost.
    writer: Option<JoinHandle<()>>,
    counts: Counts,
}

/// Counts of the records of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Records in the store.
    pub stored: u64,
    /// Records in the spool beside it.
    pub spooled: u64,
    /// Records that are lost.
    pub lost: u64,
    /// Trials and records that wait for the writer.
    pub waiting: u64,
    /// Space of the store; `None` before the first record is stored.
    pub store_bytes: Option<u64>,
    /// The first reason why a record is not in the store.
    pub reason: Option<String>,
}

/// Counts that the writer and its users share.
#[derive(Debug, Clone, Default)]
struct Counts(Arc<Mutex<Recorded>>);

enum Job {
    Begin(Box<RunRecord>),
    Trials(RunId, Vec<Trial>),
    Finish(Box<RunRecord>),
    FinishWith(Box<RunRecord>, Trials),
}

impl Recorder {
    /// Starts the writer.
    pub fn new(place: Place) -> Self {
        let (queue, jobs) = sync_channel(QUEUE);
        let counts = Counts::default();

        let mut writer = Writer {
            place,
            store: None,
            refused: None,
            size_read: None,
            counts: counts.clone(),
        };
        let writer = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || writer.run(&jobs));
        if let Err(error) = &writer {
            counts
                .lock()
                .note(&format!("no thread for the writer of the store: {error}"));
        }

        Self {
            queue,
            writer: writer.ok(),
            counts,
        }
    }

    /// A run begins; its record has the state `running`.
    pub fn begin(&self, record: RunRecord) {
        // The record is written at its end in any case.
        let _ = self.try_send(Job::Begin(Box::new(record)));
    }

    /// Trials of a run that began are complete, so that they survive a crash.
    pub fn add_trials(&self, run: RunId, trials: Vec<Trial>) {
        let _ = self.try_send(Job::Trials(run, trials));
    }

    /// A run ended; its record has all trials. Waits while the queue is full.
    pub fn finish(&self, record: RunRecord) {
        self.send(Job::Finish(Box::new(record)));
    }

    /// As [`Self::finish`], for a record whose trials are not kept in it.
    pub fn finish_with(&self, record: RunRecord, trials: Trials) {
        self.send(Job::FinishWith(Box::new(record), trials));
    }

    fn send(&self, job: Job) {
        self.counts.lock().waiting += 1;
        if self.queue.send(job).is_err() {
            let mut counts = self.counts.lock();
            counts.waiting -= 1;
            counts.lose("the writer of the store ended");
        }
    }

    /// As [`Self::finish`], for a server: never waits. A record that finds the queue full is lost
    /// and counted.
    pub fn offer(&self, record: RunRecord) {
        match self.try_send(Job::Finish(Box::new(record))) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                self.counts.lock().lose("the store is slower than the runs");
            }
            Err(TrySendError::Disconnected(_)) => {
                self.counts.lock().lose("the writer of the store ended");
            }
        }
    }

    /// Counts of the records so far.
    pub fn recorded(&self) -> Recorded {
        self.counts.lock().clone()
    }

    /// As [`Self::recorded`], for another thread.
    pub fn observer(&self) -> impl Fn() -> Recorded + Send + Sync + use<> {
        let counts = self.counts.clone();
        move || counts.lock().clone()
    }

    fn try_send(&self, job: Job) -> Result<(), TrySendError<Job>> {
        // Before the writer can take it.
        self.counts.lock().waiting += 1;
        self.queue
            .try_send(job)
            .inspect_err(|_| self.counts.lock().waiting -= 1)
    }

    /// Waits until everything is written.
    #[must_use]
    pub fn close(self) -> Recorded {
        drop(self.queue);
        // A writer that panicked has written nothing more; the counts are what it did.
        let _ = self.writer.map(JoinHandle::join);
        self.counts.lock().clone()
    }
}

impl Recorded {
    /// One line for the user; `None` when every record is in the store.
    pub fn message(&self) -> Option<String> {
        let reason = self.reason.as_deref().unwrap_or("unknown reason");
        match (self.spooled, self.lost) {
            (0, 0) => None,
            (_, 0) => Some(format!(
                "record not stored yet: {reason}; kept in the spool until the store can be written"
            )),
            (_, lost) => Some(format!("record lost ({lost}): {reason}")),
        }
    }

    fn lose(&mut self, reason: &str) {
        self.lost += 1;
        self.note(reason);
    }

    fn note(&mut self, reason: &str) {
        self.reason.get_or_insert_with(|| reason.to_owned());
    }
}

impl Counts {
    /// Each count is whole after each step, so a panic elsewhere leaves them usable.
    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Writer {
    place: Place,
    store: Option<Store>,
    refused: Option<Refused>,
    /// When the space of the store was determined.
    size_read: Option<Instant>,
    counts: Counts,
}

/// A store that could not be opened.
struct Refused {
    why: String,
    /// No attempt before that time.
    until: Instant,
}

impl Writer {
    fn run(&mut self, jobs: &Receiver<Job>) {
        for job in jobs {
            match job {
                Job::Begin(record) => drop(self.write(|store| store.begin(&record))),
                Job::Trials(run, trials) => {
                    drop(self.write(|store| store.add_trials(run, &trials)));
                }
                Job::Finish(record) => self.finish(&record, None),
                Job::FinishWith(record, trials) => self.finish(&record, Some(&trials)),
            }

            self.counts.lock().waiting -= 1;
        }
    }

    /// Writes a run at its end. `trials` are those that are not kept in the record.
    fn finish(&mut self, record: &RunRecord, trials: Option<&Trials>) {
        let written = self.write(|store| match trials {
            Some(trials) => store.finish_with(record, trials()),
            None => store.finish(record),
        });
        let Err(error) = written else {
            self.counts.lock().stored += 1;
            let taken = self
                .store
                .as_ref()
                .and_then(|store| store.take_spool().ok());
            self.count_taken(taken.unwrap_or(0));
            self.read_size();
            return;
        };

        let whole = trials.map(|trials| {
            let mut run = record.clone();
            run.trials = trials().collect();
            run
        });
        let spooled = spool::write(&self.place, whole.as_ref().unwrap_or(record));
        let mut counts = self.counts.lock();
        match spooled {
            Ok(()) => {
                counts.spooled += 1;
                counts.note(&error.to_string());
            }
            Err(spool) => counts.lose(&format!("{error}; {spool}")),
        }
    }

    /// Runs an operation on the store, which is opened when it is not. After a lock that lasted,
    /// the next operation does not wait again.
    fn write<T>(
        &mut self,
        operation: impl Fn(&Store) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut result = operation(self.opened()?);
        // A server ends its connections when it restarts.
        if self
            .store
            .as_ref()
            .is_some_and(|store| store.database.is_closed())
        {
            self.store = None;
            result = operation(self.opened()?);
        }

        let is_locked = result.as_ref().is_err_and(StoreError::is_locked);
        if let Some(store) = &self.store {
            store
                .database
                .set_lock_timeout(if is_locked { Duration::ZERO } else { BUSY });
        }

        result
    }

    /// The store. An attempt that fails is not repeated for as long as it took, so that the queue
    /// is emptied meanwhile.
    fn opened(&mut self) -> Result<&Store, StoreError> {
        if self.store.is_none() {
            let begin = Instant::now();
            if let Some(refused) = self
                .refused
                .as_ref()
                .filter(|refused| begin < refused.until)
            {
                return Err(StoreError::Closed(refused.why.clone()));
            }

            let opened = Store::open_counting(&self.place).inspect_err(|error| {
                self.refused = Some(Refused {
                    why: error.to_string(),
                    until: Instant::now() + begin.elapsed(),
                });
            });
            let (store, taken) = opened?;
            self.count_taken(taken);
            self.store = Some(store);
        }

        self.store
            .as_ref()
            .ok_or_else(|| StoreError::Closed("not open".to_owned()))
    }

    /// Counts records that were taken from the spool.
    fn count_taken(&self, taken: usize) {
        // Records of earlier processes were not counted here.
        let mut counts = self.counts.lock();
        let own = counts.spooled.min(taken as u64);
        counts.spooled -= own;
        counts.stored += own;
    }

    fn read_size(&mut self) {
        if self
            .size_read
            .is_none_or(|read| read.elapsed() > SIZE_EVERY)
        {
            self.size_read = Some(Instant::now());
            let bytes = self
                .store
                .as_ref()
                .and_then(|store| store.size_bytes().ok());
            self.counts.lock().store_bytes = bytes.filter(|bytes| *bytes > 0);
        }
    }
}
