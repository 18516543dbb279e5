//! Ctrl-C while an experiment runs: once ends it with what is known, twice at once.

use linerate_model::outcome::Error;
use linerate_sys::signal::{self, Signal, Signals};

/// Requests of the user by signal while it runs.
#[derive(Debug)]
pub(super) struct Stop {
    signals: Signals,
    times: u32,
}

impl Stop {
    /// # Errors
    /// The operating system's.
    pub(super) fn new() -> Result<Self, Error> {
        let signals = Signals::new(&SIGNALS);
        Ok(Self {
            signals: signals.map_err(|error| Error::failed(error.text()))?,
            times: 0,
        })
    }

    /// For callers that wait for signals themselves and report one by [`Self::note`].
    pub(super) fn signals(&self) -> &Signals {
        &self.signals
    }

    /// A signal was taken elsewhere.
    pub(super) fn note(&mut self) {
        self.times += 1;
    }

    /// True if an end was requested. The second request ends the process at once.
    pub(super) fn is_wanted(&mut self) -> bool {
        while let Ok(Some(_)) = self.signals.take() {
            self.times += 1;
        }

        if self.times > 1 {
            std::process::exit(INTERRUPTED);
        }
        self.times > 0
    }
}

/// Leaves the signals to other threads; for one that starts before [`Stop`].
pub(super) fn leave_to_others() {
    // A thread without the block ends the process by a signal, as before there is a `Stop`.
    let _ = signal::block(&SIGNALS);
}

/// Those that end an experiment.
const SIGNALS: [Signal; 3] = [Signal::Interrupt, Signal::Terminate, Signal::Hangup];

/// As shells have it: 128 and the number of SIGINT.
const INTERRUPTED: i32 = 130;
