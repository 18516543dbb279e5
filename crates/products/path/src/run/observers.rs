//! Who follows a test of a path.

use linerate_document::progress::{Progress, style};
use linerate_model::path::{FinishedPhase, PathEvent};

use crate::report::finished_line;

/// Text for people on standard error, and events for programs.
pub struct Observers<'a> {
    /// The text.
    pub progress: &'a mut Progress,
    /// Receives the events.
    pub on_event: &'a mut dyn FnMut(&PathEvent<'_>),
}

impl<'a> Observers<'a> {
    /// Text to `progress`, and events to `on_event`.
    pub fn new(progress: &'a mut Progress, on_event: &'a mut dyn FnMut(&PathEvent<'_>)) -> Self {
        Self { progress, on_event }
    }
}

impl Observers<'_> {
    /// Borrows the observers for a shorter time.
    pub(super) fn reborrow(&mut self) -> Observers<'_> {
        Observers {
            progress: &mut *self.progress,
            on_event: &mut *self.on_event,
        }
    }

    /// A phase ended: an event, and a line unless the live line of the next phase takes its place.
    pub(super) fn finished(&mut self, phase: FinishedPhase<'_>) {
        (self.on_event)(&PathEvent::Phase(phase));
        self.progress.clear();
        let is_shown =
            !self.progress.is_terminal() || matches!(phase, FinishedPhase::Failed { .. });
        if is_shown {
            self.progress.line(finished_line(phase, style()).trim_end());
        }
    }
}
