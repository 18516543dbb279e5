//! What is between a connection and its socket: nothing, or TLS.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use linerate_sys::stream_io::{self, Followed};

#[cfg(feature = "native")]
use crate::tls_stream::TlsStream;

/// The bytes of a connection as they are in the socket, or inside TLS. Results are those of calls
/// on a non-blocking socket.
pub(crate) enum Layer {
    Plain,
    #[cfg(feature = "native")]
    Tls(Box<TlsStream>),
}

impl Layer {
    pub(crate) fn is_tls(&self) -> bool {
        !matches!(self, Self::Plain)
    }

    pub(crate) fn recv(&mut self, fd: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain => stream_io::recv(fd, buffer),
            #[cfg(feature = "native")]
            Self::Tls(stream) => stream.read(fd, buffer),
        }
    }

    /// Reads and drops at most `len` bytes.
    pub(crate) fn discard(&mut self, fd: impl AsFd, len: usize) -> io::Result<usize> {
        match self {
            Self::Plain => stream_io::recv_discard(fd, len),
            #[cfg(feature = "native")]
            Self::Tls(stream) => stream.skip(fd, len),
        }
    }

    /// Bytes that no event of the socket announces.
    pub(crate) fn has_received(&self) -> bool {
        match self {
            Self::Plain => false,
            #[cfg(feature = "native")]
            Self::Tls(stream) => stream.has_received(),
        }
    }

    pub(crate) fn send(&mut self, fd: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
        self.send_slices(fd, &[IoSlice::new(bytes)])
    }

    pub(crate) fn send_slices(
        &mut self,
        fd: impl AsFd,
        parts: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        match self {
            Self::Plain => stream_io::send_slices(fd, parts, Followed::No),
            #[cfg(feature = "native")]
            Self::Tls(stream) => stream.write(fd, parts),
        }
    }

    /// Sends what was taken and is not in the socket yet; `WouldBlock` while some of it is left.
    #[cfg_attr(not(feature = "native"), expect(unused_variables))]
    pub(crate) fn flush(&mut self, fd: impl AsFd) -> io::Result<()> {
        match self {
            Self::Plain => Ok(()),
            #[cfg(feature = "native")]
            Self::Tls(stream) => stream.flush(fd),
        }
    }

    pub(crate) fn has_unsent(&self) -> bool {
        match self {
            Self::Plain => false,
            #[cfg(feature = "native")]
            Self::Tls(stream) => stream.has_unsent(),
        }
    }

    /// Announces that nothing follows.
    #[cfg_attr(not(feature = "native"), expect(unused_variables))]
    pub(crate) fn close(&mut self, fd: impl AsFd) {
        match self {
            Self::Plain => {}
            #[cfg(feature = "native")]
            Self::Tls(stream) => stream.close(fd),
        }
    }
}
