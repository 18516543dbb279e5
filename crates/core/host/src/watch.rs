//! A thread that reads a host at a steady pace while a test runs.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// A consumer of readings of the host.
pub trait Reader: Send + 'static {
    /// Time of the next reading; `None` while none is needed.
    fn due(&self) -> Option<Instant>;

    /// Reads the host and sets the time of the next reading.
    fn read(&mut self);
}

/// Runs a reader in a thread of its own until dropped.
#[derive(Debug)]
pub struct Watch<R> {
    shared: Arc<Shared<R>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared<R> {
    /// The reader; `None` after the end.
    reader: Mutex<Option<R>>,
    /// Notified when the time of the next reading may have changed, and at the end.
    changed: Condvar,
}

impl<R: Reader> Watch<R> {
    /// Starts the thread, with this name.
    ///
    /// # Errors
    /// The operating system's, when it cannot create a thread.
    pub fn start(name: &str, reader: R) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            reader: Mutex::new(Some(reader)),
            changed: Condvar::new(),
        });
        let seen = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || seen.run())?;

        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Uses the reader between two readings.
    ///
    /// # Panics
    /// Never: the reader is taken only by [`Self::finish`], which consumes the watch.
    pub fn with<T>(&self, action: impl FnOnce(&mut R) -> T) -> T {
        let mut reader = self.shared.lock();
        let result = action(reader.as_mut().expect("the watch has not ended"));
        self.shared.changed.notify_all();
        result
    }
}

impl<R> Watch<R> {
    /// Ends the thread after the reading it may be taking. `None` if it panicked.
    pub fn finish(mut self) -> Option<R> {
        self.end()
    }

    fn end(&mut self) -> Option<R> {
        let reader = self.shared.lock().take();
        self.shared.changed.notify_all();
        self.thread.take()?.join().ok()?;
        reader
    }
}

impl<R> Drop for Watch<R> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<R> Shared<R> {
    fn lock(&self) -> MutexGuard<'_, Option<R>> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Reader> Shared<R> {
    fn run(&self) {
        let mut guard = self.lock();
        while let Some(reader) = guard.as_mut() {
            let now = Instant::now();
            guard = match reader.due() {
                Some(due) if due <= now => {
                    reader.read();
                    guard
                }
                Some(due) => {
                    self.changed
                        .wait_timeout(guard, due - now)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                None => self
                    .changed
                    .wait(guard)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}
