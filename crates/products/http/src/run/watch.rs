//! Samples this host in a background thread during a test and reports its resource usage.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use linerate_host::{Depth, Period, Sampler, Seconds, Watched, reading};
use linerate_model::http::{EndpointStats, Reading};
use linerate_model::outcome::Error;
use linerate_model::snapshot::Snapshot;

/// Time between two samples.
pub(super) const STEP: Duration = Duration::from_millis(200);
/// Interval between two samples while a test takes longer than a minute, and between tests.
pub(super) const STEP_LONG: Duration = Duration::from_secs(1);

/// Samples a host in a thread of its own while a test runs.
#[derive(Debug)]
pub(super) struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Notified when a test begins, and at the end.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    sampler: Sampler,
    step: Duration,
    /// Time of the next sample.
    due: Instant,
    last: Option<Snapshot>,
    window: Option<Period>,
    seconds: Option<Seconds>,
    last_reading: Option<Reading>,
    sequence: u64,
    is_over: bool,
}

impl Watch {
    /// Begins to watch; sampling starts with the first test.
    ///
    /// # Errors
    /// The operating system's, when it has no thread to spare.
    pub(super) fn start(watched: Watched) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                sampler: Sampler::open(watched),
                step: STEP_LONG,
                due: Instant::now(),
                last: None,
                window: None,
                seconds: None,
                last_reading: None,
                sequence: 0,
                is_over: false,
            }),
            changed: Condvar::new(),
        });
        let seen = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("lr-sampler".into())
            .spawn(move || seen.run())?;

        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// From now on, this process and these count as one.
    pub(super) fn count_in(&self, workers: &[u32]) {
        let own = std::iter::once(std::process::id());
        let pids = own.chain(workers.iter().copied()).collect();
        self.shared.lock().sampler.sample_processes(pids);
    }

    /// Begins to keep seconds; the window in which peaks and growth count comes later. `peer`
    /// decides which NIC is sampled. Returns what [`Self::begin`] does.
    pub(super) fn prepare(&self, peer: Option<IpAddr>, step: Duration) -> (u64, EndpointStats) {
        let mut state = self.shared.lock();
        let sample = state.begin(peer, step, Depth::Quick);
        state.window = None;
        state.seconds = Some(Seconds::begin(sample.clone()));
        self.shared.changed.notify_all();

        (
            sample.monotonic_ns.unwrap_or(0),
            Period::begin(sample).stats(),
        )
    }

    /// Keeps no seconds of what comes.
    pub(super) fn forget_seconds(&self) {
        self.shared.lock().seconds = None;
    }

    /// Begins a window: peaks and growth count from here. `peer` decides which NIC is sampled.
    /// Returns when that was, on the monotonic clock, and what is so at the time.
    pub(super) fn begin(&self, peer: Option<IpAddr>, step: Duration) -> (u64, EndpointStats) {
        let mut state = self.shared.lock();
        let sample = state.begin(peer, step, Depth::Full);
        let (at_ns, window) = (sample.monotonic_ns.unwrap_or(0), Period::begin(sample));
        let baseline = window.stats();

        state.window = Some(window);
        self.shared.changed.notify_all();
        (at_ns, baseline)
    }

    /// Ends the window; `None` when none was begun.
    pub(super) fn end(&self) -> Option<EndpointStats> {
        let mut state = self.shared.lock();
        let mut window = state.window.take()?;
        let sample = state.sampler.sample(Depth::Full);
        let mut seconds = state.seconds.take();
        if let Some(seconds) = &mut seconds {
            seconds.add(&sample);
        }

        window.add(sample);
        state.step = STEP_LONG;
        let mut stats = window.stats();
        stats.seconds = seconds.map(Seconds::into_inner).unwrap_or_default();

        Some(stats)
    }

    /// The last reading, however old.
    pub(super) fn last_reading(&self) -> Option<Reading> {
        self.shared.lock().last_reading.clone()
    }

    /// The watched objects.
    pub(super) fn watched(&self) -> Watched {
        self.shared.lock().sampler.watched().clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The error of a host that cannot be observed.
pub(super) fn cannot_watch(error: impl std::fmt::Display) -> Error {
    Error::failed(format!("cannot watch this host: {error}"))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, longest: Duration) -> MutexGuard<'a, State> {
        self.changed
            .wait_timeout(state, longest)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    fn run(&self) {
        let mut state = self.lock();
        while !state.is_over {
            let now = Instant::now();
            let is_idle = state.window.is_none() && state.seconds.is_none();
            if is_idle {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            } else if now < state.due {
                let left = state.due - now;
                state = self.wait(state, left);
            } else {
                state.look();
                // Looks that came too late are not made up for.
                state.due = (state.due + state.step).max(now);
            }
        }
    }
}

impl State {
    /// One look; from now on at this pace, and with the NIC on the way to `peer`.
    fn begin(&mut self, peer: Option<IpAddr>, step: Duration, depth: Depth) -> Snapshot {
        if let Some(peer) = peer {
            self.sampler.set_peer(peer);
        }

        let sample = self.sampler.sample(depth);
        self.note(&sample);
        self.step = step;
        self.due = Instant::now() + step;

        sample
    }

    fn look(&mut self) {
        let sample = self.sampler.sample(Depth::Quick);
        self.note(&sample);
        if let Some(window) = &mut self.window {
            window.add(sample);
        }
    }

    /// Every look is a reading, so that each begins where the one before it ended.
    fn note(&mut self, sample: &Snapshot) {
        if let Some(last) = &self.last {
            self.sequence += 1;
            self.last_reading = Some(reading(self.sequence, last, sample));
        }

        if let Some(seconds) = &mut self.seconds {
            seconds.add(sample);
        }

        self.last = Some(sample.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_knows_what_this_process_did() {
        let watch = crate::run::generator::watch(None).expect("a thread");
        assert_eq!(watch.end(), None, "nothing was begun");
        let (_, baseline) = watch.begin(Some([127, 0, 0, 1].into()), STEP);
        assert!(
            baseline.rss_bytes > Some(0) && baseline.window_ns == 0,
            "{baseline:?}"
        );

        let before = linerate_sys::cpu::thread_time();
        let spent = || {
            let now = linerate_sys::cpu::thread_time();
            (now.user + now.system) - (before.user + before.system)
        };
        while spent() < Duration::from_millis(300) {
            std::hint::spin_loop();
        }

        let busy = u64::try_from(spent().as_nanos()).expect("little");
        let stats = watch.end().expect("a window");
        assert!(stats.process_cpu_ns >= Some(busy - 20_000_000), "{stats:?}");
        assert!(
            stats.busiest_thread_busy > Some(0.0) && stats.samples >= 2,
            "{stats:?}"
        );
        assert!(stats.nic.is_some_and(|nic| nic.is_loopback));
    }

    #[test]
    fn seconds_are_kept_from_before_the_window() {
        let watch = crate::run::generator::watch(None).expect("a thread");
        let begun = Instant::now();
        watch.prepare(None, STEP);

        while begun.elapsed() < Duration::from_millis(1050) {
            std::hint::spin_loop();
        }

        watch.begin(None, STEP);
        let stats = watch.end().expect("a window");
        assert!(stats.window_ns < 900_000_000, "{stats:?}");

        let busiest = stats
            .seconds
            .first()
            .and_then(|second| second.busiest_cpu_busy);
        assert!(busiest > Some(0.0), "{stats:?}");
        watch.begin(None, STEP);
        assert!(
            watch.end().is_some_and(|stats| stats.seconds.is_empty()),
            "of one load alone"
        );
    }
}
