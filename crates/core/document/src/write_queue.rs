//! A bounded queue between the threads that report and the one that writes.
//!
//! A full disk, a pipe whose reader stopped and one whose reader is gone delay or fail the writing
//! thread only. Text that does not fit and text that cannot be written is dropped, and its lines
//! are counted.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Text on its way to the streams; clones share it.
#[derive(Clone)]
pub(crate) struct WriteQueue {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// A message came, or the last sender is gone.
    filled: Condvar,
    /// A batch left.
    written: Condvar,
}

#[derive(Default)]
struct State {
    messages: VecDeque<Message>,
    /// Those of the batch that is being written included.
    queued_bytes: usize,
    /// Batches that left the queue, written or not.
    batches_done: u64,
    is_writing: bool,
    /// The writing thread waits for a message. To wake a thread that does not wait costs a system
    /// call all the same.
    is_idle: bool,
    /// Threads that wait until everything is written.
    flush_waiters: u32,
    dropped_lines: u64,
}

/// Writes a message; called by the writing thread only.
type WriteMessage = Box<dyn FnMut(&Message) -> io::Result<()> + Send>;

/// Makes the text about a number of dropped lines.
pub(crate) type DropNotice = Box<dyn Fn(u64) -> Message + Send>;

/// Next step of the writing thread.
pub(crate) enum Message {
    /// Report text.
    Report(String),
    /// Error text.
    Error(String),
    /// The log file is reopened.
    Reopen,
}

/// Time between two notices of dropped lines: a full disk must not fill standard error.
const NOTICE_PAUSE: Duration = Duration::from_secs(10);
/// Text that may wait. A reader that is slow for a moment loses nothing; one that stopped costs
/// this much memory.
const QUEUED_BYTES_MAX: usize = 16 << 20;
/// Messages that the writing thread takes at a time: a server with thousands of connections per
/// second queues a line for each, and its threads would wait for the lock.
const BATCH_MESSAGES_MAX: usize = 64;
/// A batch with this much text takes no further message.
const BATCH_BYTES: usize = 64 << 10;

impl WriteQueue {
    /// Starts the writing thread; it lives as long as the process. Dropped lines are announced by
    /// `notice` behind the next report that is written.
    ///
    /// # Errors
    /// The operating system's, when there can be no thread.
    pub(crate) fn start(write: WriteMessage, notice: DropNotice) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            filled: Condvar::new(),
            written: Condvar::new(),
        });
        let writer = Arc::clone(&shared);
        thread::Builder::new()
            .name("linerate-log".into())
            .spawn(move || writer.write_all(write, &notice))?;

        Ok(Self { shared })
    }

    /// Queues a message, or drops it when the queue is full.
    pub(crate) fn push(&self, message: Message) {
        let mut state = self.shared.lock();
        // The message that crosses the limit is kept whole: no text is cut.
        if state.queued_bytes >= QUEUED_BYTES_MAX {
            state.dropped_lines += message.lines();
            return;
        }

        state.queued_bytes += message.text().len();
        state.messages.push_back(message);

        // Only a writer that waits needs the system call of a wake-up (futex(2)).
        if std::mem::take(&mut state.is_idle) {
            self.shared.filled.notify_one();
        }
    }

    /// Waits until everything is written, or until nothing was written for `timeout`.
    pub(crate) fn flush(&self, timeout: Duration) {
        let mut state = self.shared.lock();
        let mut deadline = Instant::now() + timeout;
        state.flush_waiters += 1;

        while !state.messages.is_empty() || state.is_writing {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }

            let before = state.batches_done;
            let waited = self.shared.written.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;

            // Progress extends the wait: only a writer that is stuck ends it.
            if state.batches_done != before {
                deadline = Instant::now() + timeout;
            }
        }

        state.flush_waiters -= 1;
    }
}

impl Shared {
    fn write_all(&self, mut write: WriteMessage, notice: &DropNotice) {
        let mut quiet_until = None;
        loop {
            let batch = self.next_batch();
            let mut is_report_written = false;

            for message in &batch {
                if write(message).is_err() {
                    self.lock().dropped_lines += message.lines();
                } else {
                    is_report_written |= matches!(message, Message::Report(_));
                }
            }

            // A notice can be written only where reports can be written again.
            if is_report_written && quiet_until.is_none_or(|t| Instant::now() >= t) {
                let is_announced = self.announce_dropped(&mut write, notice);
                quiet_until = is_announced.then(|| Instant::now() + NOTICE_PAUSE);
            }

            self.end_batch(&batch);
        }
    }

    fn end_batch(&self, batch: &[Message]) {
        let mut state = self.lock();
        state.is_writing = false;
        state.queued_bytes -= batch
            .iter()
            .map(|message| message.text().len())
            .sum::<usize>();
        state.batches_done += 1;

        if state.flush_waiters > 0 {
            self.written.notify_all();
        }
    }

    /// True if there was something to announce, and it was written.
    fn announce_dropped(&self, write: &mut WriteMessage, notice: &DropNotice) -> bool {
        let lines = std::mem::take(&mut self.lock().dropped_lines);
        // The count is taken before the notice is written: drops during the write are not lost.
        let is_announced = lines > 0 && write(&notice(lines)).is_ok();
        if !is_announced {
            self.lock().dropped_lines += lines;
        }
        is_announced
    }

    fn next_batch(&self) -> Vec<Message> {
        let mut state = self.lock();
        while state.messages.is_empty() {
            state.is_idle = true;
            state = self
                .filled
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }

        state.is_idle = false;
        state.is_writing = true;
        let mut bytes = 0;
        let fits = |message: &&Message| {
            // The first message always fits, whatever its length.
            let fits = bytes < BATCH_BYTES;
            bytes += message.text().len();
            fits
        };

        let count = state
            .messages
            .iter()
            .take(BATCH_MESSAGES_MAX)
            .take_while(fits)
            .count();
        state.messages.drain(..count).collect()
    }

    /// Counts and texts are whole after each step, so a panic elsewhere leaves them usable.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Message {
    fn text(&self) -> &str {
        match self {
            Self::Report(text) | Self::Error(text) => text,
            Self::Reopen => "",
        }
    }

    fn lines(&self) -> u64 {
        self.text().bytes().filter(|b| *b == b'\n').count() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write};

    use super::*;
    use crate::output::Streams;

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn queue(writer: impl Write + Send + 'static) -> WriteQueue {
        let notice = Box::new(|lines| Message::Report(format!("{lines} dropped\n")));
        let mut streams = Streams::new(Box::new(writer), None);
        WriteQueue::start(Box::new(move |message| streams.write(message)), notice)
            .expect("a thread")
    }

    /// A full queue is that of a pipe whose reader does nothing.
    #[test]
    fn stopped_reader_blocks_no_writer_and_costs_bounded_memory() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let queue = queue(writer);
        let line = format!("{}\n", "x".repeat(1023));
        let lines = 2 * QUEUED_BYTES_MAX / line.len();
        for _ in 0..lines {
            queue.push(Message::Report(line.clone()));
        }

        queue.flush(Duration::from_millis(1));
        let dropped = usize::try_from(queue.shared.lock().dropped_lines).expect("a count");
        assert!(dropped > 0);
        assert!(queue.shared.lock().queued_bytes <= QUEUED_BYTES_MAX + line.len());

        let notice = format!("\n{dropped} dropped\n");
        let mut text = vec![0; (lines - dropped) * line.len() + notice.len() - 1];
        reader
            .read_exact(&mut text)
            .expect("what was not dropped arrives");
        assert!(String::from_utf8_lossy(&text).contains(&notice));
    }

    #[test]
    fn text_that_cannot_be_written_is_counted_and_what_follows_begins_a_line() {
        /// Takes 3 bytes, refuses the rest, and then takes everything.
        struct Full {
            text: Arc<Mutex<Vec<u8>>>,
            refusals: u32,
        }

        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let mut text = self.text.lock().expect("no panic before");
                if self.refusals > 0 && text.len() >= 3 {
                    self.refusals -= 1;
                    return Err(io::ErrorKind::StorageFull.into());
                }

                let n = if self.refusals > 0 {
                    bytes.len().min(3)
                } else {
                    bytes.len()
                };
                text.extend_from_slice(&bytes[..n]);
                Ok(n)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }

        let text = Arc::new(Mutex::new(Vec::new()));
        let full = Full {
            text: Arc::clone(&text),
            refusals: 1,
        };
        let queue = queue(full);
        queue.push(Message::Report("first\n".into()));
        queue.push(Message::Report("second\n".into()));
        queue.flush(TIMEOUT);
        assert_eq!(
            *text.lock().expect("no panic before"),
            b"fir\nsecond\n1 dropped\n"
        );
    }

    #[test]
    fn flush_waits_for_the_last_message() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let queue = queue(writer);
        let sent = "line\n".repeat(100_000);
        queue.push(Message::Report(sent.clone()));

        let reading = thread::spawn(move || {
            let mut text = vec![0; sent.len()];
            reader
                .read_exact(&mut text)
                .map(|()| text == sent.as_bytes())
        });
        queue.flush(TIMEOUT);
        assert!(!queue.shared.lock().is_writing);
        assert!(
            reading
                .join()
                .expect("no panic")
                .expect("everything was written")
        );
    }
}
