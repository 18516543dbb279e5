//! State of the active runs, shared between the run, which only writes, and views of it, which take
//! clones.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use linerate_model::event::Endpoint;
use linerate_model::live::LiveState;
use linerate_model::policy::Admission;
use linerate_model::sink::{Forward, Tee};
use linerate_model::{Event, EventSink, ServerEvent, ServerReporter, SinkError};
use linerate_sys::clock;

use crate::server::records::TestRecords;

/// A state and the time it began; clones share it.
#[derive(Debug, Clone)]
pub struct Live {
    started: Instant,
    state: Arc<Mutex<LiveState>>,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            state: Arc::default(),
        }
    }
}

impl Live {
    /// Time since the view began in ns.
    pub fn now_ns(&self) -> u64 {
        clock::as_ns(self.started.elapsed())
    }

    /// The state now.
    pub fn read(&self) -> LiveState {
        self.lock().clone()
    }

    /// Grows with every change.
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
    pub fn sink(&self) -> LiveSink {
        LiveSink(self.clone())
    }

    /// Passes everything to `inner` and takes it, too.
    pub(crate) fn observe<'a>(
        &self,
        inner: Box<dyn ServerReporter + 'a>,
        admission: Admission,
        records: Option<&'a dyn TestRecords>,
    ) -> Box<dyn ServerReporter + 'a> {
        self.update(|state| {
            state.server_mut().tests_max = Some(match admission {
                Admission::Parallel { tests_max } | Admission::Queue { tests_max, .. } => tests_max,
                _ => 1,
            });
        });
        let live = self.clone();
        let announced = self.clone();
        let observe = move |event: &ServerEvent| {
            let at_ns = live.now_ns();
            let records = records.and_then(TestRecords::counts);
            let mut state = live.lock();
            state.server_event(event, at_ns);
            state.server_mut().records = records;
        };
        let announce = move |sink: Box<dyn EventSink>| -> Box<dyn EventSink> {
            Box::new(Tee(Announcement(announced.clone()), sink))
        };
        Box::new(Forward::new(inner, observe).wrapping(announce))
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

/// Takes from a test of the server when it will end.
struct Announcement(Live);

impl EventSink for Announcement {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        if let Event::TestAccepted(header) = event
            && header.endpoint == Endpoint::Server
        {
            self.0
                .lock()
                .announce(&header.peer_host, header.peer_port, header.spec.end);
        }

        Ok(())
    }
}
