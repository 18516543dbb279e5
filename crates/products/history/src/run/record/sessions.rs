//! Records of the tests of a server, one each.

use std::cell::RefCell;
use std::rc::Rc;

use linerate_document::service::RecordMetrics;
use linerate_model::record::{Body, HostPart, RunKind, RunState, Session, Trial};
use linerate_model::service::{Outcome, TestRecord};
use linerate_model::sink::Forward;
use linerate_model::{Event, EventSink, ServerEvent, ServerReporter, SinkError};
use linerate_store::{Builder, Recorder, keys};
use linerate_sys::process;

use super::{Labels, RecordOptions, head, host_key};

/// Points of a session that are kept; a server may have hundreds at the same time.
const POINTS_MAX: usize = 1 << 16;

/// Makes a record of every test of a server. A test never waits: a record that finds the queue full
/// is lost and counted.
#[derive(Debug)]
pub struct SessionRecords {
    recorder: Option<Recorder>,
    title: Option<String>,
    labels: Labels,
    host: HostPart,
    /// The trial of the test that ended last; the server reports the end of a test directly after
    /// its last event.
    last: Rc<RefCell<Option<Trial>>>,
}

impl SessionRecords {
    /// Starts the writer.
    pub fn new(options: RecordOptions) -> Self {
        let mut host = HostPart::new("server", process::uname().node);
        host.host_key = host_key();
        let recorder = options.place.map(Recorder::new);
        Self {
            recorder,
            title: options.title,
            labels: options.labels,
            host,
            last: Rc::default(),
        }
    }

    /// Passes everything to `inner` and makes records beside it, if there is where to.
    pub fn observe<'a>(
        &'a self,
        inner: Box<dyn ServerReporter + 'a>,
    ) -> Box<dyn ServerReporter + 'a> {
        let observe = move |event: &ServerEvent| {
            if let ServerEvent::TestEnded(test) = event {
                self.test_ended(test);
            }
        };
        let record = move |inner: Box<dyn EventSink>| -> Box<dyn EventSink> {
            Box::new(Recorded {
                inner,
                builder: Some(Builder::default().points_max(POINTS_MAX)),
                last: Rc::clone(&self.last),
            })
        };
        Box::new(Forward::new(inner, observe).wrapping(record))
    }

    /// Counts of the records, for another thread; `None` where none are kept.
    pub fn metrics(&self) -> Option<impl Fn() -> RecordMetrics + Send + Sync + use<>> {
        let recorded = self.recorder.as_ref()?.observer();
        Some(move || {
            let linerate_store::Recorded {
                stored,
                lost,
                waiting,
                store_bytes,
                ..
            } = recorded();
            RecordMetrics {
                stored,
                lost,
                waiting,
                store_bytes,
            }
        })
    }

    /// Waits until everything is written. Returns what the operator should know.
    #[must_use]
    pub fn close(self) -> Option<String> {
        self.recorder?.close().message()
    }

    /// Records that were written, to the history or to the spool beside it, and those lost; `None`
    /// where none are kept.
    pub fn counts(&self) -> Option<(u64, u64)> {
        let recorded = self.recorder.as_ref()?.recorded();
        Some((
            recorded.stored.saturating_add(recorded.spooled),
            recorded.lost,
        ))
    }

    fn test_ended(&self, test: &TestRecord) {
        let (Some(trial), Some(recorder)) = (self.last.borrow_mut().take(), &self.recorder) else {
            return;
        };
        let facts = &test.facts;

        let (state, reason) = match &test.outcome {
            Outcome::Complete => (RunState::Complete, None),
            Outcome::Partial { reason } => {
                (trial.state.max(RunState::Partial), Some(reason.clone()))
            }
        };
        let body = Session {
            number: facts.number,
            user: facts.user.clone(),
            streams: facts.streams,
            ran_beside_max: test.ran_beside_max,
            peer: facts.peer,
            transport: facts.transport,
            direction: facts.direction,
            outcome: test.outcome.clone(),
        };

        let mut record = head(
            RunKind::Session,
            Body::Session(body),
            // A browser's label, or the title (-T) of a client of iperf3.
            self.title.clone().or_else(|| super::title_of(&trial)),
            self.labels.clone(),
        );
        let client = facts.peer.ip().to_string();
        let server = self.host.name.clone();
        let family = if facts.peer.is_ipv4() { "ipv4" } else { "ipv6" };
        record.path.key = keys::path_key(
            &client,
            self.host.host_key.as_deref().unwrap_or(&server),
            family,
            "",
        );
        record.path.spec_key = super::spec_key_of(&trial);
        record.path.client = Some(client);
        record.path.server = Some(server);
        record.hosts = vec![self.host.clone()];
        record.elapsed_ns = trial.elapsed_ns;
        record.state = state;
        record.reason = reason;

        let mut repetition = trial;
        repetition.state = state;
        repetition.reason = record.reason.clone();
        record.trials = vec![repetition];
        recorder.offer(record);
    }
}

/// The events of one test, to its writer and its builder.
struct Recorded {
    inner: Box<dyn EventSink>,
    builder: Option<Builder>,
    last: Rc<RefCell<Option<Trial>>>,
}

impl EventSink for Recorded {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.builder.event(event)?;
        if matches!(event, Event::Finished | Event::Failed(_)) {
            // `TestEnded` of the server follows and takes it.
            *self.last.borrow_mut() = self.builder.take().map(Builder::finish);
        }
        self.inner.event(event)
    }
}
