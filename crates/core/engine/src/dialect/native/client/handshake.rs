//! The begin of a control connection: recognition of the server, and TLS.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use linerate_native::wire::opening::{self, Answer, COOKIE_WIRE_LEN};
use linerate_sys::poll::Interest;
use linerate_sys::stream_io;
use linerate_trust::{ClientConfig, ClientSession, random};

use super::connect_race::{Connection as TcpConnection, dial_address};
use super::{NativeError, Peer, Target};
use crate::interrupts::Interrupts;
use crate::layer::{ClientLayer, Layer};
use crate::tls_stream::TlsStream;
use crate::wait::{WaitError, if_ready, wait};

/// An encrypted control connection.
pub(super) struct Connection {
    pub fd: OwnedFd,
    pub tls: TlsStream,
}

/// Longest wait for the server's answer to the cookie, and for its part of the TLS handshake.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn exchange_cookies(
    dialled: &TcpConnection,
    cookie: &[u8; COOKIE_WIRE_LEN],
    interrupts: &dyn Interrupts,
) -> Result<(Answer, Vec<u8>), NativeError> {
    let lost =
        |error: std::io::Error| NativeError::Unreachable(format!("{}: {error}", dialled.remote));
    stream_io::send(&dialled.fd, cookie).map_err(lost)?;
    let end = Instant::now() + ANSWER_TIMEOUT;
    let mut received = Vec::new();

    loop {
        let answer = opening::answer(&received);
        if !matches!(answer, Answer::Incomplete) {
            return Ok((answer, received));
        }

        let mut byte = [0; 1];
        match if_ready(stream_io::recv(&dialled.fd, &mut byte)).map_err(lost)? {
            Some(0) => return Ok((Answer::Incomplete, received)),
            Some(_) => received.extend(byte),
            None => wait_readable(&dialled.fd, end, interrupts)?,
        }
    }
}

/// Performs the handshake of TLS on a connection to a server of HTTP, which has a certificate.
///
/// # Errors
/// [`NativeError::Identity`] where the server has no TLS, or not the one that is demanded; an
/// interrupt, and no answer in time.
pub fn secure(
    connection: &TcpConnection,
    config: &ClientConfig,
    interrupts: &dyn Interrupts,
) -> Result<ClientLayer, NativeError> {
    match handshake(&connection.fd, config, interrupts) {
        Ok(tls) => Ok(ClientLayer(Layer::Tls(Box::new(tls)))),
        Err(NativeError::Protocol(text)) => Err(NativeError::Identity(text)),
        Err(error) => Err(error),
    }
}

pub(super) fn handshake(
    fd: &OwnedFd,
    config: &ClientConfig,
    interrupts: &dyn Interrupts,
) -> Result<TlsStream, NativeError> {
    let failed = |error: std::io::Error| NativeError::Protocol(format!("TLS handshake: {error}"));
    let mut tls = TlsStream::client(ClientSession::new(config));
    let end = Instant::now() + ANSWER_TIMEOUT;

    if_ready(tls.flush(fd)).map_err(failed)?;

    while tls.is_handshaking() {
        wait_readable(fd, end, interrupts)?;
        tls.receive(fd).map_err(failed)?;
    }

    Ok(tls)
}

/// Connects to the same address again; the key is the same.
pub(super) fn reconnect(
    target: &Target,
    peer: &Peer,
    config: &ClientConfig,
    interrupts: &dyn Interrupts,
) -> Result<Connection, NativeError> {
    let dialled = dial_address(peer.control, &target.control(), interrupts)?;
    let cookie = opening::cookie(random());
    match exchange_cookies(&dialled, &cookie, interrupts)? {
        (Answer::Native, _) => {}
        _ => {
            return Err(NativeError::NotNative(
                "the server answers in another protocol than before".to_owned(),
            ));
        }
    }

    let tls = handshake(&dialled.fd, config, interrupts)?;
    if tls.peer() != Some(peer.fingerprint) {
        return Err(NativeError::Identity(
            "the server has another key than before".to_owned(),
        ));
    }

    Ok(Connection {
        fd: dialled.fd,
        tls,
    })
}

fn wait_readable(
    fd: &OwnedFd,
    end: Instant,
    interrupts: &dyn Interrupts,
) -> Result<(), NativeError> {
    let left = end.saturating_duration_since(Instant::now());
    wait(fd, Interest::READ, Some(left), interrupts).map_err(|error| match error {
        WaitError::Interrupted(signal_text) => NativeError::Interrupted(signal_text),
        WaitError::Os(error) => NativeError::Unreachable(error.text()),
    })
}
