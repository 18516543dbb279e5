//! The UDP streams of a session until their data flows.
//!
//! The answer to a hello may be lost. A client that repeats its hello is answered again. A stock
//! client never does; it waits for the answer and for nothing else, so on streams it sends on,
//! where a second answer can do no harm, the answer is repeated until data arrives.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use linerate_iperf3::wire::udp_header;
use linerate_model::{Stream, StreamId, StreamRole};
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::{socket, udp};

use crate::server::FirstDatagram;
use crate::server::listeners;

/// Streams whose data has not begun.
#[derive(Default)]
pub(super) struct Flows {
    flows: Vec<Flow>,
    repeat_at: Option<Instant>,
}

struct Flow {
    id: StreamId,
    role: StreamRole,
    remote: SocketAddr,
    /// Another descriptor of the stream's socket.
    fd: OwnedFd,
    reply: &'static [u8],
    replies: u32,
    /// The address has a control connection. Others get one answer for each of their datagrams.
    is_proven: bool,
    watched: bool,
}

/// Time without data after which an answer may be lost: longer than any round trip on earth.
const REPEAT: Duration = Duration::from_millis(500);
/// Answers to one address, the first included: a handful of bytes.
const REPLIES_MAX: u32 = 10;

impl Flows {
    /// Takes a stream whose first hello was just answered.
    pub(super) fn add(
        &mut self,
        stream: &Stream,
        fd: &OwnedFd,
        reply: &'static [u8],
        client: IpAddr,
        epoll: &Epoll,
        token: u64,
    ) {
        let Ok(remote) = socket::peer_addr(fd) else {
            return;
        };
        // Without another descriptor a lost answer is not noticed; nothing else depends on it.
        let Ok(fd) = fd.try_clone() else { return };
        let remote = socket::unmap(remote);
        let watched = epoll.add(&fd, token, Interest::READ).is_ok();

        self.flows.push(Flow {
            id: stream.id,
            role: stream.role,
            remote,
            fd,
            reply,
            replies: 1,
            // A UDP source can be forged, so repeated answers go only to an address that completed
            // a TCP handshake.
            is_proven: remote.ip() == client,
            watched,
        });
        self.repeat_at = Some(Instant::now() + REPEAT);
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.repeat_at
    }

    /// A hello that reached the listener before its stream was connected; true when it belongs to
    /// one of these streams.
    pub(super) fn repeat_reply(&mut self, from: SocketAddr) -> bool {
        let flow = self.flows.iter_mut().find(|f| f.remote == from);
        flow.map(Flow::answer).is_some()
    }

    /// Takes what arrived on streams whose data has not begun: it can only be hellos. Returns those
    /// of other senders.
    pub(super) fn on_readable(&mut self) -> Vec<FirstDatagram> {
        let mut strays = Vec::new();
        for flow in self.flows.iter_mut().filter(|f| f.watched) {
            for datagram in listeners::udp::read(&flow.fd) {
                let len = datagram.bytes.len();
                if datagram.from != flow.remote {
                    // It arrived while the socket was still the listener.
                    strays.push(datagram);
                } else if len > 0 && len % udp_header::HELLO.len() == 0 {
                    // Coalescing may have joined several of them.
                    flow.answer();
                }
            }
        }

        strays
    }

    /// From now on the sockets are read by workers.
    pub(super) fn start_data(&mut self, epoll: &Epoll) {
        for flow in self.flows.iter_mut().filter(|f| f.watched) {
            flow.watched = false;
            // The descriptor is registered, so that this cannot fail.
            let _ = epoll.remove(&flow.fd);
        }

        // On streams that this end sends on, the data itself is the answer.
        self.flows.retain(|f| f.role == StreamRole::Receiver);
    }

    /// Repeats the answers that may be lost. While streams are missing only the last answer can be,
    /// because the client opens one after the other; later it can be that of any stream in
    /// `silent`, which received nothing.
    pub(super) fn repeat(&mut self, now: Instant, silent: Option<&[StreamId]>) {
        if self.repeat_at.is_none_or(|t| now < t) {
            return;
        }

        match silent {
            Some(silent) => self
                .flows
                .retain(|f| f.is_proven && silent.contains(&f.id) && f.replies < REPLIES_MAX),
            None => {
                let may_repeat = |f: &&mut Flow| f.role == StreamRole::Receiver && f.is_proven;
                if let Some(last) = self.flows.last_mut().filter(may_repeat) {
                    last.answer();
                }
            }
        }

        if silent.is_some() {
            self.flows.iter_mut().for_each(Flow::answer);
        }

        self.repeat_at = (!self.flows.is_empty()).then(|| now + REPEAT);
    }
}

impl Flow {
    fn answer(&mut self) {
        if self.replies < REPLIES_MAX {
            self.replies += 1;
            // What is lost here is what this is about.
            let _ = udp::send(&self.fd, self.reply);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn hello_of_another_sender_is_returned() -> io::Result<()> {
        let (server, first, second) = (bound()?, bound()?, bound()?);
        first.send_to(&udp_header::HELLO, server.local_addr()?)?;
        second.send_to(&udp_header::HELLO, server.local_addr()?)?;
        server.connect(first.local_addr()?)?;
        server.set_nonblocking(true)?;

        let stream = Stream::new(
            StreamId(1),
            StreamRole::Receiver,
            linerate_model::Flow::Forward,
            server.local_addr()?,
            first.local_addr()?,
        );
        let (mut flows, epoll) = (Flows::default(), Epoll::new()?);
        flows.add(
            &stream,
            &server.into(),
            &udp_header::REPLY,
            first.local_addr()?.ip(),
            &epoll,
            0,
        );

        let strays = flows.on_readable();
        assert_eq!(
            strays.iter().map(|stray| stray.from).collect::<Vec<_>>(),
            [second.local_addr()?]
        );
        first.set_read_timeout(Some(Duration::from_secs(5)))?;
        assert_eq!(
            first.recv(&mut [0; 64])?,
            udp_header::REPLY.len(),
            "its own sender is answered again"
        );

        Ok(())
    }

    fn bound() -> io::Result<UdpSocket> {
        UdpSocket::bind("127.0.0.1:0")
    }
}
