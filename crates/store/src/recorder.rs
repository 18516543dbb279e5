//! The writer thread of a process: a run never waits for its record, and no failure of the store changes its result.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_model::record::{RunId, RunRecord, Trial};

use crate::open::BUSY;
use crate::{Place, Store, StoreError, spool};

/// Trials and records that may wait for the writer.
const QUEUE: usize = 256;

/// Writes the runs of a process in a thread of its own. The thread opens the store when the first run begins.
#[derive(Debug)]
pub struct Recorder {
    queue: SyncSender<Job>,
    /// `None` where no thread could be started: every record is lost.
    writer: Option<JoinHandle<()>>,
    counts: Arc<Counts>,
}

/// What became of the records of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Records in the store.
    pub stored: u64,
    /// Records in the spool beside it.
    pub spooled: u64,
    /// Records that are lost.
    pub lost: u64,
    /// The first reason why a record is not in the store.
    pub reason: Option<String>,
}

#[derive(Debug, Default)]
struct Counts {
    stored: AtomicU64,
    spooled: AtomicU64,
    lost: AtomicU64,
    reason: Mutex<Option<String>>,
}

#[derive(Debug)]
enum Job {
    Begin(Box<RunRecord>),
    Trial(RunId, Box<Trial>),
    Finish(Box<RunRecord>),
}

impl Recorder {
    /// Starts the writer.
    #[must_use]
    pub fn new(place: Place) -> Self {
        let (queue, jobs) = sync_channel(QUEUE);
        let counts = Arc::new(Counts::default());
        let mut writer = Writer { place, store: None, counts: Arc::clone(&counts) };
        let writer = std::thread::Builder::new().name("recorder".to_owned()).spawn(move || writer.run(&jobs));
        if let Err(error) = &writer {
            counts.note(&format!("no thread for the writer of the store: {error}"));
        }
        Self { queue, writer: writer.ok(), counts }
    }

    /// A run begins; its record has the state `running`.
    pub fn begin(&self, record: RunRecord) {
        // The record is written at its end in any case.
        let _ = self.queue.try_send(Job::Begin(Box::new(record)));
    }

    /// A trial of a run that began is complete, so that it survives a crash.
    pub fn add_trial(&self, run: RunId, trial: Trial) {
        let _ = self.queue.try_send(Job::Trial(run, Box::new(trial)));
    }

    /// A run ended; its record has all trials. Waits while the queue is full.
    pub fn finish(&self, record: RunRecord) {
        if self.queue.send(Job::Finish(Box::new(record))).is_err() {
            self.counts.lose("the writer of the store ended");
        }
    }

    /// As [`Self::finish`], for a server: never waits. A record that finds the queue full is lost and counted.
    pub fn offer(&self, record: RunRecord) {
        match self.queue.try_send(Job::Finish(Box::new(record))) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.counts.lose("the store is slower than the runs"),
            Err(TrySendError::Disconnected(_)) => self.counts.lose("the writer of the store ended"),
        }
    }

    /// What became of the records so far.
    #[must_use]
    pub fn recorded(&self) -> Recorded {
        self.counts.read()
    }

    /// Waits until everything is written.
    #[must_use]
    pub fn close(self) -> Recorded {
        drop(self.queue);
        // A writer that panicked has written nothing more; the counts are what it did.
        let _ = self.writer.map(JoinHandle::join);
        self.counts.read()
    }
}

impl Recorded {
    /// One line for the user; `None` when every record is in the store.
    #[must_use]
    pub fn message(&self) -> Option<String> {
        let reason = self.reason.as_deref().unwrap_or("unknown reason");
        match (self.spooled, self.lost) {
            (0, 0) => None,
            (_, 0) => {
                Some(format!("record not stored yet: {reason}; kept in the spool until the store can be written"))
            }
            (_, lost) => Some(format!("record lost ({lost}): {reason}")),
        }
    }
}

impl Counts {
    fn read(&self) -> Recorded {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let reason = self.reason.lock().ok().and_then(|reason| reason.clone());
        Recorded { stored: read(&self.stored), spooled: read(&self.spooled), lost: read(&self.lost), reason }
    }

    fn lose(&self, reason: &str) {
        self.lost.fetch_add(1, Ordering::Relaxed);
        self.note(reason);
    }

    fn note(&self, reason: &str) {
        if let Ok(mut first) = self.reason.lock() {
            first.get_or_insert_with(|| reason.to_owned());
        }
    }
}

struct Writer {
    place: Place,
    store: Option<Store>,
    counts: Arc<Counts>,
}

impl Writer {
    fn run(&mut self, jobs: &Receiver<Job>) {
        for job in jobs {
            match job {
                Job::Begin(record) => drop(self.write(|store| store.begin(&record))),
                Job::Trial(run, trial) => drop(self.write(|store| store.add_trial(run, &trial))),
                Job::Finish(record) => self.finish(&record),
            }
        }
    }

    fn finish(&mut self, record: &RunRecord) {
        let Err(error) = self.write(|store| store.finish(record)) else {
            self.counts.stored.fetch_add(1, Ordering::Relaxed);
            self.take_spool();
            return;
        };
        match spool::write(&self.place, record) {
            Ok(()) => {
                self.counts.spooled.fetch_add(1, Ordering::Relaxed);
                self.counts.note(&error.to_string());
            }
            Err(spool) => self.counts.lose(&format!("{error}; {spool}")),
        }
    }

    /// Runs an operation on the store, which is opened when it is not. After a lock that lasted, the next operation does not
    /// wait again.
    fn write<T>(&mut self, operation: impl FnOnce(&Store) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let store = match &self.store {
            Some(store) => store,
            None => self.store.insert(Store::open(&self.place)?),
        };
        let result = operation(store);
        let is_locked = matches!(&result, Err(StoreError::Sqlite(error))
            if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy));
        let _ = store.connection.busy_timeout(if is_locked { Duration::ZERO } else { BUSY });
        result
    }

    fn take_spool(&mut self) {
        let taken = self.store.as_ref().and_then(|store| store.take_spool().ok()).unwrap_or(0) as u64;
        // Records of earlier processes were not counted here.
        let own = self.counts.spooled.load(Ordering::Relaxed).min(taken);
        self.counts.spooled.fetch_sub(own, Ordering::Relaxed);
        self.counts.stored.fetch_add(own, Ordering::Relaxed);
    }
}
