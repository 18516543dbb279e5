//! Opens a session: connection, recognition, TLS, identity.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use linerate_model::path::Identity;
use linerate_native::wire::message::SPLIT_ADDRESS;
use linerate_native::wire::opening::{self, Answer, COOKIE_WIRE_LEN};
use linerate_sys::socket;
use linerate_trust::{ClientConfig, random};

use super::connect_race::{Connection, dial};
use super::control::{Announcement, BUSY, NativeClient, Turn};
use super::event_loop::EventLoop;
use super::handshake::{self, exchange_cookies, handshake};
use super::{IdentityDemand, Login, NativeError, Peer, Target, judge};
use crate::interrupts::Interrupts;

/// Kind of server at the target.
pub enum Opened {
    /// A native server, with a session.
    Native(Box<NativeClient>),
    /// A server of iperf3, on the same connection.
    Iperf3(Established),
}

/// A connection to an iperf3 server that has received a cookie and answered it.
#[derive(Debug)]
pub struct Established {
    /// The control connection.
    pub fd: OwnedFd,
    /// The cookie that was sent.
    pub cookie: [u8; COOKIE_WIRE_LEN],
    /// Bytes of the server that were read.
    pub received: Vec<u8>,
    /// Address of the server.
    pub remote: std::net::SocketAddr,
    /// Time of the TCP handshake.
    pub connect_time: Duration,
}

/// Connects to the first address of `target` that answers.
///
/// # Errors
/// No address answers, or an interrupt.
pub fn connect(target: &Target, interrupts: &dyn Interrupts) -> Result<Connection, NativeError> {
    dial(target, &mut EventLoop::new(interrupts)?)
}

/// Pause before a busy server is tried again.
const BUSY_PAUSE: Duration = Duration::from_millis(500);

/// Opens a session with the server at `target`, or finds that it speaks iperf3. `on_turn` follows
/// its place in the queue of the server.
///
/// # Errors
/// See [`NativeError`].
pub fn open(
    target: &Target,
    demand: &IdentityDemand,
    announcement: &Announcement,
    on_turn: &mut dyn FnMut(Turn),
    interrupts: &dyn Interrupts,
) -> Result<Opened, NativeError> {
    let end = Instant::now() + announcement.wait_max;
    let events = &mut EventLoop::new(interrupts)?;
    loop {
        let dialled = dial(&target.control(), events)?;
        let cookie = opening::cookie(random());
        let (answer, received) = exchange_cookies(&dialled, &cookie, interrupts)?;
        match answer {
            Answer::Native => {
                match native(target, dialled, demand, announcement, on_turn, events) {
                    Err(NativeError::Refused { clause, .. })
                        if clause == BUSY && Instant::now() < end =>
                    {
                        events.pause(BUSY_PAUSE)?;
                    }
                    Err(NativeError::Refused { clause, text }) if clause == BUSY => {
                        return Err(NativeError::Refused {
                            clause,
                            text: format!("{text}; try a longer --wait"),
                        });
                    }
                    opened => return opened,
                }
            }
            Answer::Iperf3 => {
                refuse_downgrade(demand, target)?;
                let Connection {
                    fd,
                    remote,
                    connect_time,
                } = dialled;
                return Ok(Opened::Iperf3(Established {
                    fd,
                    cookie,
                    received,
                    remote,
                    connect_time,
                }));
            }
            Answer::Busy if Instant::now() < end => events.pause(BUSY_PAUSE)?,
            Answer::Busy => {
                return Err(NativeError::Refused {
                    clause: BUSY.to_owned(),
                    text: "it runs another test; try a longer --wait".to_owned(),
                });
            }
            Answer::NotAdmitted => {
                return Err(NativeError::Refused {
                    clause: "address".to_owned(),
                    text: "it admits no test from this address; see --allow and --deny of the \
                           server, and its log"
                        .to_owned(),
                });
            }
            Answer::Incomplete | Answer::Foreign => {
                let seen = received.escape_ascii();
                let text = format!(
                    "{}: no server of tests answers there; it sent \"{seen}\"",
                    target.host
                );
                return Err(NativeError::Unreachable(text));
            }
        }
    }
}

/// A host on the path that changes traffic could answer as iperf3 does.
fn refuse_downgrade(demand: &IdentityDemand, target: &Target) -> Result<(), NativeError> {
    let wants_native = demand.requires_native
        || demand.pin.is_some()
        || demand.token.is_some()
        || demand.known.is_some()
        || demand.login.is_some()
        || target.control_via.is_some();
    if !wants_native {
        return Ok(());
    }

    Err(NativeError::NotNative(format!(
        "{target} answers as an iperf3 server, which cannot prove its identity; test it without \
         --native, --pin, --token-file, --username and --control-via, and after `linerate test \
         --forget {target}` if it was a linerate server before"
    )))
}

fn native(
    target: &Target,
    dialled: Connection,
    demand: &IdentityDemand,
    announcement: &Announcement,
    on_turn: &mut dyn FnMut(Turn),
    events: &mut EventLoop<'_>,
) -> Result<Opened, NativeError> {
    let config = ClientConfig::new();
    let data = match target.control_via {
        Some(_) => Some(dial(target, events)?),
        None => None,
    };
    let is_split = data
        .as_ref()
        .is_some_and(|data| local_ip(&data.fd) != local_ip(&dialled.fd));
    let (remote, connect_time) = data.map_or((dialled.remote, dialled.connect_time), |data| {
        (data.remote, data.connect_time)
    });
    let Connection {
        fd,
        remote: control,
        ..
    } = dialled;
    let tls = handshake(&fd, &config, events.interrupts)?;
    let fingerprint = tls
        .peer()
        .ok_or_else(|| NativeError::Identity("the server has no key".to_owned()))?;
    let mut identity = judge(demand, fingerprint, &target.to_string())?;
    if demand.token.is_some() && identity != Identity::Pinned {
        identity = Identity::Token;
    }

    let peer = Peer {
        remote,
        control,
        identity,
        fingerprint,
        connect_time,
    };
    let login = login_for(demand, identity, target)?;

    let mut client = NativeClient::new(
        target.clone(),
        peer,
        config,
        handshake::Connection { fd, tls },
        demand.token.clone(),
    );
    client.greet(login, announcement, on_turn, events)?;

    if is_split && !client.has_feature(SPLIT_ADDRESS) {
        client.close();
        return Err(NativeError::Refused {
            clause: "address".to_owned(),
            text:
                "its streams must come from the address of the control connection; start it with \
                 --allow-split-address"
                    .to_owned(),
        });
    }

    Ok(Opened::Native(Box::new(client)))
}

fn local_ip(fd: &OwnedFd) -> Option<IpAddr> {
    socket::local_addr(fd).ok().map(|address| address.ip())
}

/// The login, for a server whose identity is known.
fn login_for<'a>(
    demand: &'a IdentityDemand,
    identity: Identity,
    target: &Target,
) -> Result<Option<&'a Login>, NativeError> {
    let is_known = matches!(identity, Identity::Pinned | Identity::Known) || demand.accept_new;
    match &demand.login {
        Some(_) if !is_known => Err(NativeError::Identity(format!(
            "the password is not sent: {target} has a key that is not known yet; give --pin with the key \
             that it printed at its start, or --accept-new"
        ))),
        login => Ok(login.as_ref()),
    }
}
