//! A thread that reads a host at a steady pace while a test runs.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    /// Users that wait for the reader. A host whose reading takes longer than its period would be
    /// read without a pause, and the reader never be free.
    waiting: AtomicUsize,
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
            waiting: AtomicUsize::new(0),
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
        let mut reader = self.shared.lock_between_readings();
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
        let reader = self.shared.lock_between_readings().take();
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

    /// The reader, before the next reading. The caller notifies `changed` afterwards.
    fn lock_between_readings(&self) -> MutexGuard<'_, Option<R>> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let guard = self.lock();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        guard
    }
}

impl<R: Reader> Shared<R> {
    fn run(&self) {
        let mut guard = self.lock();
        while let Some(reader) = guard.as_mut() {
            let now = Instant::now();
            let is_wanted = self.waiting.load(Ordering::Relaxed) > 0;
            guard = match reader.due() {
                Some(due) if due <= now && !is_wanted => {
                    reader.read();
                    guard
                }
                Some(due) if !is_wanted => {
                    self.changed
                        .wait_timeout(guard, due - now)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                _ => self
                    .changed
                    .wait(guard)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Takes longer than its period.
    struct AlwaysDue(mpsc::Sender<()>, Instant);

    impl Reader for AlwaysDue {
        fn due(&self) -> Option<Instant> {
            Some(self.1)
        }

        fn read(&mut self) {
            // The test may have what it waited for.
            let _ = self.0.send(());
        }
    }

    #[test]
    fn reader_that_is_always_due_can_be_used_and_ended() {
        let (read, readings) = mpsc::channel();
        let (done, ended) = mpsc::channel();
        let watch = Watch::start("always-due", AlwaysDue(read, Instant::now())).expect("a thread");
        readings.recv().expect("a reading");

        thread::spawn(move || {
            watch.with(|_| ());
            done.send(watch.finish().is_some())
        });
        assert_eq!(ended.recv_timeout(Duration::from_secs(20)), Ok(true));
    }
}
