//! Bytes that wait for room in a socket.

use std::io;

use crate::wait::if_ready;

/// In the order in which they were pushed.
#[derive(Default)]
pub(crate) struct SendBuffer {
    bytes: Vec<u8>,
    sent: usize,
}

impl SendBuffer {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.sent = 0;
    }

    /// Hands what waits to `send` until the socket takes no more; returns how many bytes it took.
    pub(crate) fn flush(
        &mut self,
        mut send: impl FnMut(&[u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let before = self.sent;
        while let Some(rest) = self.bytes.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match if_ready(send(rest))? {
                Some(len) => self.sent += len,
                None => return Ok(self.sent - before),
            }
        }

        let taken = self.sent - before;
        self.clear();
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn what_the_socket_does_not_take_waits() {
        let (mut buffer, mut sent) = (SendBuffer::default(), Vec::new());
        buffer.push(b"first ");
        buffer.push(b"second");

        let mut room = [4, 5, 0].into_iter();
        let taken = buffer.flush(|bytes| match room.next() {
            Some(0) | None => Err(ErrorKind::WouldBlock.into()),
            Some(len) => {
                sent.extend_from_slice(&bytes[..len]);
                Ok(len)
            }
        });
        assert_eq!(taken.expect("no failure"), 9);
        assert!(!buffer.is_empty());

        let taken = buffer.flush(|bytes| {
            sent.extend_from_slice(bytes);
            Ok(bytes.len())
        });
        assert_eq!(taken.expect("no failure"), 3);
        assert_eq!(sent, b"first second");
        assert!(buffer.is_empty());
    }

    #[test]
    fn failure_is_not_taken_for_a_full_socket() {
        let mut buffer = SendBuffer::default();
        buffer.push(b"x");
        let failed = buffer.flush(|_| Err(ErrorKind::BrokenPipe.into()));
        assert_eq!(failed.expect_err("a failure").kind(), ErrorKind::BrokenPipe);
    }
}
