//! What runs now, shared between the run, which only writes, and views of it, which take clones.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use linerate_host::{Depth, Sampler, Tested, Watched};
use linerate_model::event::Endpoint;
use linerate_model::live::{LiveHost, LiveState};
use linerate_model::policy::Admission;
use linerate_model::sink::Tee;
use linerate_model::snapshot::Snapshot;
use linerate_model::stream::ListenerFacts;
use linerate_model::{Event, EventSink, ServerEvent, ServerReporter, SinkError};
use linerate_sys::clock;

use crate::record::SessionRecords;

/// A state and the time it began; clones share it.
#[derive(Debug, Clone)]
pub struct Live {
    started: Instant,
    state: Arc<Mutex<LiveState>>,
}

impl Default for Live {
    fn default() -> Self {
        Self { started: Instant::now(), state: Arc::default() }
    }
}

impl Live {
    /// Time since the view began in ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        clock::as_ns(self.started.elapsed())
    }

    /// The state now.
    #[must_use]
    pub fn read(&self) -> LiveState {
        self.lock().clone()
    }

    /// Grows with every change.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// Changes the state.
    pub fn update(&self, change: impl FnOnce(&mut LiveState)) {
        let mut state = self.lock();
        state.version += 1;
        change(&mut state);
    }

    /// Takes the events of a test.
    #[must_use]
    pub fn sink(&self) -> LiveSink {
        LiveSink(self.clone())
    }

    /// Passes everything to `inner` and takes it, too.
    pub(crate) fn observe<'a>(
        &self,
        inner: Box<dyn ServerReporter + 'a>,
        admission: Admission,
        records: Option<&'a SessionRecords>,
    ) -> Box<dyn ServerReporter + 'a> {
        self.update(|state| {
            state.server_mut().tests_max = Some(match admission {
                Admission::Parallel { tests_max } | Admission::Queue { tests_max, .. } => tests_max,
                Admission::Exclusive => 1,
            });
        });
        Box::new(Observed { inner, live: self.clone(), records })
    }

    /// A state is whole after each change, so a panic elsewhere leaves it usable.
    fn lock(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the events of a test of this process.
#[derive(Debug)]
pub struct LiveSink(Live);

impl EventSink for LiveSink {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        let at_ns = self.0.now_ns();
        self.0.lock().event(event, at_ns);
        Ok(())
    }
}

struct Observed<'a> {
    inner: Box<dyn ServerReporter + 'a>,
    live: Live,
    records: Option<&'a SessionRecords>,
}

impl ServerReporter for Observed<'_> {
    fn listening(&mut self, port: u16, test_number: u32) -> Result<(), SinkError> {
        self.inner.listening(port, test_number)
    }

    fn reopened(&mut self) -> Result<(), SinkError> {
        self.inner.reopened()
    }

    fn open_test(&mut self) -> Result<Box<dyn EventSink>, SinkError> {
        Ok(Box::new(Tee(Announcement(self.live.clone()), self.inner.open_test()?)))
    }

    fn warning(&mut self, text: &str) {
        self.inner.warning(text);
    }

    fn listener(&mut self, listener: &ListenerFacts) -> Result<(), SinkError> {
        self.inner.listener(listener)
    }

    fn server_event(&mut self, event: &ServerEvent) {
        let at_ns = self.live.now_ns();
        let records = self.records.and_then(SessionRecords::counts);
        {
            let mut state = self.live.lock();
            state.server_event(event, at_ns);
            state.server_mut().records = records;
        }
        self.inner.server_event(event);
    }
}

/// Takes from a test of the server when it will end.
struct Announcement(Live);

impl EventSink for Announcement {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        if let Event::TestAccepted(header) = event
            && header.endpoint == Endpoint::Server
        {
            self.0.lock().announce(&header.peer_host, header.peer_port, header.spec.end);
        }
        Ok(())
    }
}

/// Samples this host for a state.
#[derive(Debug)]
pub(crate) struct HostLines {
    sampler: Sampler,
    last: Option<Snapshot>,
    drops_at_start: Option<u64>,
}

impl HostLines {
    pub(crate) fn new() -> Self {
        let sampler = Sampler::open(Watched { pids: Vec::new(), tested: Tested::Nothing });
        Self { sampler, last: None, drops_at_start: None }
    }

    /// This host since the sample before; `None` for the first.
    pub(crate) fn sample(&mut self) -> Option<LiveHost> {
        let now = self.sampler.sample(Depth::Quick);
        let drops = now.counters_under(DROPS).next().map(|(_, counter)| counter.v);
        self.drops_at_start = self.drops_at_start.or(drops);
        let since_start = drops.zip(self.drops_at_start).map(|(now, start)| now.saturating_sub(start));
        let before = self.last.replace(now.clone())?;
        between(&before, &now, since_start)
    }
}

const DROPS: &str = "softnet.dropped";

/// Ticks of a CPU: all, those it was idle, those in softirqs.
type Ticks = [u64; 3];

fn between(before: &Snapshot, now: &Snapshot, drops: Option<u64>) -> Option<LiveHost> {
    let (before, now) = (ticks(before), ticks(now));
    let mut host = LiveHost { drops, ..LiveHost::default() };
    let (mut all, mut softirq) = (0, 0);
    for (cpu, after) in &now {
        let Some(first) = before.get(cpu) else { continue };
        let grown: Vec<u64> = after.iter().zip(first).map(|(after, first)| after.saturating_sub(*first)).collect();
        let [total, idle, in_softirq] = <Ticks>::try_from(grown).ok()?;
        host.cpus_busy.push(share(total.saturating_sub(idle), total));
        all += total;
        softirq += in_softirq;
    }
    host.softirq = share(softirq, all);
    (!host.cpus_busy.is_empty()).then_some(host)
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn ticks(sample: &Snapshot) -> BTreeMap<u32, Ticks> {
    let mut cpus: BTreeMap<u32, Ticks> = BTreeMap::new();
    for (key, counter) in sample.counters_under("cpu.") {
        let mut words = key.split('.');
        let (Some(cpu), Some(state)) = (words.next().and_then(|word| word.parse().ok()), words.next()) else {
            continue;
        };
        let [all, idle, softirq] = cpus.entry(cpu).or_default();
        *all = all.saturating_add(counter.v);
        match state {
            "idle" | "iowait" => *idle = idle.saturating_add(counter.v),
            "softirq" => *softirq = softirq.saturating_add(counter.v),
            _ => {}
        }
    }
    cpus
}

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::Source;

    use super::*;

    #[test]
    fn a_cpu_is_busy_for_the_ticks_it_was_not_idle() {
        let sample = |idle: u64, user: u64, softirq: u64| {
            let mut sample = Snapshot::new("host", Source::Live);
            for (state, ticks) in [("idle", idle), ("user", user), ("softirq", softirq)] {
                sample.count(format!("cpu.0.{state}"), ticks, None);
            }
            sample
        };
        let host = between(&sample(100, 0, 0), &sample(150, 25, 25), Some(2)).expect("a CPU");
        assert_eq!(host, LiveHost { cpus_busy: vec![0.5], softirq: 0.25, drops: Some(2) });
        assert_eq!(between(&Snapshot::new("host", Source::Live), &sample(1, 1, 1), None), None);
    }
}
