//! A test under observation (`--lr-doctor`): both ends read their hosts while it runs, the server sends its account with
//! its results, and the client's report ends with a diagnosis. Neither engine nor writers know of it.

use std::net::IpAddr;

use linerate_doctor::observation::{EndpointObservation, diagnose_test};
use linerate_doctor::{Observed, TestTimeline};
use linerate_host::Request;
use linerate_model::event::{Appendix, Endpoint, ServerOutput};
use linerate_model::{Event, EventSink, Flow, ServerEvent, ServerReporter, SinkError};
use linerate_report::doctor as report;

use super::watch::{OWN_THREADS, STEP, Watch};

/// Name of the diagnosis in structured reports.
const NAME: &str = "lr_doctor";

/// Passes events on and adds a diagnosis to the report of a client.
pub struct Examination<'a> {
    inner: Box<dyn EventSink + 'a>,
    observer: Observer,
    verbose: bool,
    server: Option<EndpointObservation>,
}

impl<'a> Examination<'a> {
    pub fn new(inner: Box<dyn EventSink + 'a>, verbose: bool) -> Self {
        Self {
            inner,
            observer: Observer::default(),
            verbose,
            server: None,
        }
    }

    fn report(&mut self) -> Result<(), SinkError> {
        let Some(client) = self.observer.observation() else {
            return Ok(());
        };
        let diagnosis = diagnose_test(client, self.server.take());
        self.inner.event(&Event::Appendix(Box::new(Appendix {
            name: NAME.to_owned(),
            text: report::text(&diagnosis, self.verbose).trim_end().to_owned(),
            json: report::json(&diagnosis),
        })))
    }
}

impl EventSink for Examination<'_> {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.observer.note(event);
        match event {
            Event::PeerFacts(text) => match EndpointObservation::from_peer(text) {
                Ok(observation) => self.server = Some(observation),
                Err(_) => self
                    .inner
                    .event(&Event::Warning("the server's account cannot be read".into()))?,
            },
            Event::Finished | Event::Failed(_) => self.report()?,
            _ => {}
        }
        self.inner.event(event)
    }

    fn server_output(&mut self) -> Option<ServerOutput> {
        self.inner.server_output()
    }
}

/// Lets a server answer clients that ask what it knows about its host and may know it.
pub fn answering(inner: Box<dyn ServerReporter>) -> Box<dyn ServerReporter> {
    Box::new(Answering(inner))
}

struct Answering(Box<dyn ServerReporter>);

impl ServerReporter for Answering {
    fn listening(&mut self, port: u16, test_number: u32) -> Result<(), SinkError> {
        self.0.listening(port, test_number)
    }

    fn reopened(&mut self) -> Result<(), SinkError> {
        self.0.reopened()
    }

    fn open_test(&mut self) -> Result<Box<dyn EventSink>, SinkError> {
        Ok(Box::new(Answer {
            inner: self.0.open_test()?,
            observer: Observer::default(),
        }))
    }

    fn warning(&mut self, text: &str) {
        self.0.warning(text);
    }

    fn server_event(&mut self, event: &ServerEvent) {
        self.0.server_event(event);
    }
}

/// One test of a server.
struct Answer {
    inner: Box<dyn EventSink>,
    observer: Observer,
}

impl EventSink for Answer {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.observer.note(event);
        self.inner.event(event)
    }

    fn server_output(&mut self) -> Option<ServerOutput> {
        self.inner.server_output()
    }

    fn facts_for_peer(&mut self) -> Option<String> {
        serde_json::to_string(&self.observer.observation()?).ok()
    }
}

/// Follows a test and, if its facts are requested, the host it runs on.
#[derive(Default)]
struct Observer {
    timeline: TestTimeline,
    is_wanted: bool,
    endpoint: Option<Endpoint>,
    peer: Option<IpAddr>,
    watch: Option<Watch>,
}

impl Observer {
    fn note(&mut self, event: &Event) {
        match event {
            Event::TestAccepted(header) => {
                self.is_wanted = header.spec.want_peer_facts;
                self.endpoint = Some(header.endpoint);
            }
            Event::StreamOpened(stream) => self.peer = Some(stream.remote.ip()),
            Event::TestStarted if self.is_wanted => self.watch = Watch::start(self.request(), STEP),
            _ => {}
        }
        if self.is_wanted {
            self.timeline.note(event);
        }
    }

    fn request(&self) -> Request {
        Request {
            interfaces: Vec::new(),
            peer: self.peer,
            own_threads: true,
        }
    }

    /// What this end knows; ends the watch.
    fn observation(&mut self) -> Option<EndpointObservation> {
        let observed = self.watch.take()?.finish()?;
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
                facts.insert(name.into(), cpus.as_str().into());
            }
            match flow {
                Flow::Forward => observation.forward = Some(facts),
                Flow::Reverse => observation.reverse = Some(facts),
            }
        }
        Some(observation)
    }
}

/// The busiest thread of this process: which part of the process's time it took, and the CPUs it was confined to.
fn busiest_thread(observed: &Observed) -> Option<(f64, Option<String>)> {
    let period = observed.period.as_ref()?;
    let threads = period.deltas().filter_map(|(key, delta)| {
        let number = key.strip_prefix(OWN_THREADS)?.strip_suffix(".ticks")?;
        Some((number, delta.value))
    });
    let threads: Vec<(&str, u64)> = threads.collect();
    let (number, most) = threads.iter().copied().max_by_key(|(_, ticks)| *ticks)?;
    let all: u64 = threads.iter().map(|(_, ticks)| ticks).sum();
    let cpus = observed.snapshot.text(&format!("{OWN_THREADS}{number}.cpus"))?;
    let unpinned = observed.snapshot.text("cpu.online") == Some(cpus);
    #[expect(clippy::cast_precision_loss, reason = "ticks of one test")]
    (all > 0).then(|| (most as f64 / all as f64, (!unpinned).then(|| cpus.to_owned())))
}
