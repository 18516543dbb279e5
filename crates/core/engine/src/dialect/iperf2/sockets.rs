//! Sockets of connections and flows: what is set on them and what is known of them.

use std::net::IpAddr;
use std::os::fd::AsFd;

use linerate_model::stream::{SocketFacts, StreamFacts};
use linerate_model::{StreamRole, TestSpec, Transport};
use linerate_sys::socket::Protocol;
use linerate_sys::{OsError, clock, interfaces, sockopt, tcp_info};

pub(super) use crate::data::socket::effective;

/// The kernel's protocol of this transport.
pub(super) fn protocol(transport: Transport) -> Protocol {
    match transport {
        Transport::Udp => Protocol::Udp,
        Transport::Tcp | Transport::Sctp => Protocol::Tcp,
    }
}

/// Receive buffer of a flow when the user named none: a burst of datagrams must fit until the
/// reader is scheduled.
const UDP_RECEIVE_BUFFER_BYTES: u32 = 16 * 1024 * 1024;

/// Options that are set before the connection stands. A sender's window is its send buffer, a
/// receiver's its receive buffer. Options the system refuses are returned as text, and the test
/// continues without them.
pub(super) fn prepare(fd: impl AsFd, spec: &TestSpec, sends: bool, receives: bool) -> Vec<String> {
    let mut refused = Vec::new();
    let mut note = |outcome: Result<(), OsError>, what: &str| {
        if let Err(error) = outcome {
            refused.push(format!("{what} failed: {}", error.text()));
        }
    };

    let tuning = &spec.socket;
    if let Some(bytes) = tuning.window_bytes {
        if sends {
            note(
                sockopt::SO_SNDBUF.set(&fd, bytes),
                "setting the send buffer",
            );
        }

        if receives {
            note(
                sockopt::SO_RCVBUF.set(&fd, bytes),
                "setting the receive buffer",
            );
        }
    }

    if tuning.tos != 0 {
        note(sockopt::set_tos(&fd, tuning.tos), "setting the TOS byte");
    }

    if spec.transport == Transport::Tcp {
        prepare_stream(&fd, spec, &mut note);
    } else if let Some(ttl) = spec.workload.multicast_ttl {
        note(sockopt::set_multicast_ttl(&fd, ttl), "setting the TTL");
    }

    if spec.workload.without_routing {
        note(sockopt::SO_DONTROUTE.set(&fd, true), "setting SO_DONTROUTE");
    }

    if let Some(rate_bps) = spec.pacing.fq_rate_bps {
        note(
            sockopt::set_max_pacing_rate(&fd, rate_bps / 8),
            "setting the pacing rate",
        );
    }

    refused
}

fn prepare_stream(fd: impl AsFd, spec: &TestSpec, note: &mut dyn FnMut(Result<(), OsError>, &str)) {
    let tuning = &spec.socket;
    let workload = &spec.workload;
    if let Some(mss_bytes) = tuning.mss_bytes {
        note(
            sockopt::TCP_MAXSEG.set(&fd, mss_bytes),
            "setting the segment size",
        );
    }

    if let Some(name) = &tuning.congestion {
        let what = format!("Attempt to set '{name}' congestion control");
        note(sockopt::set_congestion(&fd, name), &what);
    }

    if let Some(bytes) = workload.unsent_limit_bytes {
        note(
            sockopt::TCP_NOTSENT_LOWAT.set(&fd, bytes),
            "setting the prefetch limit",
        );
    }

    if let Some(bytes) = workload.window_clamp_bytes {
        note(
            sockopt::TCP_WINDOW_CLAMP.set(&fd, bytes),
            "setting the window clamp",
        );
    }

    if tuning.no_delay {
        note(sockopt::TCP_NODELAY.set(&fd, true), "setting TCP_NODELAY");
    }
}

/// Options of a connected socket whose data are about to flow. A sender with a rate gets no pacing
/// in the kernel: what that holds back would be measured as delay of the path.
pub(super) fn tune(fd: impl AsFd, spec: &TestSpec, role: StreamRole) {
    if (spec.transport, role) != (Transport::Udp, StreamRole::Receiver) {
        return;
    }

    if spec.socket.window_bytes.is_none() {
        // What is not granted shows up as loss that is counted; nothing else depends on it.
        let _ = sockopt::force_receive_buffer(&fd, UDP_RECEIVE_BUFFER_BYTES);
    }

    // Without it datagrams count as arrived when they are read.
    let _ = sockopt::SO_TIMESTAMPNS.set(&fd, true);
    // Coalescing is invisible to the peer and to the results: every datagram's number is still
    // read.
    let _ = sockopt::UDP_GRO.set(&fd, true);
}

/// A socket before it is used.
pub(super) fn facts(fd: impl AsFd, transport: Transport) -> SocketFacts {
    let is_tcp = transport == Transport::Tcp;

    SocketFacts {
        effective: effective(&fd, transport),
        mss_bytes: is_tcp.then(|| sockopt::TCP_MAXSEG.get(&fd).ok()).flatten(),
    }
}

/// A connected socket.
pub(super) fn stream_facts(fd: impl AsFd, number: u32, transport: Transport) -> StreamFacts {
    use std::os::fd::AsRawFd;

    let info = (transport == Transport::Tcp)
        .then(|| tcp_info::tcp_info(&fd).ok())
        .flatten();

    StreamFacts {
        number,
        descriptor: u32::try_from(fd.as_fd().as_raw_fd()).ok(),
        opened_at_unix_us: Some(clock::unix_ns() / 1000),
        initial_cwnd_bytes: info.map(|info| info.cwnd_bytes()),
        mss_bytes: info.map(|info| info.snd_mss_bytes),
        initial_rtt_us: info.map(|info| info.rtt_us),
        ..StreamFacts::default()
    }
}

/// The device of the address that was looked up last: a lookup takes longer than a connection on
/// loopback, and all connections usually begin at one address.
#[derive(Default)]
pub(super) struct DeviceCache {
    last: Option<(IpAddr, Option<String>)>,
}

impl DeviceCache {
    pub(super) fn device_of(&mut self, address: IpAddr) -> Option<String> {
        match &self.last {
            Some((known, device)) if *known == address => device.clone(),
            _ => {
                let device = interfaces::device_of(address);
                self.last = Some((address, device.clone()));
                device
            }
        }
    }
}
