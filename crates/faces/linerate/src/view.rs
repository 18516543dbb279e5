//! The terminal view: a thread that draws what runs now on the terminal of standard error.
//!
//! The run never waits for it. What would be printed on that terminal meanwhile is printed when the
//! view is closed.

mod held;
mod host_load;

use std::io;
use std::panic;
use std::sync::{Arc, Once};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use linerate_document::{DroppedNotice, Output};
use linerate_model::live::LiveState;
use linerate_sys::poll::{EventFd, Interest, wait_fds};
use linerate_sys::signal::{self, Signal, Signals};
use linerate_sys::terminal::{self, Screen};
use linerate_tui::{COLUMNS_MIN, Painter, ROWS_MIN, View as Shown, screen};

use crate::live::Live;
use held::Held;
use host_load::HostLoad;

/// Time between two pictures.
const FRAME: Duration = Duration::from_millis(100);
/// Time between two samples of this host.
const SAMPLE: Duration = Duration::from_secs(1);
/// Signals that change the terminal. The others belong to the run.
const SIGNALS: [Signal; 4] = [
    Signal::Stop,
    Signal::Continue,
    Signal::WindowChange,
    Signal::Quit,
];

/// A view that is shown until it is closed.
#[derive(Debug)]
pub struct View {
    end: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
    held: Held,
}

impl View {
    /// Shows a state. Where there is no terminal that can, one line on standard error names the
    /// reason and the run continues without. Call it before any other thread starts: threads
    /// inherit which signals are blocked.
    pub fn open(live: &Live) -> Option<Self> {
        match Self::try_open(live) {
            Ok(view) => Some(view),
            Err(reason) => {
                remark(&reason);
                None
            }
        }
    }

    fn try_open(live: &Live) -> Result<Self, String> {
        // The terminal is checked before any of its modes is changed.
        check_terminal()?;
        let text = |error: io::Error| error.to_string();
        let signals = Signals::new(&SIGNALS).map_err(|error| error.to_string())?;
        let end = Arc::new(EventFd::new().map_err(|error| error.to_string())?);
        let mut screen = Screen::open().map_err(text)?;

        leave_on_panic();
        screen.enter().map_err(text)?;
        let held = Held::default();

        let drawer = Drawer {
            painter: Painter::new(screen),
            signals,
            end: Arc::clone(&end),
            live: live.clone(),
            host: HostLoad::new(),
            next_sample: Instant::now(),
            paused: None,
            is_help: false,
            drawn: None,
        };
        let thread = thread::Builder::new()
            .name("lr-view".into())
            .spawn(move || drawer.run())
            .map_err(text)?;
        Ok(Self {
            end,
            thread: Some(thread),
            held,
        })
    }

    /// Streams of a client: what goes to the terminal of the view is held back.
    pub fn output(&self) -> Output {
        let [normal, errors] = self.held.writers();
        Output::new(normal, errors)
    }

    /// Streams of a server, as [`Self::output`].
    ///
    /// # Errors
    /// The operating system's, when there can be no thread.
    pub fn server_output(&self, notice: DroppedNotice) -> io::Result<Output> {
        let [normal, errors] = self.held.writers();
        Output::queued(normal, errors, notice)
    }

    /// Puts the terminal back and prints what was held back.
    pub fn close(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.end.signal();
        if let Some(thread) = self.thread.take() {
            // A view that panicked has put the terminal back.
            let _ = thread.join();
        }

        terminal::leave();
        self.held.release();
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end();
        }
    }
}

fn remark(reason: &str) {
    // There is nowhere left to complain if stderr is gone.
    let _ = io::Write::write_all(
        &mut io::stderr(),
        format!("linerate: no terminal view: {reason}\n").as_bytes(),
    );
}

fn check_terminal() -> Result<(), String> {
    let Some(size) = terminal::size(io::stderr()) else {
        return Err("standard error is no terminal".to_owned());
    };
    match std::env::var("TERM") {
        Ok(name) if name != "dumb" && !name.is_empty() => {}
        _ => return Err("the terminal has no screen (TERM)".to_owned()),
    }

    if std::env::var_os("LINERATE_LOG").is_some() {
        return Err("LINERATE_LOG writes to the terminal".to_owned());
    }

    if size.columns < COLUMNS_MIN || size.rows < ROWS_MIN {
        let columns = size.columns;
        let rows = size.rows;
        return Err(format!(
            "the terminal has {columns}x{rows} characters, a view needs {COLUMNS_MIN}x{ROWS_MIN}"
        ));
    }

    Ok(())
}

/// A release aborts on a panic, so no destructor puts the terminal back.
fn leave_on_panic() {
    static ONCE: Once = Once::new();

    ONCE.call_once(|| {
        // A release aborts on a panic and drops nothing, so no destructor restores the terminal.
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            terminal::leave();
            before(info);
        }));
    });
}

/// State that the thread of the view owns.
struct Drawer {
    painter: Painter<Screen>,
    signals: Signals,
    end: Arc<EventFd>,
    live: Live,
    host: HostLoad,
    next_sample: Instant,
    /// The state and the time that a paused view shows.
    paused: Option<(LiveState, u64)>,
    is_help: bool,
    /// Version and whole second of the picture; `None` when it must be drawn.
    drawn: Option<(u64, u64)>,
}

/// Next step of the view: it continues or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Goes,
    Ends,
}

impl Drawer {
    fn run(mut self) {
        let mut next_frame = Instant::now();
        loop {
            let now = Instant::now();
            if now >= next_frame {
                next_frame = now + FRAME;
                self.sample(now);
                if self.draw().is_err() {
                    break;
                }
            }

            let left = next_frame.saturating_duration_since(Instant::now());
            let readable = Interest::READ;
            let fds = [
                (terminal_of(&mut self.painter), readable),
                (fd(&self.signals), readable),
                (fd(&*self.end), readable),
            ];
            let Ok([has_keys, has_signals, is_over]) = wait_fds(fds, Some(left)) else {
                break;
            };
            // The panic hook of another thread may have restored the terminal.
            if is_over || !terminal::is_in_use() {
                break;
            }

            if has_signals {
                self.take_signals();
            }

            if has_keys && self.take_keys() == Next::Ends {
                break;
            }
        }

        terminal::leave();
    }

    fn sample(&mut self, now: Instant) {
        if now < self.next_sample {
            return;
        }

        self.next_sample = now + SAMPLE;
        if let Some(host) = self.host.sample() {
            self.live.update(|state| state.host = Some(host));
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let now_ns = self.live.now_ns();
        // Times on the screen change once a second without an event.
        let version = (self.live.version(), now_ns / 1_000_000_000);
        let is_same = match self.drawn {
            Some(drawn) => drawn == version || self.paused.is_some(),
            None => false,
        };
        if is_same {
            return Ok(());
        }

        let Some(size) = self.painter.output().size() else {
            return Ok(());
        };
        let (state, now_ns) = match &self.paused {
            Some((state, at_ns)) => (state.clone(), *at_ns),
            None => (self.live.read(), now_ns),
        };
        let shown = Shown {
            columns: size.columns,
            rows: size.rows,
            now_ns,
            glyphs: linerate_document::progress::glyphs(),
            is_coloured: std::env::var_os("NO_COLOR").is_none(),
            is_paused: self.paused.is_some(),
            is_help: self.is_help,
        };
        self.painter.paint(screen(&state, shown))?;
        self.drawn = Some(version);

        Ok(())
    }

    fn take_signals(&mut self) {
        while let Ok(Some(signal)) = self.signals.take() {
            match signal {
                // The shell needs its own terminal modes before this process stops.
                Signal::Stop => {
                    terminal::leave();
                    signal::stop_self();
                    self.enter();
                }
                Signal::Continue => self.enter(),
                Signal::Quit => {
                    terminal::leave();
                    // SIGQUIT is blocked for signalfd(2); unblocked, it has its default action.
                    signal::unblock(&[Signal::Quit]);
                    signal::send_to_self(Signal::Quit);
                }
                _ => {}
            }

            self.redraw();
        }
    }

    /// A terminal that cannot show the view again is released, and the run continues without it.
    fn enter(&mut self) {
        // After a stop that was not ours the modes are those of the shell.
        terminal::leave();
        let _ = self.painter.output().enter();
    }

    fn redraw(&mut self) {
        self.painter.forget();
        self.drawn = None;
    }

    fn take_keys(&mut self) -> Next {
        let mut keys = [0; 64];
        let count = match self.painter.output().read_keys(&mut keys) {
            Ok(count) if count > 0 => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Next::Goes,
            // The terminal went away, and with it the keys that end the run.
            _ => {
                signal::send_to_self(Signal::Interrupt);
                return Next::Ends;
            }
        };

        // Arrows and function keys are sequences that begin with an escape; none of them means
        // anything here.
        if keys.first() == Some(&0x1b) {
            return Next::Goes;
        }

        for key in keys.iter().take(count) {
            match key {
                b'q' => signal::send_to_self(Signal::Interrupt),
                b'?' => self.is_help = !self.is_help,
                b'p' => {
                    self.paused = match self.paused.take() {
                        Some(_) => None,
                        None => Some((self.live.read(), self.live.now_ns())),
                    }
                }
                _ => continue,
            }

            self.drawn = None;
        }

        Next::Goes
    }
}

fn fd(of: &impl std::os::fd::AsFd) -> std::os::fd::BorrowedFd<'_> {
    of.as_fd()
}

fn terminal_of(painter: &mut Painter<Screen>) -> std::os::fd::BorrowedFd<'_> {
    fd(painter.output())
}
