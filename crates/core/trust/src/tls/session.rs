//! Sessions: ciphertext and plaintext in and out.

use std::fmt;
use std::io::{self, Read, Write};
use std::mem;
use std::sync::Arc;

use rustls::{ClientConnection, Connection, ServerConnection};

use super::config::{ClientConfig, ServerConfig};
use super::error::TlsError;
use super::limits::{HANDSHAKE_BYTES_MAX, PLAINTEXT_BYTES_MAX};
use super::records::RecordCounter;
use crate::fingerprint::Fingerprint;

/// Ciphertext that is processed at once. What it exceeds a limit by is bounded thereby.
const PIECE_BYTES: usize = 4096;

/// The client's end of a TLS session. Performs no I/O and never blocks.
pub struct ClientSession(Channel);

/// The server's end of a TLS session. Performs no I/O and never blocks.
pub struct ServerSession(Channel);

impl ClientSession {
    /// Begins a handshake; [`Self::take_outgoing`] gives its first bytes.
    pub fn new(config: &ClientConfig) -> Self {
        let connection = ClientConnection::new(Arc::clone(&config.config), config.name.clone())
            .expect("the configuration is consistent");
        Self(Channel::new(connection.into(), config.alpn))
    }

    /// Fingerprint of the server's key, which it proved to possess. `None` until the handshake is
    /// complete, and after a failure.
    ///
    /// The session does not judge it: until the caller has compared it, or verified a proof over
    /// [`Self::exporter`], the server may be anybody.
    pub fn peer(&self) -> Option<Fingerprint> {
        let keys = self.0.established()?.peer_certificates()?;
        keys.first().map(|key| Fingerprint::of(key))
    }
}

impl ServerSession {
    /// Waits for the handshake of a client.
    pub fn new(config: &ServerConfig) -> Self {
        let connection = ServerConnection::new(Arc::clone(&config.config))
            .expect("the configuration is consistent");
        Self(Channel::new(connection.into(), config.alpn))
    }
}

/// Methods of both ends.
macro_rules! session {
    ($session:ident) => {
        impl $session {
            /// Processes bytes of the peer, cut anywhere. Afterwards there may be bytes for the
            /// peer, also after an error.
            ///
            /// # Errors
            /// The error that ended the session; every later call returns the same.
            pub fn receive(&mut self, ciphertext: &[u8]) -> Result<(), TlsError> {
                self.0.receive(ciphertext)
            }

            /// Encrypts bytes for the peer. During the handshake they are kept until it is
            /// complete.
            ///
            /// # Errors
            /// [`TlsError::SendLimit`] when more than [`PLAINTEXT_BYTES_MAX`] bytes wait for
            /// [`Self::take_outgoing`] or for the end of the handshake, [`TlsError::Closed`] after
            /// [`Self::close`], or what ended the session. Nothing is sent then.
            pub fn send(&mut self, plaintext: &[u8]) -> Result<(), TlsError> {
                self.0.send(plaintext)
            }

            /// Ciphertext for the peer.
            #[must_use]
            pub fn take_outgoing(&mut self) -> Vec<u8> {
                self.0.take_outgoing()
            }

            /// Plaintext of the peer, at most [`PLAINTEXT_BYTES_MAX`] bytes.
            #[must_use]
            pub fn take_received(&mut self) -> Vec<u8> {
                mem::take(&mut self.0.received)
            }

            /// Records of the peer that have begun, all of the handshake included. Each costs this
            /// end a decryption, however short it is.
            pub fn records_received(&self) -> u64 {
                self.0.records
            }

            /// True if the handshake is incomplete.
            pub fn is_handshaking(&self) -> bool {
                self.0.connection.is_handshaking()
            }

            /// 32 bytes that the two ends of this session alone can compute (RFC 8446, 7.5). `None`
            /// until the handshake is complete, and after a failure.
            pub fn exporter(&self, label: &str) -> Option<[u8; 32]> {
                self.0
                    .established()?
                    .export_keying_material([0; 32], label.as_bytes(), None)
                    .ok()
            }

            /// Announces that nothing follows (`close_notify`). What the peer sends can still be
            /// received.
            pub fn close(&mut self) {
                self.0.close();
            }
        }

        impl fmt::Debug for $session {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut fields = f.debug_struct(stringify!($session));
                fields
                    .field("is_handshaking", &self.is_handshaking())
                    .field("failure", &self.0.failure)
                    .finish()
            }
        }
    };
}

session!(ClientSession);
session!(ServerSession);

/// A session of either end.
struct Channel {
    connection: Connection,
    /// Protocol that the peer has to agree to.
    alpn: Option<&'static str>,
    /// Ciphertext for the peer.
    outgoing: Vec<u8>,
    /// Plaintext of the peer.
    received: Vec<u8>,
    /// Plaintext that was sent and not taken yet.
    queued_bytes: usize,
    /// Ciphertext of the peer's current flight of the handshake.
    flight_bytes: usize,
    counter: RecordCounter,
    /// Records of the peer that have begun.
    records: u64,
    failure: Option<TlsError>,
    is_closed: bool,
    is_closed_by_peer: bool,
}

impl Channel {
    fn new(mut connection: Connection, alpn: Option<&'static str>) -> Self {
        // Limits are applied here, where what exceeds them is an error and not half a message.
        connection.set_buffer_limit(None);
        let mut channel = Self {
            connection,
            alpn,
            outgoing: Vec::new(),
            received: Vec::new(),
            queued_bytes: 0,
            flight_bytes: 0,
            counter: RecordCounter::default(),
            records: 0,
            failure: None,
            is_closed: false,
            is_closed_by_peer: false,
        };
        channel.collect_outgoing();

        channel
    }

    /// The connection after its handshake, unless it failed.
    fn established(&self) -> Option<&Connection> {
        (self.failure.is_none() && !self.connection.is_handshaking()).then_some(&self.connection)
    }

    fn receive(&mut self, ciphertext: &[u8]) -> Result<(), TlsError> {
        self.check()?;
        self.records += self.counter.count(ciphertext);

        let result = ciphertext
            .chunks(PIECE_BYTES)
            .try_for_each(|piece| self.receive_piece(piece));
        // After an error there is an alert for the peer.
        self.collect_outgoing();
        self.failure = result.clone().err();

        result
    }

    fn receive_piece(&mut self, mut piece: &[u8]) -> Result<(), TlsError> {
        if self.connection.is_handshaking() {
            self.flight_bytes += piece.len();
            if self.flight_bytes > HANDSHAKE_BYTES_MAX {
                return Err(TlsError::HandshakeLimit);
            }
        }

        while !piece.is_empty() && !self.is_closed_by_peer {
            let read = self
                .connection
                .read_tls(&mut piece)
                .map_err(|error| TlsError::Broken(error.to_string()))?;
            if read == 0 {
                break;
            }

            self.process()?;
        }

        Ok(())
    }

    fn process(&mut self) -> Result<(), TlsError> {
        let was_handshaking = self.connection.is_handshaking();
        let processed = self.connection.process_new_packets();
        if was_handshaking
            && !self.connection.is_handshaking()
            && let Some(alpn) = self.alpn
            && self.connection.alpn_protocol() != Some(alpn.as_bytes())
        {
            // A peer without this extension completes its handshake (RFC 7301, 3.1).
            return Err(TlsError::Protocol);
        }

        // What arrived before an invalid record is valid.
        self.collect_received()?;
        let state = processed.map_err(|error| TlsError::of(&error, was_handshaking))?;
        self.is_closed_by_peer = state.peer_has_closed();

        if self.connection.wants_write() {
            // An answer ends the peer's flight, and its next one has the whole bound.
            self.flight_bytes = 0;
            self.collect_outgoing();
        }

        Ok(())
    }

    /// Takes decrypted bytes out of the connection.
    fn collect_received(&mut self) -> Result<(), TlsError> {
        match self.connection.reader().read_to_end(&mut self.received) {
            Ok(_) => {}
            // There is no more for now; what there was has been appended.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(TlsError::Broken(error.to_string())),
        }

        if self.received.len() > PLAINTEXT_BYTES_MAX {
            // The session has failed: nothing of the peer is kept.
            self.received = Vec::new();
            return Err(TlsError::ReceiveLimit);
        }

        Ok(())
    }

    /// Takes encrypted bytes out of the connection.
    fn collect_outgoing(&mut self) {
        while self.connection.wants_write() {
            self.connection
                .write_tls(&mut self.outgoing)
                .expect("a vector accepts all bytes");
        }
    }

    fn send(&mut self, plaintext: &[u8]) -> Result<(), TlsError> {
        self.check()?;
        if self.is_closed {
            return Err(TlsError::Closed);
        }

        let queued_bytes = self.queued_bytes.saturating_add(plaintext.len());
        if queued_bytes > PLAINTEXT_BYTES_MAX {
            return Err(TlsError::SendLimit);
        }

        self.queued_bytes = queued_bytes;
        let written = self
            .connection
            .writer()
            .write_all(plaintext)
            .map_err(|error| TlsError::Broken(error.to_string()));

        self.collect_outgoing();
        self.failure = written.clone().err();
        written
    }

    fn take_outgoing(&mut self) -> Vec<u8> {
        // During the handshake the plaintext waits in the connection, not in `outgoing`.
        if !self.connection.is_handshaking() {
            self.queued_bytes = 0;
        }
        mem::take(&mut self.outgoing)
    }

    fn close(&mut self) {
        if !mem::replace(&mut self.is_closed, true) {
            self.connection.send_close_notify();
            self.collect_outgoing();
        }
    }

    fn check(&self) -> Result<(), TlsError> {
        self.failure.clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests;
