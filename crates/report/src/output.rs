//! Where reports go.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Two streams, for reports and for errors; clones write to the same place.
///
/// Every piece of text is written and flushed as a whole, so the reports of concurrent tests mix by lines, never inside
/// one, and a reader of a pipe sees each report when it happens.
#[derive(Clone)]
pub struct Output {
    streams: Arc<Mutex<Streams>>,
}

struct Streams {
    normal: Box<dyn Write + Send>,
    /// `None`: errors go where reports go.
    errors: Option<Box<dyn Write + Send>>,
    /// The file behind `normal`, if it is one that may be rotated.
    log_file: Option<PathBuf>,
}

impl Output {
    /// Reports to standard output, errors to standard error.
    #[must_use]
    pub fn standard() -> Self {
        Self::new(Box::new(io::stdout()), Box::new(io::stderr()))
    }

    /// Reports to `normal`, errors to `errors`.
    #[must_use]
    pub fn new(normal: Box<dyn Write + Send>, errors: Box<dyn Write + Send>) -> Self {
        Self::from_streams(Streams {
            normal,
            errors: Some(errors),
            log_file: None,
        })
    }

    /// Appends reports and errors to one file.
    ///
    /// # Errors
    /// The operating system's, when the file cannot be opened for appending.
    pub fn log_file(path: &Path) -> io::Result<Self> {
        Ok(Self::from_streams(Streams {
            normal: Box::new(open_log(path)?),
            errors: None,
            log_file: Some(path.to_owned()),
        }))
    }

    /// Opens the log file anew, so that it can be rotated between tests. Does nothing for other outputs.
    ///
    /// # Errors
    /// The operating system's, when the file cannot be opened for appending.
    pub fn reopen(&self) -> io::Result<()> {
        let mut streams = self.lock();
        if let Some(path) = &streams.log_file {
            streams.normal = Box::new(open_log(path)?);
        }
        Ok(())
    }

    /// Writes report text.
    pub(crate) fn report(&self, text: &str) -> io::Result<()> {
        write_whole(&mut self.lock().normal, text)
    }

    /// Writes error text. A failure to report a failure has nobody left to tell.
    pub fn error(&self, text: &str) {
        let mut streams = self.lock();
        let Streams { normal, errors, .. } = &mut *streams;
        drop(write_whole(errors.as_mut().unwrap_or(normal), text));
    }

    fn from_streams(streams: Streams) -> Self {
        Self {
            streams: Arc::new(Mutex::new(streams)),
        }
    }

    /// A panic elsewhere leaves the streams usable; its report should still be seen.
    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open_log(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

fn write_whole(stream: &mut Box<dyn Write + Send>, text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    stream.write_all(text.as_bytes())?;
    stream.flush()
}
