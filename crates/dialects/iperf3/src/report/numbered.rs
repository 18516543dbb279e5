//! Stream numbers that no two concurrent tests share.

use std::borrow::Cow;

use linerate_model::event::Event;
use linerate_model::sink::Collector;
use linerate_model::{EventSink, SinkError, StreamId};

/// Shows the streams of a test with numbers from a position on; a test that runs alone keeps its
/// own.
pub(super) struct Numbered<S> {
    sink: S,
    first: u32,
}

impl<S> Numbered<S> {
    pub(super) fn new(sink: S) -> Self {
        Self { sink, first: 0 }
    }

    fn shift(&self, id: &mut StreamId) {
        id.0 = id.0.saturating_add(self.first);
    }

    fn renumbered<'e>(&self, event: &'e Event) -> Cow<'e, Event> {
        if self.first == 0 {
            return Cow::Borrowed(event);
        }

        let mut event = event.clone();
        match &mut event {
            Event::StreamOpened(stream) => self.shift(&mut stream.id),
            Event::Interval(report) => report
                .streams
                .iter_mut()
                .for_each(|row| self.shift(&mut row.id)),
            Event::Summary(summary) => summary
                .streams
                .iter_mut()
                .for_each(|row| self.shift(&mut row.id)),
            _ => {}
        }

        Cow::Owned(event)
    }
}

impl<S: EventSink> EventSink for Numbered<S> {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        if let Event::TestAccepted(header) = event {
            self.first = header.first_stream_position;
        }
        let event = self.renumbered(event);
        self.sink.event(&event)
    }
}

impl<T, S: Collector<T>> Collector<T> for Numbered<S> {
    fn collect(&mut self) -> Option<T> {
        self.sink.collect()
    }
}
