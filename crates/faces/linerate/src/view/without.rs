//! A build without the terminal view.

use std::io::{self, Write as _};

use linerate_document::{DroppedNotice, Output};

use crate::live::Live;

/// A view that is shown until it is closed; this build has none.
#[derive(Debug)]
pub enum View {}

impl View {
    /// Writes that this build has no view; the run continues without.
    #[must_use]
    pub fn open(_: &Live) -> Option<Self> {
        // There is nowhere left to complain if stderr is gone.
        let _ = writeln!(
            io::stderr(),
            "linerate: no terminal view: this build was made without the feature tui"
        );
        None
    }

    /// Never called.
    #[must_use]
    pub fn output(&self) -> Output {
        match *self {}
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn server_output(&self, _: DroppedNotice) -> io::Result<Output> {
        match *self {}
    }

    /// Never called.
    pub fn close(self) {
        match self {}
    }
}
