//! Reports of iperf3 and iperf 2 as text: output of clients and logs of servers, with lines of
//! other programs between them.

mod banner;
mod command;
mod printed_test;
mod row;
mod stream;

use std::collections::HashMap;

use linerate_model::event::Endpoint;

use banner::{Begun, Opening, Tool};
pub use command::Command;
pub(super) use printed_test::TextTest;
use row::{Bracketed, Row, Subject};
use stream::TextStream;

/// Tests of one text.
const TESTS_MAX: usize = 100_000;

/// Result of a line: part of a report or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// It does.
    Yes,
    /// It does, and is about the host as well.
    AlsoOfHost,
    /// It does not.
    No,
}

/// The tests in the lines of a text, in their order.
#[derive(Default)]
pub(super) struct Texts {
    tests: Vec<TextTest>,
    /// Facts known of the next test; `None` while lines belong to the last one.
    opening: Option<Opening>,
    /// Release of iperf3 that a line named.
    pub iperf3_version: Option<String>,
    /// Test and stream of each number in reports.
    places: HashMap<Subject, (usize, usize)>,
}

impl Texts {
    /// The lines that follow are the output of this command.
    pub(super) fn command(&mut self, command: &Command) {
        self.opening = Some(Opening::of_command(command));
        self.places.clear();
    }

    /// Reads a line.
    pub(super) fn line(&mut self, line: &str) -> Taken {
        let taken = self.read(line);
        if taken != Taken::No {
            let last = self.tests.last_mut().map(|test| &mut test.source);
            let next = self.opening.as_mut().map(|opening| &mut opening.source);
            if let Some(source) = next.or(last) {
                source.extend([line, "\n"]);
            }
        }

        taken
    }

    fn read(&mut self, line: &str) -> Taken {
        if let Some(bracketed) = Bracketed::find(line)
            && self.bracketed(&bracketed)
        {
            return Taken::Yes;
        }

        if let Some(begun) = Begun::find(line) {
            self.announce(&begun);
            return Taken::Yes;
        }

        // A client that was refused, or had no answer, has no rows.
        if banner::error(line).is_some()
            && let Some(opening) = self
                .opening
                .take_if(|opening| opening.is_announced_client())
        {
            self.begin(opening);
        }

        if let Some(test) = self.tests.last_mut().filter(|_| self.opening.is_none()) {
            return test.line(line);
        }

        // Lines before the first report are those of one only where nothing else begins like them.
        let mut opening = self.opening.take().unwrap_or_default();
        let taken = opening.line(line);

        if opening.tool == Some(Tool::Iperf3) && opening.version.is_some() {
            self.iperf3_version.clone_from(&opening.version);
        }

        let is_known = taken != Taken::No || opening != Opening::default();
        self.opening = is_known.then_some(opening);
        taken
    }

    /// Takes a line with which a program announces a test.
    fn announce(&mut self, begun: &Begun<'_>) {
        let last = self.tests.last_mut();
        match (&mut self.opening, last.filter(|test| !test.has_totals())) {
            // Both directions at once: a client of iperf 2 listens, too.
            (Some(opening), _)
                if opening.is_announced_client() && begun.is_iperf2(Endpoint::Server) => {}
            (Some(opening), _) => *opening = begun.opening(opening.clone(), true),
            // A server of iperf 2 connects back to its client, in a test of both directions.
            (None, Some(test))
                if begun.is_iperf2(Endpoint::Client)
                    && test.opening.tool.is_some()
                    && test.opening.is_server() => {}
            // Threads of iperf 2 print their lines in any order.
            (None, Some(test)) if test.opening.tool.is_none() => {
                test.opening = begun.opening(std::mem::take(&mut test.opening), true);
            }
            _ => {
                let last = self
                    .tests
                    .last()
                    .map(|test| test.opening.again())
                    .unwrap_or_default();
                self.opening = Some(begun.opening(last, false));
            }
        }
    }

    /// Reads a line that begins with the number of a stream.
    fn bracketed(&mut self, line: &Bracketed<'_>) -> bool {
        if line.subject == Subject::Head {
            let opening = match (&mut self.opening, self.tests.last_mut()) {
                (Some(opening), _) => opening,
                (None, Some(test)) => &mut test.opening,
                (None, None) => self.opening.insert(Opening::default()),
            };
            opening.head(line.rest);
            return true;
        }

        if let Some(stream) = TextStream::opened(line.rest) {
            self.open(line.subject, stream);
            return true;
        }

        if let Some(row) = Row::parse(line.rest) {
            return self.row(line, row);
        }

        let marked = || self.places.get(&line.subject.marked()?);
        let place = self.places.get(&line.subject).or_else(marked).copied();
        let test = place.map_or(self.tests.len().checked_sub(1), |(test, _)| Some(test));
        let test = test.and_then(|test| self.tests.get_mut(test));

        test.is_some_and(|test| test.remark(place.map(|(_, stream)| stream), line.rest))
    }

    /// Opens a stream of the last test, or of a new one.
    fn open(&mut self, subject: Subject, stream: TextStream) {
        let is_next = match (&self.opening, self.tests.last()) {
            (None, Some(last)) => last.has_totals() || !last.is_of_pair(&stream),
            _ => true,
        };
        if is_next {
            let last = self.tests.last().map(|test| test.opening.again());
            let opening = self.opening.take().or(last).unwrap_or_default();
            self.begin(opening.with_stream(subject, &stream));
        }

        self.add(self.tests.len().saturating_sub(1), subject, stream);
    }

    fn begin(&mut self, opening: Opening) {
        if self.tests.len() < TESTS_MAX {
            self.tests.push(TextTest::new(opening));
        }

        // A server numbers the streams of concurrent tests differently.
        if self
            .tests
            .last()
            .is_some_and(|test| test.opening.endpoint != Some(Endpoint::Server))
        {
            self.places.clear();
        }

        self.places.remove(&Subject::Sum);
    }

    fn add(&mut self, test: usize, subject: Subject, stream: TextStream) {
        let added = self
            .tests
            .get_mut(test)
            .and_then(|test| test.add(subject, stream));
        if let Some(place) = added {
            self.places.insert(subject, (test, place));
            // Its other direction is that of an earlier test.
            subject
                .marked()
                .and_then(|marked| self.places.remove(&marked));
        }
    }

    fn row(&mut self, line: &Bracketed<'_>, row: Row) -> bool {
        // A sum of both directions is that of the rows before it.
        if line.subject == Subject::Both {
            return !self.tests.is_empty();
        }

        let is_ended = |test: usize| self.tests.get(test).is_none_or(TextTest::has_totals);
        let is_of_next = self
            .places
            .get(&line.subject)
            .is_none_or(|(test, _)| is_ended(*test));
        if let Some(opening) = self.opening.take_if(|_| is_of_next) {
            self.begin(opening);
        }

        if self.tests.is_empty() {
            self.begin(Opening::default());
        }

        if !self.places.contains_key(&line.subject) {
            self.add_unopened(line.subject);
        }

        if let Some((test, place)) = self.places.get(&line.subject)
            && let Some(test) = self.tests.get_mut(*test)
        {
            test.row(*place, line.tag, row);
        }

        true
    }

    /// Adds a stream that no line opened: the other direction of a connection, the sum, or one
    /// whose line is missing.
    fn add_unopened(&mut self, subject: Subject) {
        let forward = subject
            .unmarked()
            .and_then(|forward| self.places.get(&forward))
            .copied();
        let back = forward.and_then(|(test, place)| {
            Some((test, self.tests.get(test)?.streams.get(place)?.back()))
        });
        let (test, stream) =
            back.unwrap_or_else(|| (self.tests.len().saturating_sub(1), TextStream::default()));
        self.add(test, subject, stream);
    }

    pub(super) fn take_tests(&mut self) -> Vec<TextTest> {
        std::mem::take(&mut self.tests)
            .into_iter()
            .filter(TextTest::has_rows)
            .collect()
    }
}
