//! Sends the probes and reads their answers, in a thread of its own.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linerate_native::wire::datagram::{DatagramHead, DatagramType, HEAD_LEN};
use linerate_sys::clock::{self, RealtimeOffset};
use linerate_sys::icmp_quote::QuotedDatagram;
use linerate_sys::poll::{Epoll, EventFd, Interest, Ready};
use linerate_sys::udp::{self, ErrorOrigin};
use linerate_sys::{scheduling, socket, sockopt};

use super::mpls;
use super::sockets::HopSockets;
use super::trace::{HopAnswer, HopProbe, HopTrace, OTHER_FLOWS};

/// The thread. It ends when this is dropped.
pub(super) struct HopTracer {
    is_stopped: Arc<AtomicBool>,
    wake: Arc<EventFd>,
    thread: Option<JoinHandle<(HopTrace, HopSockets)>>,
}

struct Worker {
    is_stopped: Arc<AtomicBool>,
    wake: Arc<EventFd>,
    epoll: Epoll,
    sockets: HopSockets,
    trace: HopTrace,
    offset: RealtimeOffset,
}

/// What a socket had.
enum Read {
    Nothing,
    /// Nothing that answers a probe.
    Other,
    Answer(HopAnswer),
}

/// Descriptors of a tracer: its sockets, that of the quotes, an event and the set of all.
pub(crate) const DESCRIPTORS: u32 = 1 + OTHER_FLOWS as u32 + 3;
const WAKE: u64 = u64::MAX;
const QUOTES: u64 = u64::MAX - 1;
/// Answers read per call.
const ANSWERS_PER_CALL: usize = 64;
/// Beginning of a quote: the head of the probe, and the extensions of the message behind it. RFC
/// 4884 section 5.5 pads the quote to 128 bytes; stacks of labels are a few bytes more.
const QUOTE_BYTES: usize = 512;
const UDP_HEAD_LEN: usize = 8;
/// Time to live of datagrams that are no probes, as Linux sets it.
const TTL_USUAL: u8 = 64;

impl HopTracer {
    /// Starts the thread with what `trace` knows of the path.
    ///
    /// # Errors
    /// When the system has no descriptor or thread left.
    pub(super) fn start(
        sockets: HopSockets,
        mut trace: HopTrace,
        measure_after: Duration,
    ) -> io::Result<Self> {
        let wake = Arc::new(EventFd::new()?);
        let epoll = Epoll::new()?;
        epoll.add(&wake, WAKE, Interest::READ)?;
        for (flow, fd) in (0..).zip(&sockets.fds) {
            epoll.add(fd, flow, Interest::READ)?;
        }
        if let Some(quotes) = &sockets.quotes {
            epoll.add(quotes, QUOTES, Interest::READ)?;
        }

        trace.begin_phase(clock::monotonic_ns() + measure_after.as_nanos() as u64);
        let is_stopped = Arc::<AtomicBool>::default();
        let worker = Worker {
            is_stopped: Arc::clone(&is_stopped),
            wake: Arc::clone(&wake),
            epoll,
            sockets,
            trace,
            offset: RealtimeOffset::read(),
        };
        let thread = thread::Builder::new()
            .name("hop-tracer".into())
            .spawn(move || worker.run())?;
        Ok(Self {
            is_stopped,
            wake,
            thread: Some(thread),
        })
    }

    /// Ends the thread; returns what it found, and the sockets. `None` when the thread failed.
    pub(super) fn finish(mut self) -> Option<(HopTrace, HopSockets)> {
        self.end()
    }

    fn end(&mut self) -> Option<(HopTrace, HopSockets)> {
        self.is_stopped.store(true, Ordering::Release);
        self.wake.signal();
        self.thread.take()?.join().ok()
    }
}

impl Drop for HopTracer {
    fn drop(&mut self) {
        self.end();
    }
}

impl Worker {
    fn run(mut self) -> (HopTrace, HopSockets) {
        // Beside a load a probe that leaves late meets another queue than the others of its round.
        let _ = scheduling::wake_soon();
        let mut events: Vec<Ready> = Vec::new();

        while !self.is_stopped.load(Ordering::Acquire) {
            let now_ns = clock::monotonic_ns();
            while let Some(probe) = self.trace.poll(now_ns) {
                self.send(probe);
            }

            let wait_ns = self.trace.next_ns().saturating_sub(clock::monotonic_ns());
            // An interrupted wait is repeated.
            let _ = self
                .epoll
                .wait(&mut events, Some(Duration::from_nanos(wait_ns)));
            self.offset.refresh();
            for event in &events {
                match event.token {
                    WAKE => drop(self.wake.drain()),
                    // Last: what an answer says of its hop decides whose quote it is.
                    QUOTES => {}
                    flow => self.receive(flow as usize),
                }
            }
            if events.iter().any(|event| event.token == QUOTES) {
                self.receive_quotes();
            }
        }

        if let Some(first) = self.sockets.fds.first() {
            let _ = sockopt::set_ttl(first, TTL_USUAL);
        }
        (self.trace, self.sockets)
    }

    /// A probe that the kernel refuses stays without an answer.
    fn send(&self, probe: HopProbe) {
        let Some(fd) = self.sockets.fds.get(probe.flow) else {
            return;
        };
        let head = self.sockets.id.head(
            DatagramType::SizeProbe,
            probe.sequence,
            clock::monotonic_ns(),
        );
        let mut datagram = [0; HEAD_LEN];
        head.encode_into(&mut datagram);

        let _ = sockopt::set_ttl(fd, probe.ttl);
        // An answer to an earlier probe is the error of the next call, which sends nothing and
        // clears it: of four hops two had no probe.
        let _ = udp::send(fd, &datagram).or_else(|_| udp::send(fd, &datagram));
    }

    fn receive(&mut self, flow: usize) {
        for _ in 0..ANSWERS_PER_CALL {
            let read = match self.read_error(flow) {
                Read::Nothing => self.read_reply(flow),
                read => read,
            };
            match read {
                Read::Nothing => return,
                Read::Other => {}
                Read::Answer(answer) => self.trace.on_answer(answer),
            }
        }
    }

    /// The oldest entry of the error queue.
    fn read_error(&self, flow: usize) -> Read {
        let mut buffer = [0; QUOTE_BYTES];
        let fd = self.sockets.fds.get(flow);
        let Some(Ok(error)) = fd.map(|fd| udp::take_error(fd, &mut buffer)) else {
            return Read::Nothing;
        };
        let (ErrorOrigin::Icmp | ErrorOrigin::Icmp6, Some(from)) = (error.origin, error.offender)
        else {
            return Read::Other;
        };

        let sequence = match DatagramHead::decode(error.quoted) {
            Some(head) if head.id() == self.sockets.id => Some(head.sequence),
            // The quote ends with the UDP header.
            None if error.quoted.len() < HEAD_LEN => None,
            _ => return Read::Other,
        };
        let extensions = error
            .extensions_at
            .and_then(|start| error.quoted.get(start..));

        Read::Answer(HopAnswer {
            flow,
            sequence,
            from,
            is_end: error.to.is_some_and(|to| to.ip() == from),
            received_ns: error.arrival_ns(self.offset, clock::monotonic_ns()),
            mpls_labels: extensions.map(mpls::labels).unwrap_or_default(),
        })
    }

    /// Headers of probes as routers quote them. The socket receives the errors of the whole host.
    fn receive_quotes(&mut self) {
        let Some(quotes) = &self.sockets.quotes else {
            return;
        };
        let mut buffer = [0; QUOTE_BYTES];
        for _ in 0..ANSWERS_PER_CALL {
            match quotes.receive(&mut buffer) {
                Ok(Some((from, Some(quote)))) => {
                    if let Some(sent) = self.sent_tos(&quote) {
                        self.trace.on_quote(from, sent, quote.tos);
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// TOS byte of the flow of the probe that is quoted; `None` of other datagrams.
    fn sent_tos(&self, quote: &QuotedDatagram<'_>) -> Option<u8> {
        let (ports, datagram) = quote.udp.split_first_chunk::<UDP_HEAD_LEN>()?;
        let [from, to] = [[ports[0], ports[1]], [ports[2], ports[3]]].map(u16::from_be_bytes);
        let remote = SocketAddr::new(quote.to, to);
        // Ports can be guessed: a quote that ends before the random number shows nothing.
        DatagramHead::decode(datagram).filter(|head| head.id() == self.sockets.id)?;

        let mut flows = self.sockets.fds.iter().zip(&self.sockets.tos);
        let (_, tos) = flows.find(|(fd, _)| {
            let is_local = socket::local_addr(fd).is_ok_and(|local| local.port() == from);
            is_local && socket::peer_addr(fd).is_ok_and(|peer| peer == remote)
        })?;
        *tos
    }

    /// A reply of the other end itself.
    fn read_reply(&self, flow: usize) -> Read {
        let Some(fd) = self.sockets.fds.get(flow) else {
            return Read::Nothing;
        };
        let mut buffer = [0; 2 * HEAD_LEN];
        let message = match udp::recv_message(fd, &mut buffer) {
            Ok(message) => message,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Read::Nothing,
            // The error of an earlier probe, which the queue has as well.
            Err(_) => return Read::Other,
        };
        let head = DatagramHead::decode(message.data).filter(|head| {
            (head.datagram_type, head.id()) == (DatagramType::SizeAnswer, self.sockets.id)
        });

        match (head, socket::peer_addr(fd)) {
            (Some(head), Ok(end)) => Read::Answer(HopAnswer {
                flow,
                sequence: Some(head.sequence),
                from: end.ip(),
                is_end: true,
                received_ns: message.arrival_ns(self.offset, clock::monotonic_ns()),
                mpls_labels: Vec::new(),
            }),
            _ => Read::Other,
        }
    }
}
