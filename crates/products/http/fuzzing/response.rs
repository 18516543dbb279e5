//! Responses of any server, segmented in any way.

use super::segments::pieces;
use crate::load::response::{ReadProgress, ReaderContext, ReceivedResponse, ResponseReader};

/// Parsing any bytes ends, consumes no more than there is, and gives the same result at once, in
/// segments, and with bodies discarded unread. The lowest bits of `settings` select `HEAD` and
/// hashing.
///
/// # Panics
/// When the results differ.
pub fn response(settings: u8, cuts: &[u8], input: &[u8]) {
    let (is_head, is_hashed) = (settings & 1 != 0, settings & 2 != 0);
    let read = |cuts, drops_bodies| {
        Connection::new(is_head, is_hashed, drops_bodies).read(pieces(cuts, input))
    };
    let whole = read(&[], false);
    assert_eq!(whole, read(cuts, false));

    if !is_hashed {
        assert_eq!(whole, read(cuts, true));
    }
}

/// Result of parsing a connection.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    responses: Vec<ReceivedResponse>,
    /// Bytes of an incomplete header, missing bytes of a body where known, and the response
    /// completed by the end of the connection; `None` after a malformed response, of which the
    /// parsed part depends on the segments.
    rest: Option<(usize, Option<u64>, Option<ReceivedResponse>)>,
}

/// A connection as the generator reads it.
struct Connection {
    reader: ResponseReader,
    context: ReaderContext,
    drops_bodies: bool,
    kept: Vec<u8>,
    responses: Vec<ReceivedResponse>,
}

impl Connection {
    fn new(is_head: bool, is_hashed: bool, drops_bodies: bool) -> Self {
        Self {
            reader: ResponseReader::default(),
            context: ReaderContext::new(is_head, is_hashed),
            drops_bodies,
            kept: Vec::new(),
            responses: Vec::new(),
        }
    }

    fn read<'a>(mut self, mut pieces: impl Iterator<Item = &'a [u8]>) -> Found {
        let is_broken = pieces.any(|piece| !self.take(piece));
        let rest =
            (!is_broken).then(|| (self.kept.len(), self.reader.body_left(), self.reader.end()));
        Found {
            responses: self.responses,
            rest,
        }
    }

    /// Parses received bytes; `false` when they are malformed.
    fn take(&mut self, piece: &[u8]) -> bool {
        let mut piece = piece;
        if self.drops_bodies
            && let Some(left) = self.reader.body_left().filter(|left| *left > 0)
        {
            let len = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
            self.responses.extend(self.reader.skip(len as u64));
            piece = &piece[len..];
        }

        let mut bytes = std::mem::take(&mut self.kept);
        bytes.extend_from_slice(piece);

        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            match self.reader.feed(rest, &mut self.context) {
                Ok(ReadProgress::More) => return true,
                Ok(ReadProgress::Incomplete(used)) => {
                    self.kept = rest[used..].to_vec();
                    return true;
                }
                Ok(ReadProgress::Complete(used, response)) => {
                    assert!(used > 0, "a response of nothing");
                    self.responses.push(response);
                    rest = &rest[used..];
                }
                Err(_) => return false,
            }
        }

        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Connection, response};

    const INPUTS: [&[u8]; 5] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: \
          5\r\n\r\nworld",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x\r\ndefg\r\n0\r\na: \
          b\r\n\r\nHTTP/1.0 404 x\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 \
          OK\r\nContent-Length: 3\r\n\r\na",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcHTTP/1.1 200 \
          OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n",
    ];

    #[test]
    fn responses_do_not_depend_on_segmentation() {
        for input in INPUTS {
            for settings in 0..4 {
                for len in 1..=input.len() {
                    response(settings, &vec![len as u8; input.len()], input);
                }
            }
        }
    }

    #[test]
    fn responses_have_their_status_and_length_however_they_are_segmented() {
        let input = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\
                      HTTP/1.1 200 OK\r\nTransfer-Encoding: \
                      chunked\r\n\r\n3\r\nabc\r\n4;x\r\ndefg\r\n0\r\n\r\n\
                      HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: \
                      0\r\n\r\n\
                      HTTP/1.1 204 No Content\r\n\r\n\
                      HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nworld";
        let expected = [(200, 5), (200, 7), (404, 0), (204, 0), (200, 5)];

        for step in 1..=input.len() {
            let found = Connection::new(false, true, false).read(input.chunks(step));
            let responses = found.responses.iter();
            let responses: Vec<_> = responses
                .map(|response| (response.status, response.body_bytes))
                .collect();
            assert!(
                found.rest.is_some() && responses == expected,
                "{step} bytes at a time: {responses:?}"
            );
        }
    }
}
