//! A test under observation (`--lr-doctor`): both ends read their hosts while it runs, the server
//! sends its observation with its results, and the client's report ends with a diagnosis.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use linerate_doctor::observation::{EndpointObservation, diagnose_test};
use linerate_doctor::{Observed, TestTimeline};
use linerate_document::{Style, doctor};
use linerate_engine::Interrupts;
use linerate_engine::dialect::iperf3::client::{self, ClientResult};
use linerate_host::Request;
use linerate_iperf3::report::{Appendix, TestReport};
use linerate_model::event::Endpoint;
use linerate_model::finding::Diagnosis;
use linerate_model::path::HostDropsReader;
use linerate_model::sink::{Collector, CollectorFactory, Tee};
use linerate_model::spec::ClientSpec;
use linerate_model::{Event, EventSink, Failure, Flow, SinkError};
use linerate_sys::cpu;

use super::watch::{OWN_THREADS, STEP, Watch};
use crate::client::Reported;
use linerate_document::progress::style;
use linerate_model::outcome::failure;

/// The first datagram is sent three times within it.
pub(crate) const UDP_ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Name of the diagnosis in structured reports.
const NAME: &str = "lr_doctor";

/// Runs one test as its client and adds a diagnosis to its report.
pub(crate) fn run_client(
    spec: &ClientSpec,
    report: &mut dyn TestReport,
    interrupts: &dyn Interrupts,
    verbose: bool,
) -> Reported {
    let mut observer = Observer::new();
    let spec = &explained(spec);
    let result = client::run_before_end(spec, &mut Tee(&mut observer, &mut *report), interrupts);
    let mut diagnosis = None;

    // A failure to report the end cannot be reported.
    let _ = report_end(&result, report, observer, verbose, &mut diagnosis);
    Reported {
        outcome: result.outcome,
        diagnosis,
    }
}

/// The test whose failure names UDP that is blocked, where iperf3 waits for 30 s and has an error
/// of the system.
fn explained(spec: &ClientSpec) -> ClientSpec {
    let mut spec = spec.clone();
    spec.local.udp_answer_timeout = Some(UDP_ANSWER_TIMEOUT);
    spec
}

/// Runs one test as its client and diagnoses it.
pub(super) fn diagnosed(
    spec: &ClientSpec,
    interrupts: &dyn Interrupts,
) -> Result<Diagnosis, Failure> {
    let mut observer = Observer::default();
    let spec = &explained(spec);
    let result = client::run(spec, &mut observer, interrupts);
    result.outcome?;

    let client = observer
        .observation()
        .ok_or_else(|| failure(&"this host could not be observed"))?;
    let server = result
        .peer_facts
        .and_then(|facts| EndpointObservation::from_peer(&facts).ok());
    Ok(diagnose_test(client, server))
}

/// Reports the diagnosis and the end of the test.
fn report_end(
    result: &ClientResult,
    report: &mut dyn TestReport,
    mut observer: Observer,
    verbose: bool,
    found: &mut Option<Diagnosis>,
) -> Result<(), SinkError> {
    let server = match result
        .peer_facts
        .as_deref()
        .map(EndpointObservation::from_peer)
    {
        Some(Err(_)) => {
            report.event(&Event::Warning(
                "the server's account cannot be read".into(),
            ))?;
            None
        }
        observation => observation.and_then(Result::ok),
    };
    let last = result.last_event();
    observer.event(&last)?;

    if let Some(client) = observer.observation() {
        let diagnosis = found.insert(diagnose_test(client, server));
        report.append(&Appendix {
            name: NAME,
            text: doctor::text(
                diagnosis,
                verbose,
                Style {
                    is_coloured: false,
                    ..style()
                },
            )
            .trim_end()
            .to_owned(),
            json: doctor::json(diagnosis),
        })?;
    }

    report.event(&last)
}

/// Collects facts of this host for clients that request them and may have them.
pub(crate) fn facts_for_clients() -> Option<CollectorFactory<String>> {
    Some(Rc::new(|| Box::new(Observer::new())))
}

/// Counts what this host drops while a client's datagrams pass.
pub(crate) fn drops_for_clients() -> Option<HostDropsReader> {
    Some(Rc::new(linerate_host::drops))
}

/// Follows a test and the host it runs on.
#[derive(Default)]
pub(crate) struct Observer {
    /// List of the CPUs that this process may use, before `-A` narrows it.
    cpus: Option<String>,
    timeline: TestTimeline,
    endpoint: Option<Endpoint>,
    peer: Option<IpAddr>,
    /// Address of a socket of the test.
    own: Option<SocketAddr>,
    watch: Option<Watch>,
}

impl EventSink for Observer {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        match event {
            Event::TestAccepted(header) => self.endpoint = Some(header.endpoint),
            Event::StreamOpened(stream) => {
                self.peer = Some(stream.remote.ip());
                self.own = Some(stream.local);
            }
            Event::TestStarted { .. } => self.watch = Watch::start(self.request(), STEP),
            _ => {}
        }

        self.timeline.note(event);
        Ok(())
    }
}

impl Collector<String> for Observer {
    fn collect(&mut self) -> Option<String> {
        serde_json::to_string(&self.observation()?).ok()
    }
}

impl Observer {
    pub(crate) fn new() -> Self {
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

    /// What this end knows; ends the watch.
    pub(crate) fn observation(&mut self) -> Option<EndpointObservation> {
        let mut observed = self.watch.take()?.finish()?;
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
    let unpinned = observed.snapshot.text("cpu.online") == Some(cpus);

    #[expect(clippy::cast_precision_loss, reason = "ticks of one test")]
    (all > 0).then(|| {
        (
            most as f64 / all as f64,
            (!unpinned).then(|| cpus.to_owned()),
        )
    })
}
