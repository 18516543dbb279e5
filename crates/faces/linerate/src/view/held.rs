//! Text for a terminal that shows a view.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Text that is held back; the oldest lines are dropped beyond it.
const HELD_BYTES_MAX: usize = 16 << 20;

/// Text that is printed when the view is closed; clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Held(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    texts: VecDeque<(Target, Vec<u8>)>,
    bytes: usize,
    dropped_lines: usize,
    is_released: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Normal,
    Errors,
}

impl Target {
    fn write(self, text: &[u8]) -> io::Result<()> {
        match self {
            Self::Normal => io::stdout()
                .write_all(text)
                .and_then(|()| io::stdout().flush()),
            Self::Errors => io::stderr().write_all(text),
        }
    }
}

impl Held {
    /// Standard output and standard error. Only what is a terminal is held back.
    pub(super) fn writers(&self) -> [Box<dyn Write + Send>; 2] {
        let held = |target| {
            Box::new(Writer {
                held: self.clone(),
                target,
            })
        };
        // Text for a file or a pipe does not disturb the view.
        let normal: Box<dyn Write + Send> = if io::stdout().is_terminal() {
            held(Target::Normal)
        } else {
            Box::new(io::stdout())
        };
        [normal, held(Target::Errors)]
    }

    /// Prints everything; from now on nothing is held back.
    pub(super) fn release(&self) {
        let mut state = self.lock();
        state.is_released = true;

        if state.dropped_lines > 0 {
            let notice = format!(
                "linerate: {} lines before these were dropped\n",
                state.dropped_lines
            );
            // A terminal that went away takes nothing.
            let _ = Target::Errors.write(notice.as_bytes());
        }

        for (target, text) in std::mem::take(&mut state.texts) {
            let _ = target.write(&text);
        }
    }

    fn push(&self, target: Target, text: &[u8]) -> io::Result<()> {
        let mut state = self.lock();
        if state.is_released {
            drop(state);
            return target.write(text);
        }

        state.bytes += text.len();
        state.texts.push_back((target, text.to_owned()));

        while state.bytes > HELD_BYTES_MAX
            && let Some((_, oldest)) = state.texts.pop_front()
        {
            state.bytes -= oldest.len();
            state.dropped_lines += oldest.iter().filter(|byte| **byte == b'\n').count();
        }

        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Writer {
    held: Held,
    target: Target,
}

impl Write for Writer {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.held.push(self.target, text).map(|()| text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_what_is_dropped_is_counted() {
        let held = Held::default();
        let line = format!("{}\n", "x".repeat(1023));
        let lines = HELD_BYTES_MAX / line.len() + 3;
        for _ in 0..lines {
            held.push(Target::Normal, line.as_bytes()).expect("memory");
        }

        let state = held.lock();
        assert_eq!((state.dropped_lines, state.bytes), (3, HELD_BYTES_MAX));
    }
}
