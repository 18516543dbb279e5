//! What is between a connection and its socket: nothing, or TLS.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use linerate_sys::stream_io::{self, Followed};

use crate::send_buffer::SendBuffer;
#[cfg(feature = "native")]
use crate::tls_stream::TlsStream;
#[cfg(feature = "native")]
use crate::wait::if_ready;

/// The bytes of a connection as they are in the socket, or inside TLS. Results are those of calls
/// on a non-blocking socket.
pub(crate) enum Layer {
    /// With what waits to be sent.
    Plain(SendBuffer),
    #[cfg(feature = "native")]
    Tls(Box<TlsStream>),
}

impl Layer {
    pub(crate) fn plain() -> Self {
        Self::Plain(SendBuffer::default())
    }

    pub(crate) fn is_tls(&self) -> bool {
        !matches!(self, Self::Plain(_))
    }

    pub(crate) fn recv(&mut self, fd: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(_) => stream_io::recv(fd, buffer),
            #[cfg(feature = "native")]
            Self::Tls(stream) => stream.read(fd, buffer),
        }
    }

    /// Reads and drops at most `len` bytes.
    pub(crate) fn discard(&mut self, fd: impl AsFd, len: usize) -> io::Result<usize> {
        match self {
            Self::Plain(_) => stream_io::recv_discard(fd, len),
            #[cfg(feature = "native")]
            Self::Tls(stream) => stream.skip(fd, len),
        }
    }

    /// Bytes that no event of the socket announces.
    pub(crate) fn has_received(&self) -> bool {
        match self {
            Self::Plain(_) => false,
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
            Self::Plain(_) => stream_io::send_slices(fd, parts, Followed::No),
            #[cfg(feature = "native")]
            Self::Tls(stream) => stream.write(fd, parts),
        }
    }

    /// Takes all of it, and sends what there is room for.
    pub(crate) fn queue(&mut self, fd: impl AsFd, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(unsent) => {
                unsent.push(bytes);
                self.flush(fd)
            }
            #[cfg(feature = "native")]
            Self::Tls(stream) => stream.send(fd, bytes),
        }
    }

    /// Sends what was taken, as far as there is room.
    pub(crate) fn flush(&mut self, fd: impl AsFd) -> io::Result<()> {
        match self {
            Self::Plain(unsent) => unsent.flush(|bytes| stream_io::send(&fd, bytes)).map(drop),
            #[cfg(feature = "native")]
            Self::Tls(stream) => if_ready(stream.flush(fd)).map(drop),
        }
    }

    pub(crate) fn has_unsent(&self) -> bool {
        match self {
            Self::Plain(unsent) => !unsent.is_empty(),
            #[cfg(feature = "native")]
            Self::Tls(stream) => stream.has_unsent(),
        }
    }

    /// Announces that nothing follows.
    #[cfg_attr(not(feature = "native"), expect(unused_variables))]
    pub(crate) fn close(&mut self, fd: impl AsFd) {
        match self {
            Self::Plain(_) => {}
            #[cfg(feature = "native")]
            Self::Tls(stream) => stream.close(fd),
        }
    }
}

/// The layer of a connection whose owner is another crate, with the calls of the socket.
#[cfg(feature = "native")]
pub struct ClientLayer(pub(crate) Layer);

#[cfg(feature = "native")]
impl ClientLayer {
    /// No TLS.
    pub fn plain() -> Self {
        Self(Layer::plain())
    }

    /// TLS.
    pub fn is_tls(&self) -> bool {
        self.0.is_tls()
    }

    /// Sends a part; what is encrypted counts as sent.
    ///
    /// # Errors
    /// That of the socket, `WouldBlock` without room.
    pub fn send(&mut self, fd: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(fd, bytes)
    }

    /// Sends what is encrypted.
    ///
    /// # Errors
    /// That of the socket.
    pub fn flush(&mut self, fd: impl AsFd) -> io::Result<()> {
        self.0.flush(fd)
    }

    /// Something encrypted waits for room in the socket.
    pub fn has_unsent(&self) -> bool {
        self.0.has_unsent()
    }

    /// Reads a part; 0 at the end.
    ///
    /// # Errors
    /// That of the socket, or of TLS.
    pub fn recv(&mut self, fd: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.recv(fd, buffer)
    }
}
