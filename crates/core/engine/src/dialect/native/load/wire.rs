//! Bytes of a load stream: TCP, or TLS over it.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use linerate_sys::stream_io::{self, Followed};

use crate::tls_stream::TlsStream;

/// Carrier of the bytes of a stream.
pub(crate) enum Wire {
    /// As they are.
    Plain,
    /// In records of TLS.
    Tls(Box<TlsStream>),
}

impl Wire {
    /// Writes what the socket takes of these parts.
    pub(super) fn write(&mut self, fd: impl AsFd, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain => stream_io::send_slices(&fd, parts, Followed::No),
            Self::Tls(stream) => stream.write(&fd, parts),
        }
    }

    /// Sends what an earlier write left behind.
    pub(super) fn flush(&mut self, fd: impl AsFd) -> io::Result<()> {
        match self {
            Self::Plain => Ok(()),
            Self::Tls(stream) => stream.flush(&fd),
        }
    }

    /// Reads what has arrived; 0 at the end of the stream.
    pub(super) fn read(&mut self, fd: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain => stream_io::recv(&fd, buffer),
            Self::Tls(stream) => stream.read(&fd, buffer),
        }
    }
}
