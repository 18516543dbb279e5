//! Follows a load: the steering of the plan, the live line, and what the host does meanwhile.

use std::cell::RefCell;
use std::rc::Rc;

use linerate_doctor::observation::EndpointObservation;
use linerate_doctor::run::TestObserver;
use linerate_document::progress::style;
use linerate_model::path::{
    LoadControl, LoadDecision, LoadInterval, LoadOutcome, LoadSample, PathEvent, ProbeSample,
};
use linerate_model::{Event, EventSink, SinkError, units};

use super::observers::Observers;
use super::side_probe::SideProber;
use crate::plan::{LoadPlan, Saturation};
use crate::report::{PhaseProgress, announcement, live};

/// Steers a load and shows it.
pub(super) struct ShownLoad<'a> {
    saturation: Saturation,
    progress: PhaseProgress,
    observers: Observers<'a>,
    /// Probe beside a test that measures no delay itself.
    pub prober: Option<SideProber>,
    last: LoadSample,
    /// End of the last interval that was an event.
    reported: LoadSample,
    /// Extent that is announced when the rate of the first second is known.
    extent: Option<TestExtent>,
}

/// Length of a test, to announce what it moves.
#[derive(Debug, Clone, Copy)]
pub(super) struct TestExtent {
    /// All loads together, both directions.
    pub load_seconds: f64,
    /// The whole test.
    pub seconds: f64,
    /// Most bytes that the user allows.
    pub bytes_max: Option<u64>,
}

/// Time whose data gives the rate.
const ANNOUNCED_AFTER_NS: u64 = 1_000_000_000;

/// Length of an interval that is an event; the samples end some ms after it.
const INTERVAL_NS: u64 = 990_000_000;

/// Points of a curve.
const POINTS: usize = 40;

impl<'a> ShownLoad<'a> {
    pub(super) fn new(
        plan: LoadPlan,
        progress: PhaseProgress,
        observers: Observers<'a>,
        extent: Option<TestExtent>,
    ) -> Self {
        Self {
            saturation: Saturation::new(plan),
            progress,
            observers,
            prober: None,
            last: LoadSample::default(),
            reported: LoadSample::default(),
            extent,
        }
    }

    pub(super) fn outcome(&self) -> LoadOutcome {
        self.saturation.outcome()
    }

    /// Round trips of the probe beside the test.
    pub(super) fn probes(&mut self) -> Vec<ProbeSample> {
        self.prober
            .take()
            .map(SideProber::finish)
            .unwrap_or_default()
    }

    fn announce(&mut self, sample: &LoadSample) {
        // Without a byte no rate is known.
        if sample.at_ns < ANNOUNCED_AFTER_NS || sample.down_bytes + sample.up_bytes == 0 {
            return;
        }

        let Some(TestExtent {
            load_seconds,
            seconds,
            bytes_max,
        }) = self.extent.take()
        else {
            return;
        };
        let bytes_per_s =
            (sample.down_bytes + sample.up_bytes) as f64 / (sample.at_ns as f64 / 1e9);
        let bytes = (bytes_per_s * load_seconds) as u64;
        self.observers.progress.line(&announcement(
            bytes_max.map_or(bytes, |max| max.min(bytes)),
            seconds,
        ));
    }

    /// An event for each second.
    fn report(&mut self, sample: &LoadSample, rtt_ns: Option<i64>) {
        let last = self.reported;
        let passed_ns = sample.at_ns.saturating_sub(last.at_ns);
        if passed_ns < INTERVAL_NS {
            return;
        }

        self.reported = *sample;
        let rate = |bytes: fn(&LoadSample) -> u64| {
            units::rate_bps(
                bytes(sample).saturating_sub(bytes(&last)),
                units::ns_to_s(passed_ns),
            )
        };

        let interval = LoadInterval {
            phase: self.progress.kind,
            start_ns: last.at_ns,
            end_ns: sample.at_ns,
            received_bps: rate(|sample| sample.down_bytes),
            sent_bps: rate(|sample| sample.up_bytes),
            streams: sample.streams,
            rtt_ns,
        };
        (self.observers.on_event)(&PathEvent::Interval(interval));
    }

    fn show(&mut self, sample: &LoadSample, newest_rtt_ns: Option<i64>) {
        if !self.observers.progress.is_terminal() {
            return;
        }

        let seconds = sample.at_ns.saturating_sub(self.last.at_ns) as f64 / 1e9;
        let bytes = |sample: &LoadSample| sample.down_bytes + sample.up_bytes;

        if seconds > 0.0 {
            push(
                &mut self.progress.rates_bps,
                bytes(sample).saturating_sub(bytes(&self.last)) as f64 * 8.0 / seconds,
            );
        }

        if let Some(rtt_ns) = newest_rtt_ns {
            push(&mut self.progress.rtts_ns, rtt_ns);
        }

        self.progress.elapsed_ns = sample.at_ns;
        self.progress.streams = sample.streams;
        self.observers
            .progress
            .update(&live(&self.progress, style()));
    }
}

impl LoadControl for ShownLoad<'_> {
    fn first_streams(&self) -> u32 {
        self.saturation.first_streams()
    }

    fn sample(&mut self, sample: &LoadSample, newest_rtt_ns: Option<i64>) -> LoadDecision {
        let beside = || self.prober.as_ref().and_then(SideProber::newest_rtt_ns);
        let newest_rtt_ns = newest_rtt_ns.or_else(beside);
        self.announce(sample);
        self.report(sample, newest_rtt_ns);
        self.show(sample, newest_rtt_ns);
        self.last = *sample;
        self.saturation.sample(sample, newest_rtt_ns)
    }
}

fn push<T>(points: &mut Vec<T>, point: T) {
    if points.len() == POINTS {
        points.remove(0);
    }
    points.push(point);
}

/// An observer that the engine and the caller share.
#[derive(Clone, Default)]
pub(super) struct SharedObserver(Rc<RefCell<TestObserver>>);

impl SharedObserver {
    /// What the CPUs did until the observation, as collapsed stacks.
    pub(super) fn stacks(&self) -> Option<String> {
        self.0.borrow().stacks()
    }

    pub(super) fn observation(&self) -> Option<EndpointObservation> {
        self.0.borrow_mut().observation()
    }
}

impl EventSink for SharedObserver {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.0.borrow_mut().event(event)
    }
}
