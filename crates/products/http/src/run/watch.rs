//! Samples this host in a background thread during a test and reports its resource usage.

use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use linerate_host::{Depth, Period, Reader, Sampler, Seconds, Watched, reading};
use linerate_model::http::{EndpointStats, Reading};
use linerate_model::outcome::Error;
use linerate_model::snapshot::Snapshot;

/// Time between two samples.
pub(super) const STEP: Duration = Duration::from_millis(200);
/// Interval between two samples while a test takes longer than a minute, and between tests.
pub(super) const STEP_LONG: Duration = Duration::from_secs(1);

/// Samples the host while a test runs.
#[derive(Debug)]
pub(super) struct Watch(linerate_host::Watch<State>);

/// Samples of the current test.
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
}

impl Watch {
    /// Begins to watch; sampling starts with the first test.
    ///
    /// # Errors
    /// The operating system's, when it cannot create a thread.
    pub(super) fn start(watched: Watched) -> io::Result<Self> {
        let state = State {
            sampler: Sampler::open(watched),
            step: STEP_LONG,
            due: Instant::now(),
            last: None,
            window: None,
            seconds: None,
            last_reading: None,
            sequence: 0,
        };
        linerate_host::Watch::start("lr-sampler", state).map(Self)
    }

    /// From now on, this process and these count as one.
    pub(super) fn count_in(&self, workers: &[u32]) {
        let own = std::iter::once(std::process::id());
        let pids = own.chain(workers.iter().copied()).collect();
        self.0.with(|state| state.sampler.sample_processes(pids));
    }

    /// Begins to keep seconds; the window in which peaks and growth count comes later. `peer`
    /// decides which NIC is sampled.
    pub(super) fn prepare(&self, peer: Option<IpAddr>, step: Duration) {
        self.0.with(|state| {
            let sample = state.begin(peer, step, Depth::Quick);
            state.window = None;
            state.seconds = Some(Seconds::begin(sample));
        });
    }

    /// Keeps no seconds of what comes.
    pub(super) fn forget_seconds(&self) {
        self.0.with(|state| state.seconds = None);
    }

    /// Begins a window: peaks and growth count from here. `peer` decides which NIC is sampled.
    pub(super) fn begin(&self, peer: Option<IpAddr>, step: Duration) {
        self.0.with(|state| {
            // The full depth takes longer, so only the ends of a window have it.
            let sample = state.begin(peer, step, Depth::Full);
            state.window = Some(Period::begin(sample));
        });
    }

    /// Ends the window; `None` when none was begun.
    pub(super) fn end(&self) -> Option<EndpointStats> {
        self.0.with(|state| {
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
        })
    }

    /// The last reading, however old.
    pub(super) fn last_reading(&self) -> Option<Reading> {
        self.0.with(|state| state.last_reading.clone())
    }

    /// The watched objects.
    pub(super) fn watched(&self) -> Watched {
        self.0.with(|state| state.sampler.watched().clone())
    }
}

/// The error of a host that cannot be observed.
pub(super) fn cannot_watch(error: impl std::fmt::Display) -> Error {
    Error::failed(format!("cannot watch this host: {error}"))
}

impl Reader for State {
    fn due(&self) -> Option<Instant> {
        let is_needed = self.window.is_some() || self.seconds.is_some();
        is_needed.then_some(self.due)
    }

    fn read(&mut self) {
        let now = Instant::now();
        let sample = self.sampler.sample(Depth::Quick);
        self.note(&sample);
        if let Some(window) = &mut self.window {
            window.add(sample);
        }

        // Samples that came too late are not repeated.
        self.due = (self.due + self.step).max(now);
    }
}

impl State {
    /// Takes one sample; from now on at this pace, and with the NIC on the way to `peer`.
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

    /// Every sample is a reading, so that each begins where the one before it ended.
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
        watch.begin(Some([127, 0, 0, 1].into()), STEP);

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
        assert!(stats.rss_bytes > Some(0), "{stats:?}");
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
