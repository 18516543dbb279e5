//! Backlog of an open loop.

use super::recorder::Recorder;

/// Due requests without a free connection. A closed loop has none.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    starved_until_ns: u64,
}

impl Backlog {
    /// Until here due requests had no free connection.
    pub(crate) fn starved_until_ns(&self) -> u64 {
        self.starved_until_ns
    }

    /// Records what could not be sent; `due_ns` is when the oldest of it was due. Returns whether it is older than the
    /// response timeout, so that the offered rate cannot be sustained.
    pub(crate) fn note_left(
        &mut self,
        due_ns: Option<u64>,
        now_ns: u64,
        timeout_ns: u64,
        recorder: &mut Recorder,
    ) -> bool {
        let age_ns = due_ns.map_or(0, |due_ns| now_ns.saturating_sub(due_ns));
        if age_ns == 0 {
            return false;
        }
        self.starved_until_ns = now_ns;
        recorder.backlog(age_ns);
        let is_overload = age_ns > timeout_ns;
        recorder.stats.is_overloaded |= is_overload;
        is_overload
    }
}

#[cfg(test)]
mod tests {
    use super::super::recorder::Window;
    use super::*;

    fn recorder() -> Recorder {
        let mut recorder = Recorder::new(false, true);
        recorder.set_window(Window { begin_ns: 0, open_ns: 0, end_ns: 10_000 });
        recorder
    }

    #[test]
    fn backlog_older_than_the_timeout_is_overload() {
        let rows = [
            (None, 0, false),
            (Some(1_000), 0, false),
            (Some(1_001), 0, false),
            (Some(999), 1, false),
            (Some(500), 500, false),
            (Some(499), 501, true),
        ];
        for (due_ns, age_ns, expected) in rows {
            let mut recorder = recorder();
            let is_overload = Backlog::default().note_left(due_ns, 1_000, 500, &mut recorder);
            assert_eq!((is_overload, recorder.stats.is_overloaded), (expected, expected), "{due_ns:?}");
            let second = recorder.last_second().expect("there is a window");
            assert_eq!(second.backlog_ns, age_ns, "{due_ns:?}");
        }
    }

    #[test]
    fn end_of_the_last_backlog_is_kept() {
        let (mut backlog, mut recorder) = (Backlog::default(), recorder());
        assert_eq!(backlog.starved_until_ns(), 0);
        backlog.note_left(Some(10), 30, 100, &mut recorder);
        assert_eq!(backlog.starved_until_ns(), 30);
        backlog.note_left(None, 50, 100, &mut recorder);
        assert_eq!(backlog.starved_until_ns(), 30, "everything was sent since");
    }
}
