//! Reports of a service for clients that ask for the server's own (`--get-server-output`).

use std::io;

use linerate_model::event::ServerOutput;
use linerate_model::stream::ListenerFacts;
use linerate_model::{Event, EventSink, ServerEvent, ServerReporter, SinkError};

use crate::Output;
use crate::iperf3::{self, Options};

/// Makes the report of iperf3's text for each client that wants it, and passes everything on to `inner`.
#[must_use]
pub fn with_peer_reports(inner: Box<dyn ServerReporter>, options: Options) -> Box<dyn ServerReporter> {
    let nowhere = Output::new(Box::new(io::sink()), Box::new(io::sink()));
    let reports = iperf3::server_reporter(options, nowhere);
    Box::new(PeerReports { inner, reports })
}

struct PeerReports {
    inner: Box<dyn ServerReporter>,
    reports: Box<dyn ServerReporter>,
}

impl ServerReporter for PeerReports {
    fn listening(&mut self, port: u16, test_number: u32) -> Result<(), SinkError> {
        self.inner.listening(port, test_number)
    }

    fn reopened(&mut self) -> Result<(), SinkError> {
        self.inner.reopened()
    }

    fn open_test(&mut self) -> Result<Box<dyn EventSink>, SinkError> {
        Ok(Box::new(PeerReport {
            inner: self.inner.open_test()?,
            report: self.reports.open_test()?,
            is_wanted: false,
        }))
    }

    fn warning(&mut self, text: &str) {
        self.inner.warning(text);
    }

    fn listener(&mut self, listener: &ListenerFacts) -> Result<(), SinkError> {
        self.inner.listener(listener)
    }

    fn server_event(&mut self, event: &ServerEvent) {
        self.inner.server_event(event);
    }
}

struct PeerReport {
    inner: Box<dyn EventSink>,
    report: Box<dyn EventSink>,
    is_wanted: bool,
}

impl EventSink for PeerReport {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        if let Event::TestAccepted(header) = event {
            self.is_wanted = header.spec.want_server_output;
        }
        if self.is_wanted {
            self.report.event(event)?;
        }
        self.inner.event(event)
    }

    fn server_output(&mut self) -> Option<ServerOutput> {
        self.report.server_output()
    }

    fn facts_for_peer(&mut self) -> Option<String> {
        self.inner.facts_for_peer()
    }
}
