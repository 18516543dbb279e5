//! The client of an iperf3 test.

use linerate_engine::Interrupts;
use linerate_engine::dialect::iperf3::client;
use linerate_model::spec::ClientSpec;
use linerate_model::{Event, EventSink, Failure, SinkError, Summary};

use crate::diagnose::observed_test::Examination;

/// One test against an iperf3 server, linerate or the original.
#[derive(Debug, Clone)]
pub struct Client {
    spec: ClientSpec,
}

impl Client {
    /// The test that `spec` describes.
    #[must_use]
    pub fn new(spec: ClientSpec) -> Self {
        Self { spec }
    }

    /// Runs the test and returns its totals.
    ///
    /// # Errors
    /// A server that cannot be reached or refuses, a failure of either end, or an interrupt.
    pub fn run(&self, interrupts: &dyn Interrupts) -> Result<Summary, Failure> {
        self.observe(&mut |_| Ok(()), interrupts)
    }

    /// The same; `observer` gets every event as it happens: streams, intervals, totals.
    ///
    /// # Errors
    /// Those of [`Self::run`], and those of the observer.
    pub fn observe(
        &self,
        observer: &mut dyn FnMut(&Event) -> Result<(), SinkError>,
        interrupts: &dyn Interrupts,
    ) -> Result<Summary, Failure> {
        let mut sink = Observer {
            observer,
            summary: None,
        };
        client::run(&self.spec, &mut sink, interrupts)?;
        Ok(sink.summary.map(|summary| *summary).unwrap_or_default())
    }

    /// Runs the test with a writer of reports. With `want_peer_facts` of the specification the report ends with a
    /// diagnosis; `is_verbose` shows all of it.
    ///
    /// # Errors
    /// Those of [`Self::run`], and those of the writer.
    pub fn report(
        &self,
        mut writer: Box<dyn EventSink>,
        is_verbose: bool,
        interrupts: &dyn Interrupts,
    ) -> Result<(), Failure> {
        if self.spec.test.want_peer_facts {
            writer = Box::new(Examination::new(writer, is_verbose));
        }
        client::run(&self.spec, &mut *writer, interrupts)
    }
}

/// Passes events on and keeps the totals.
struct Observer<'a> {
    observer: &'a mut dyn FnMut(&Event) -> Result<(), SinkError>,
    summary: Option<Box<Summary>>,
}

impl EventSink for Observer<'_> {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        if let Event::Summary(summary) = event {
            self.summary = Some(summary.clone());
        }
        (self.observer)(event)
    }
}
