//! Receivers of events, and adapters that combine them.

use std::rc::Rc;

use thiserror::Error;

use crate::event::{Event, ServerOutput};
use crate::service::ServerEvent;
use crate::stream::ListenerFacts;

/// A writer could not write.
#[derive(Debug, Error)]
pub enum SinkError {
    /// The operating system refused.
    #[error("unable to write the report: {0}")]
    Io(#[from] std::io::Error),
}

/// Receives the events of one test.
pub trait EventSink {
    /// Takes one event, in order.
    ///
    /// # Errors
    /// When the report cannot be written; the test then ends.
    fn event(&mut self, event: &Event) -> Result<(), SinkError>;
}

impl<S: EventSink + ?Sized> EventSink for &mut S {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        (**self).event(event)
    }
}

impl<S: EventSink + ?Sized> EventSink for Box<S> {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        (**self).event(event)
    }
}

impl<S: EventSink> EventSink for Option<S> {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.as_mut().map_or(Ok(()), |sink| sink.event(event))
    }
}

/// Discards every event.
impl EventSink for () {
    fn event(&mut self, _: &Event) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Passes every event to both sinks. The first failure is returned after both have received the
/// event.
#[derive(Debug)]
pub struct Tee<A, B>(pub A, pub B);

impl<A: EventSink, B: EventSink> EventSink for Tee<A, B> {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.0.event(event).and(self.1.event(event))
    }
}

/// Receives the events of one test of a server and makes the value that the client requested.
pub trait Collector<T>: EventSink {
    /// The value; called after `Summary`.
    fn collect(&mut self) -> Option<T>;
}

/// Makes a collector for each test whose client requests its value.
pub type CollectorFactory<T> = Rc<dyn Fn() -> Box<dyn Collector<T>>>;

/// The page about a server for its operator.
pub struct StatusPage {
    /// Secret that gives access.
    pub token: String,
    /// Content Security Policy of the page.
    pub policy: String,
    /// The whole page. Neither this nor the next one blocks.
    pub page: Box<dyn Fn() -> String + Send + Sync>,
    /// The part of it that changes.
    pub content: Box<dyn Fn() -> String + Send + Sync>,
}

/// Data that a server can send to a client besides the results of the test. Absent values are never
/// sent.
#[derive(Clone, Default)]
pub struct PeerRequests {
    /// The server's report (`--get-server-output`).
    pub report: Option<CollectorFactory<ServerOutput>>,
    /// Facts of the server's host (`--lr-doctor`), as a JSON object.
    pub facts: Option<CollectorFactory<String>>,
    /// Drops of the server's host, for loss by its place.
    pub drops: Option<crate::path::HostDropsReader>,
    /// The page for the operator; `None` for a server without.
    pub status: Option<Rc<StatusPage>>,
}

/// Receives what happens to a server, and makes a sink for each test.
pub trait ServerReporter {
    /// The server is ready for its next test.
    ///
    /// # Errors
    /// When the report cannot be written.
    fn listening(&mut self, _port: u16, _test_number: u32) -> Result<(), SinkError> {
        Ok(())
    }

    /// The server opened its listener again after an idle time; the test number stays.
    ///
    /// # Errors
    /// When the report cannot be written.
    fn reopened(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    /// A client connected; the sink receives the events of its test.
    ///
    /// # Errors
    /// When the report cannot be written.
    fn open_test(&mut self) -> Result<Box<dyn EventSink>, SinkError>;

    /// Something the operator should know that belongs to no test.
    fn warning(&mut self, text: &str);

    /// A socket listens.
    ///
    /// # Errors
    /// When the report cannot be written.
    fn listener(&mut self, _listener: &ListenerFacts) -> Result<(), SinkError> {
        Ok(())
    }

    /// Event for logs and metrics; the reports of tests do not depend on it.
    fn server_event(&mut self, _event: &ServerEvent) {}
}

/// Makes the sink of a test from the one of a reporter.
pub type WrapSink = fn(Box<dyn EventSink>) -> Box<dyn EventSink>;

/// Forwards everything to a reporter; a function receives the events of the server first.
pub struct Forward<'a, F, W = WrapSink> {
    inner: Box<dyn ServerReporter + 'a>,
    observe: F,
    wrap: W,
}

impl<'a, F: FnMut(&ServerEvent)> Forward<'a, F> {
    /// Observes the events for `inner`.
    pub fn new(inner: Box<dyn ServerReporter + 'a>, observe: F) -> Self {
        Self {
            inner,
            observe,
            wrap: |sink| sink,
        }
    }

    /// The same; `wrap` makes the sink of each test from the one of `inner`.
    pub fn wrapping<W: FnMut(Box<dyn EventSink>) -> Box<dyn EventSink>>(
        self,
        wrap: W,
    ) -> Forward<'a, F, W> {
        Forward {
            inner: self.inner,
            observe: self.observe,
            wrap,
        }
    }
}

impl<F: FnMut(&ServerEvent), W: FnMut(Box<dyn EventSink>) -> Box<dyn EventSink>> ServerReporter
    for Forward<'_, F, W>
{
    fn listening(&mut self, port: u16, test_number: u32) -> Result<(), SinkError> {
        self.inner.listening(port, test_number)
    }

    fn reopened(&mut self) -> Result<(), SinkError> {
        self.inner.reopened()
    }

    fn open_test(&mut self) -> Result<Box<dyn EventSink>, SinkError> {
        self.inner.open_test().map(&mut self.wrap)
    }

    fn warning(&mut self, text: &str) {
        self.inner.warning(text);
    }

    fn listener(&mut self, listener: &ListenerFacts) -> Result<(), SinkError> {
        self.inner.listener(listener)
    }

    fn server_event(&mut self, event: &ServerEvent) {
        (self.observe)(event);
        self.inner.server_event(event);
    }
}
