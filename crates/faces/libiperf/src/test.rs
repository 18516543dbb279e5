//! `struct iperf_test`, which only this library looks into.

use std::sync::{Mutex, MutexGuard, PoisonError};

use linerate::StopHandle;
use linerate_boundary::{Kept, guard};
use linerate_iperf3::wire::ErrorCode;
use linerate_model::Failure;

use crate::settings::Settings;

/// One test, client or server, that can run again. Several threads may use it.
#[derive(Default)]
pub(crate) struct Test {
    settings: Mutex<Settings>,
    /// Report of the last run with JSON output.
    report: Mutex<Kept>,
    /// Ends the test that runs.
    running: Mutex<Option<StopHandle>>,
}

impl Test {
    pub(crate) fn new() -> Self {
        Self {
            settings: Mutex::new(Settings::defaults()),
            ..Self::default()
        }
    }

    pub(crate) fn settings(&self) -> MutexGuard<'_, Settings> {
        lock(&self.settings)
    }

    pub(crate) fn report(&self) -> MutexGuard<'_, Kept> {
        lock(&self.report)
    }

    /// Runs `work` with the settings of now. Another thread can end it with [`Self::stop`].
    ///
    /// # Errors
    /// Those of `work`, or another run that has not ended.
    pub(crate) fn run(
        &self,
        work: impl FnOnce(&Settings, &StopHandle) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let stop = StopHandle::new()
            .map_err(|error| ErrorCode::InitTest.failure(Some(&error.to_string())))?;
        let mut running = lock(&self.running);
        if running.is_some() {
            return Err(ErrorCode::InitTest.failure(Some("another thread runs this test")));
        }

        *running = Some(stop.clone());
        drop(running);
        let settings = self.settings().clone();

        self.report().set(None);
        let outcome = work(&settings, &stop);
        *lock(&self.running) = None;
        outcome
    }

    /// Ends the test that runs, if there is one.
    pub(crate) fn stop(&self) {
        if let Some(stop) = &*lock(&self.running) {
            stop.stop();
        }
    }
}

/// The value of a setting, or `otherwise` for a null pointer.
pub(crate) fn read<R>(test: Option<&Test>, otherwise: R, value: impl FnOnce(&Settings) -> R) -> R {
    guard(None, || test.map(|test| value(&test.settings()))).unwrap_or(otherwise)
}

/// Changes settings; a null pointer has none.
pub(crate) fn change(test: Option<&Test>, change: impl FnOnce(&mut Settings)) {
    guard((), || {
        if let Some(test) = test {
            change(&mut test.settings());
        }
    });
}

/// No panic happens while a lock is held, but one elsewhere in the thread may poison it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
