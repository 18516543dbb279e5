//! A socket as what answers go into.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;

use linerate_sys::sendfile_source::SourceFile;
use linerate_sys::stream_io::{self, Followed};
use linerate_sys::zerocopy;

use crate::server::outbox::Wire;

/// A connection's socket.
pub(super) struct SocketWire<'a>(pub(super) &'a OwnedFd);

impl Wire for SocketWire<'_> {
    fn send(&mut self, slices: &[IoSlice<'_>], followed: Followed) -> io::Result<usize> {
        match (slices, followed) {
            // The plain call spares the kernel a look at the list.
            ([only], Followed::No) => stream_io::send(self.0, only),
            _ => stream_io::send_slices(self.0, slices, followed),
        }
    }

    fn send_file(&mut self, file: &SourceFile, offset: u64, len: usize) -> io::Result<usize> {
        let mut position = offset;
        stream_io::send_file(self.0, file, &mut position, len)
    }

    fn lend(&mut self, slice: &[u8]) -> io::Result<usize> {
        match zerocopy::send_slices(self.0, &[IoSlice::new(slice)]) {
            // Too much is lent already, or the socket cannot lend.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => stream_io::send(self.0, slice),
            other => other,
        }
    }
}
