//! Reports in memory.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// The last piece of text that was written, for example the document of the last test; clones have
/// the same.
#[derive(Debug, Clone, Default)]
pub struct MemoryOutput(Arc<Mutex<Option<String>>>);

impl MemoryOutput {
    /// The text without the end of its last line; `None` where nothing was written.
    pub fn text(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Write for MemoryOutput {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        // Each write is a whole document, which takes the place of the one before.
        let text = String::from_utf8_lossy(data).trim_end().to_owned();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
