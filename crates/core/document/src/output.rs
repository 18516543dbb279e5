//! Where reports go.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_model::printable::printable_lines;

use crate::write_queue::{DropNotice, Message, WriteQueue};

/// Two streams, for reports and for errors; clones write to the same place.
///
/// Every piece of text is written and flushed as a whole, so the reports of concurrent tests mix by
/// lines, never inside one, and a reader of a pipe sees each report when it happens.
#[derive(Clone)]
pub struct Output {
    route: Route,
}

#[derive(Clone)]
enum Route {
    /// The caller writes, and learns of failures.
    Direct(Arc<Mutex<Streams>>),
    /// A thread of its own writes.
    Queued(WriteQueue),
}

/// Announcement of dropped lines.
pub struct DroppedNotice(DropNotice);

impl DroppedNotice {
    /// As a line among the reports.
    pub fn report(text: impl Fn(u64) -> String + Send + 'static) -> Self {
        Self(Box::new(move |lines| Message::Report(text(lines))))
    }

    /// As a line among the errors.
    pub fn error(text: impl Fn(u64) -> String + Send + 'static) -> Self {
        Self(Box::new(move |lines| Message::Error(text(lines))))
    }
}

/// Where text ends.
pub(crate) struct Streams {
    normal: Stream,
    /// `None`: errors go where reports go.
    errors: Option<Stream>,
    /// The file behind `normal`, if it is one that may be rotated.
    log_file: Option<PathBuf>,
}

struct Stream {
    writer: Box<dyn Write + Send>,
    /// The last text ended inside a line.
    is_torn: bool,
}

impl Output {
    /// Reports to standard output, errors to standard error.
    pub fn standard() -> Self {
        Self::new(Box::new(io::stdout()), Box::new(io::stderr()))
    }

    /// Reports to `normal`, errors to `errors`.
    pub fn new(normal: Box<dyn Write + Send>, errors: Box<dyn Write + Send>) -> Self {
        Self::direct(Streams::new(normal, Some(errors)))
    }

    /// Appends reports and errors to one file.
    ///
    /// # Errors
    /// The operating system's, when the file cannot be opened for appending.
    pub fn log_file(path: &Path) -> io::Result<Self> {
        Ok(Self::direct(Streams::file(path)?))
    }

    /// Streams of a server, as [`Self::log_file`] or the standard ones: a thread of its own writes,
    /// through a bounded queue. No call waits for a reader or a disk and none fails. What cannot be
    /// written is dropped, and a later line counts it.
    ///
    /// `log_file` is appended to if there is one, otherwise the standard streams are used. To be
    /// called after the process has become a daemon, because threads do not survive that.
    ///
    /// # Errors
    /// The operating system's, when the file cannot be opened or there can be no thread.
    pub fn for_server(log_file: Option<&Path>, notice: DroppedNotice) -> io::Result<Self> {
        Self::queue(
            match log_file {
                Some(path) => Streams::file(path)?,
                None => Streams::new(
                    unbuffered(io::stdout().as_fd())?,
                    Some(unbuffered(io::stderr().as_fd())?),
                ),
            },
            notice,
        )
    }

    /// As [`Self::for_server`], with streams of the caller.
    ///
    /// # Errors
    /// The operating system's, when there can be no thread.
    pub fn queued(
        normal: Box<dyn Write + Send>,
        errors: Box<dyn Write + Send>,
        notice: DroppedNotice,
    ) -> io::Result<Self> {
        Self::queue(Streams::new(normal, Some(errors)), notice)
    }

    fn queue(mut streams: Streams, notice: DroppedNotice) -> io::Result<Self> {
        let queue = WriteQueue::start(Box::new(move |message| streams.write(message)), notice.0)?;
        Ok(Self {
            route: Route::Queued(queue),
        })
    }

    /// Reopens the log file, so that it can be rotated between tests. Does nothing for other
    /// outputs.
    ///
    /// # Errors
    /// The operating system's, when the file cannot be opened for appending.
    pub fn reopen(&self) -> io::Result<()> {
        self.send(Message::Reopen)
    }

    /// Writes report text. Control characters in it, which peers, files and devices may have put
    /// there, are made visible.
    ///
    /// # Errors
    /// When the text cannot be written.
    pub fn report(&self, text: impl AsRef<str>) -> io::Result<()> {
        self.send(Message::Report(printable_lines(text.as_ref())))
    }

    /// Writes error text. A failure to write an error cannot be reported.
    pub fn error(&self, text: &str) {
        drop(self.send(Message::Error(printable_lines(text))));
    }

    fn send(&self, message: Message) -> io::Result<()> {
        match &self.route {
            Route::Direct(streams) => lock(streams).write(&message),
            Route::Queued(queue) => {
                queue.push(message);
                Ok(())
            }
        }
    }

    /// Waits until everything is written, or until nothing was written for `timeout`.
    pub fn flush(&self, timeout: Duration) {
        if let Route::Queued(queue) = &self.route {
            queue.flush(timeout);
        }
    }

    fn direct(streams: Streams) -> Self {
        Self {
            route: Route::Direct(Arc::new(Mutex::new(streams))),
        }
    }
}

impl Streams {
    pub(crate) fn new(
        normal: Box<dyn Write + Send>,
        errors: Option<Box<dyn Write + Send>>,
    ) -> Self {
        Self {
            normal: Stream::new(normal),
            errors: errors.map(Stream::new),
            log_file: None,
        }
    }

    fn file(path: &Path) -> io::Result<Self> {
        Ok(Self {
            log_file: Some(path.to_owned()),
            ..Self::new(Box::new(open_log(path)?), None)
        })
    }

    pub(crate) fn write(&mut self, message: &Message) -> io::Result<()> {
        match message {
            Message::Report(text) => self.normal.write_whole(text),
            Message::Error(text) => self.error(text),
            Message::Reopen => self.reopen(),
        }
    }

    /// Lines that a log file refuses go to standard error.
    fn error(&mut self, text: &str) -> io::Result<()> {
        match &mut self.errors {
            Some(errors) => errors.write_whole(text),
            None => {
                let written = self.normal.write_whole(text);
                written.or_else(|_| io::stderr().write_all(text.as_bytes()))
            }
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        if let Some(path) = &self.log_file {
            // The rotated file is closed with the stream that is replaced.
            self.normal = Stream::new(Box::new(open_log(path)?));
        }
        Ok(())
    }
}

impl Stream {
    fn new(writer: Box<dyn Write + Send>) -> Self {
        Self {
            writer,
            is_torn: false,
        }
    }

    /// Text behind a line that was cut off by a failure begins a line of its own.
    fn write_whole(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }

        if self.is_torn {
            // The line that was cut by a full disk ends here, so that the next one is whole.
            self.writer.write_all(b"\n")?;
            self.is_torn = false;
        }

        // `write_all` does not return how much was written before an error.
        let mut left = text.as_bytes();
        while !left.is_empty() {
            match self.writer.write(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => left = left.get(n..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // Where nothing was written no line is cut.
                    self.is_torn = left.len() < text.len();
                    return Err(error);
                }
            }
        }

        self.writer.flush()
    }
}

/// A panic elsewhere leaves the streams usable; its report should still be seen.
fn lock(streams: &Mutex<Streams>) -> MutexGuard<'_, Streams> {
    streams.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A stream without the library's buffer, which would keep what a full disk refused, and without
/// its lock.
fn unbuffered(fd: BorrowedFd<'_>) -> io::Result<Box<dyn Write + Send>> {
    Ok(Box::new(File::from(fd.try_clone_to_owned()?)))
}

fn open_log(path: &Path) -> io::Result<File> {
    // O_APPEND: a rotated or truncated file is written at its end (open(2)).
    OpenOptions::new().append(true).create(true).open(path)
}
