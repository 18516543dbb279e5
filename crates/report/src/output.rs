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
    loss: Loss,
}

/// What a report that cannot be written does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// It is an error of the test.
    Fails,
    /// The text is lost; the first loss in a row is reported on the error stream.
    Unreported,
    /// The text is lost, and that has been reported.
    Reported,
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
            loss: Loss::Fails,
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
            loss: Loss::Fails,
        }))
    }

    /// Never fails again: what cannot be written is lost. For servers, which a full disk or a closed pipe does not end.
    #[must_use]
    pub fn lossy(self) -> Self {
        self.lock().loss = Loss::Unreported;
        self
    }

    /// Opens the log file anew, so that it can be rotated between tests. Does nothing for other outputs.
    ///
    /// # Errors
    /// The operating system's, when the file cannot be opened for appending.
    pub fn reopen(&self) -> io::Result<()> {
        let mut streams = self.lock();
        let Some(path) = &streams.log_file else { return Ok(()) };
        match open_log(path) {
            Ok(file) => streams.normal = Box::new(file),
            Err(error) => return streams.settle(Err(error)),
        }
        Ok(())
    }

    /// Writes report text.
    pub(crate) fn report(&self, text: &str) -> io::Result<()> {
        let mut streams = self.lock();
        let written = write_whole(&mut streams.normal, text);
        streams.settle(written)
    }

    /// Writes error text. What a log file does not take goes to standard error; a failure there has no further place.
    pub fn error(&self, text: &str) {
        let mut streams = self.lock();
        let Streams { normal, errors, .. } = &mut *streams;
        let written = write_whole(errors.as_mut().unwrap_or(normal), text);
        if written.is_err() && errors.is_none() {
            let _ = io::stderr().write_all(text.as_bytes());
        }
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

impl Streams {
    fn settle(&mut self, written: io::Result<()>) -> io::Result<()> {
        match (self.loss, written) {
            (Loss::Fails, result) => return result,
            (_, Ok(())) => self.loss = Loss::Unreported,
            (Loss::Reported, Err(_)) => {}
            (Loss::Unreported, Err(error)) => {
                self.loss = Loss::Reported;
                let text = format!("warning: unable to write the report, the server goes on without it: {error}\n");
                let _ = match &mut self.errors {
                    Some(errors) => write_whole(errors, &text),
                    None => io::stderr().write_all(text.as_bytes()),
                };
            }
        }
        Ok(())
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
