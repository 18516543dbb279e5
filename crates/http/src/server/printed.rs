//! Whole answers in a file: head and body leave in one call, and nothing is copied.
//!
//! A file that a socket still holds must not change, but heads have a date. So every answer is printed anew each second
//! that it is asked for, in one of a few places that take turns. What is older than all of them and still waits in a
//! socket may show a newer date; head and body have the same bytes otherwise.

use linerate_sys::sendfile_source::SourceFile;

use super::content::{Block, Filling};

/// Answers that were printed. One per thread.
#[derive(Debug)]
pub(crate) struct Printer {
    file: SourceFile,
    answers: Vec<Printed>,
    /// Where the next new answer goes.
    end: u64,
}

/// An answer in its places.
#[derive(Debug)]
struct Printed {
    filling: Filling,
    body_bytes: u64,
    /// Bytes of head and body.
    len: usize,
    /// Of the first place.
    offset: u64,
    place: u64,
    /// The second in which it was printed last.
    second: u64,
}

/// Where an answer stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) offset: u64,
    pub(crate) len: usize,
}

impl Printer {
    /// A printer without answers; `None` where the system has no room for its file.
    pub(crate) fn new() -> Option<Self> {
        Some(Self {
            file: SourceFile::filled("linerate-http-answers", &[]).ok()?,
            answers: Vec::new(),
            end: 0,
        })
    }

    pub(crate) fn file(&self) -> &SourceFile {
        &self.file
    }

    /// The answer with this body, printed in this second. `head` writes its head. `None` when it is too large, there are
    /// too many, or there is no memory.
    pub(crate) fn place(
        &mut self,
        filling: Filling,
        body_bytes: u64,
        second: u64,
        block: &Block,
        head: impl FnOnce(&mut Vec<u8>),
    ) -> Option<Place> {
        let is_it = |answer: &Printed| answer.body_bytes == body_bytes && answer.filling == filling;
        let known = self.answers.iter().position(is_it);
        match known.and_then(|index| self.answers.get(index)) {
            Some(answer) if answer.second == second => return Some(answer.current()),
            None if body_bytes > BODY_BYTES_MAX || self.answers.len() == ANSWERS_MAX => return None,
            _ => {}
        }
        let mut text = Vec::new();
        head(&mut text);
        text.extend_from_slice(block.run(0, body_bytes));
        let index = known.unwrap_or_else(|| self.reserve(filling, body_bytes, text.len()));
        let answer = self.answers.get_mut(index).filter(|answer| answer.len == text.len())?;
        answer.second = second;
        answer.place = (answer.place + 1) % PLACES;
        let place = answer.current();
        self.file.write_at(&text, place.offset).ok()?;
        Some(place)
    }

    /// Gives a new answer its places, each of which begins with a page.
    fn reserve(&mut self, filling: Filling, body_bytes: u64, len: usize) -> usize {
        self.answers.push(Printed {
            filling,
            body_bytes,
            len,
            offset: self.end,
            place: 0,
            second: 0,
        });
        self.end += stride(len) * PLACES;
        self.answers.len() - 1
    }
}

impl Printed {
    fn current(&self) -> Place {
        Place {
            offset: self.offset + self.place * stride(self.len),
            len: self.len,
        }
    }
}

/// From one place of an answer to the next.
fn stride(len: usize) -> u64 {
    (len as u64).next_multiple_of(PAGE_BYTES)
}

/// Larger bodies are sent from their own file: beside them a call more is nothing.
const BODY_BYTES_MAX: u64 = 256 * 1024;
/// Sizes that are asked for again and again are few; others take the ordinary way.
const ANSWERS_MAX: usize = 8;
const PLACES: u64 = 4;
const PAGE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::content::Content;

    #[test]
    fn an_answer_is_printed_once_a_second_in_places_that_take_turns() {
        let content = Content::default();
        let block = content.block(Filling::Pattern);
        let mut printer = Printer::new().expect("a file");
        let mut printed = 0;
        let mut ask = |second| {
            let head = |text: &mut Vec<u8>| {
                printed += 1;
                text.extend_from_slice(b"head");
            };
            printer
                .place(Filling::Pattern, 10_000, second, block, head)
                .expect("room")
        };
        let places: Vec<u64> = [1, 1, 2, 3, 4, 5].map(|second| ask(second).offset).into();
        assert_eq!(places[0], places[1]);
        assert_eq!(places[5], places[0], "after four seconds");
        assert!(
            places[1..5].windows(2).all(|pair| pair[0].abs_diff(pair[1]) >= 10_004),
            "{places:?}"
        );
        assert_eq!((ask(5).len, printed), (10_004, 5));
    }

    #[test]
    fn only_so_many_and_only_so_large_ones_are_printed() {
        let content = Content::default();
        let block = content.block(Filling::Random);
        let mut printer = Printer::new().expect("a file");
        let mut ask = |body_bytes| printer.place(Filling::Random, body_bytes, 1, block, |_| {});
        assert_eq!(ask(BODY_BYTES_MAX + 1), None);
        for size in 1..=ANSWERS_MAX as u64 {
            assert!(ask(size).is_some());
        }
        assert_eq!(ask(99), None);
        assert!(ask(1).is_some(), "those that are there stay");
    }
}
