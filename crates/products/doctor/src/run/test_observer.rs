//! Observation of a test by either of its ends: its events, and the host that it runs on.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use linerate_host::{CpuProfile, Request, Watch};
use linerate_model::event::Endpoint;
use linerate_model::path::HostDropsReader;
use linerate_model::sink::{Collector, CollectorFactory};
use linerate_model::{Event, EventSink, Flow, SinkError};
use linerate_sys::cpu;

use super::host_watch::{self, DropScope, HostReader, OWN_THREADS, STEP};
use crate::drops::TestTraffic;
use crate::observation::EndpointObservation;
use crate::timeline::insert;
use crate::{Observed, TestTimeline};

/// Follows a test and the host it runs on.
#[derive(Default)]
pub struct TestObserver {
    /// List of the CPUs that this process may use, before `-A` narrows it.
    cpus: Option<String>,
    timeline: TestTimeline,
    endpoint: Option<Endpoint>,
    peer: Option<IpAddr>,
    /// Address of a socket of the test.
    own: Option<SocketAddr>,
    /// Ports of all of them, and the protocols.
    traffic: TestTraffic,
    watch: Option<Watch<HostReader>>,
    /// What the CPUs did, once the watch ended.
    profile: Option<CpuProfile>,
}

impl EventSink for TestObserver {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        match event {
            Event::TestAccepted(header) => self.endpoint = Some(header.endpoint),
            Event::StreamOpened(stream) => {
                self.peer = Some(stream.remote.ip());
                self.own = Some(stream.local);
                self.traffic.add(stream.local);
            }
            Event::TestStarted { .. } => {
                let traffic = std::mem::take(&mut self.traffic);
                let scope = match self.endpoint {
                    Some(Endpoint::Server) => DropScope::Client(traffic),
                    _ => DropScope::Test(traffic),
                };
                self.watch = host_watch::start(self.request(), scope, STEP);
            }
            _ => {}
        }

        self.timeline.note(event);
        Ok(())
    }
}

impl Collector<String> for TestObserver {
    fn collect(&mut self) -> Option<String> {
        serde_json::to_string(&self.observation()?).ok()
    }
}

impl TestObserver {
    /// No test yet; the CPUs are those of this process now.
    pub fn new() -> Self {
        let numbers = |affinity: cpu::Affinity| {
            affinity
                .cpus()
                .map(|cpu| cpu.to_string())
                .collect::<Vec<_>>()
        };
        Self {
            cpus: cpu::affinity()
                .ok()
                .map(|affinity| numbers(affinity).join(",")),
            ..Self::default()
        }
    }

    fn request(&self) -> Request {
        // A server is observed for its client, which knows both ends.
        let own = self.own.filter(|_| self.endpoint != Some(Endpoint::Server));
        Request {
            peer: self.peer,
            connected_from: own,
            own_threads: true,
            ..Request::default()
        }
    }

    /// What the CPUs of this host did until [`Self::observation()`], as collapsed stacks; `None`
    /// where they could not be sampled.
    pub fn stacks(&self) -> Option<String> {
        self.profile.as_ref().map(CpuProfile::collapsed)
    }

    /// Returns the observation of this end; ends the watch.
    pub fn observation(&mut self) -> Option<EndpointObservation> {
        let (mut observed, profile) = self.watch.take()?.finish()?.finish();
        self.profile = profile;
        observed
            .snapshot
            .set_known("self.cpus", self.cpus.take(), "sched_getaffinity");
        let thread = busiest_thread(&observed);

        let mut observation = EndpointObservation {
            snapshot: observed.snapshot,
            period: observed.period,
            forward: None,
            reverse: None,
            forward_intervals: self.timeline.intervals(Flow::Forward),
            reverse_intervals: self.timeline.intervals(Flow::Reverse),
        };
        for (flow, mut facts) in self.timeline.runs(thread.as_ref().map(|(share, _)| *share)) {
            if let Some((_, Some(cpus))) = &thread {
                let name = match self.endpoint {
                    Some(Endpoint::Server) => "server_cpus",
                    _ => "client_cpus",
                };
                insert(&mut facts, name, Some(cpus.as_str()));
            }

            match flow {
                Flow::Forward => observation.forward = Some(facts),
                Flow::Reverse => observation.reverse = Some(facts),
            }
        }

        Some(observation)
    }
}

/// The busiest thread of this process: which part of the process's time it took, and the CPUs it
/// was confined to.
fn busiest_thread(observed: &Observed) -> Option<(f64, Option<String>)> {
    let period = observed.period.as_ref()?;
    let threads = period.deltas().filter_map(|(key, delta)| {
        let number = key.strip_prefix(OWN_THREADS)?.strip_suffix(".ticks")?;
        Some((number, delta.value))
    });
    let threads: Vec<(&str, u64)> = threads.collect();
    let (number, most) = threads.iter().copied().max_by_key(|(_, ticks)| *ticks)?;
    let all: u64 = threads.iter().map(|(_, ticks)| ticks).sum();
    let cpus = observed
        .snapshot
        .text(&format!("{OWN_THREADS}{number}.cpus"))?;
    // A thread that may use all CPUs is confined to none.
    let unpinned = observed.snapshot.text("cpu.online") == Some(cpus);

    #[expect(clippy::cast_precision_loss, reason = "ticks of one test")]
    (all > 0).then(|| {
        (
            most as f64 / all as f64,
            (!unpinned).then(|| cpus.to_owned()),
        )
    })
}

/// Collects facts of this host for clients that request them and may have them.
pub fn facts_for_clients() -> Option<CollectorFactory<String>> {
    Some(Rc::new(|| Box::new(TestObserver::new())))
}

/// Counts what this host drops while a client's datagrams pass.
pub fn drops_for_clients() -> Option<HostDropsReader> {
    Some(Rc::new(linerate_host::drops))
}
