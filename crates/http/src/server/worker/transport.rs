//! A socket as a transport.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;

use linerate_sys::sendfile_source::SourceFile;
use linerate_sys::stream_io::{self, Followed};

use crate::server::write_queue::Transport;

/// A connection's socket.
pub(super) struct SocketTransport<'a>(pub(super) &'a OwnedFd);

impl Transport for SocketTransport<'_> {
    fn send(&mut self, slices: &[IoSlice<'_>], followed: Followed) -> io::Result<usize> {
        match (slices, followed) {
            // The plain call avoids the setup of a vector.
            ([only], Followed::No) => stream_io::send(self.0, only),
            _ => stream_io::send_slices(self.0, slices, followed),
        }
    }

    fn send_file(&mut self, file: &SourceFile, offset: u64, len: usize) -> io::Result<usize> {
        let mut position = offset;
        stream_io::send_file(self.0, file, &mut position, len)
    }
}
