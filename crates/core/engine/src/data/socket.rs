//! Options of data sockets, the same for both ends.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use linerate_model::stream::EffectiveOptions;
use linerate_model::{Event, Flow, Stream, StreamId, StreamRole, TestSpec, Transport};
use linerate_sys::socket::{self, Protocol};
use linerate_sys::{Result as OsResult, sockopt};

use crate::data::worker::{kernel_pacing_bytes_per_s, paces_below_block};
use crate::error::{EngineError, Operation};
use crate::reporter::Reporter;

/// The kernel's protocol of a test's data sockets.
pub(crate) fn protocol(spec: &TestSpec) -> Protocol {
    match spec.transport {
        Transport::Tcp if spec.mptcp => Protocol::Mptcp,
        Transport::Tcp => Protocol::Tcp,
        Transport::Udp => Protocol::Udp,
        Transport::Sctp => Protocol::Sctp,
    }
}

/// Default receive buffer: a burst of coalesced buffers must fit until the reader is
/// scheduled. The kernel caps it at `net.core.rmem_max` for ordinary users.
const UDP_RECEIVE_BUFFER_BYTES: u32 = 64 * 1024 * 1024;

/// Options that work before and after the connection is made. Both ends set them: a server's
/// accepted sockets do not inherit the client's options.
pub(crate) fn tune(
    fd: impl AsFd,
    spec: &TestSpec,
    snd_timeout: Option<Duration>,
    reporter: &mut Reporter<'_>,
) -> Result<(), EngineError> {
    let tuning = &spec.socket;
    if spec.transport != Transport::Udp {
        tune_stream(&fd, spec, snd_timeout)?;
    }

    if let Some(bytes) = tuning.window_bytes {
        set_window(&fd, bytes)?;
    }

    if spec.transport == Transport::Udp {
        tune_datagram(&fd, spec, reporter)?;
    }

    if tuning.tos != 0 {
        let operation = if socket::is_ipv4_socket(&fd) {
            Operation::Tos
        } else {
            Operation::TrafficClass
        };
        sockopt::set_tos(&fd, tuning.tos).map_err(operation.failed())?;
    }

    smooth_writes(&fd, spec);
    if let Some(rate_bps) = spec.pacing.fq_rate_bps
        && sockopt::set_max_pacing_rate(&fd, rate_bps / 8).is_err()
    {
        reporter.emit(&Event::Warning("Unable to set socket pacing".into()));
    }

    Ok(())
}

/// Lets the kernel spread the bursts of a paced stream.
fn smooth_writes(fd: impl AsFd, spec: &TestSpec) {
    if let Some(limit) = kernel_pacing_bytes_per_s(spec) {
        // Without it the writes leave as they come.
        let _ = sockopt::set_max_pacing_rate(&fd, limit);
    }
}

fn tune_stream(
    fd: impl AsFd,
    spec: &TestSpec,
    snd_timeout: Option<Duration>,
) -> Result<(), EngineError> {
    let tuning = &spec.socket;
    if spec.transport == Transport::Sctp {
        sockopt::SCTP_NODELAY
            .set(&fd, tuning.no_delay)
            .map_err(Operation::NoDelay.failed())?;
        return Ok(());
    }

    // Small paced writes would wait for acknowledgements of earlier ones and leave in bursts.
    if tuning.no_delay || paces_below_block(spec) {
        sockopt::TCP_NODELAY
            .set(&fd, true)
            .map_err(Operation::NoDelay.failed())?;
    }

    if let Some(mss_bytes) = tuning.mss_bytes {
        sockopt::TCP_MAXSEG
            .set(&fd, mss_bytes)
            .map_err(Operation::Mss.failed())?;
    }

    if let Some(timeout) = snd_timeout {
        limit_idle_time(&fd, timeout).map_err(Operation::UserTimeout.failed())?;
    }

    Ok(())
}

/// A window the kernel would silently shrink is an error: the test would measure something else
/// than requested.
fn set_window(fd: impl AsFd, bytes: u32) -> Result<(), EngineError> {
    sockopt::SO_SNDBUF
        .set(&fd, bytes)
        .map_err(Operation::Buffer.failed())?;
    sockopt::SO_RCVBUF
        .set(&fd, bytes)
        .map_err(Operation::Buffer.failed())?;
    let granted_send = sockopt::SO_SNDBUF
        .get(&fd)
        .map_err(Operation::Buffer.failed())?;
    let granted_receive = sockopt::SO_RCVBUF
        .get(&fd)
        .map_err(Operation::Buffer.failed())?;
    if granted_send < bytes || granted_receive < bytes {
        return Err(EngineError::BufferSize);
    }

    Ok(())
}

fn tune_datagram(
    fd: impl AsFd,
    spec: &TestSpec,
    reporter: &mut Reporter<'_>,
) -> Result<(), EngineError> {
    if spec.socket.window_bytes.is_none() {
        // What is not granted shows up as loss that the receiver counts; nothing else depends on
        // it.
        let _ = sockopt::force_receive_buffer(&fd, UDP_RECEIVE_BUFFER_BYTES);
    }

    let len = spec.block_len_bytes;
    let grow = |what: &str, granted: u32, reporter: &mut Reporter<'_>| {
        let wanted = len + 1024;
        reporter.emit(&Event::Warning(format!(
            "Block size {len} > {what} socket buffer size {granted}"
        )));
        reporter.emit(&Event::Warning(format!(
            "Increasing socket buffer size to {wanted}"
        )));
        wanted
    };

    let granted = sockopt::SO_SNDBUF
        .get(&fd)
        .map_err(Operation::Buffer.failed())?;
    if granted < len {
        let wanted = grow("sending", granted, reporter);
        sockopt::SO_SNDBUF
            .set(&fd, wanted)
            .map_err(Operation::Buffer.failed())?;
    }

    let granted = sockopt::SO_RCVBUF
        .get(&fd)
        .map_err(Operation::Buffer.failed())?;
    if granted < len {
        let wanted = grow("receiving", granted, reporter);
        sockopt::SO_RCVBUF
            .set(&fd, wanted)
            .map_err(Operation::Buffer.failed())?;
    }

    // Coalescing is invisible to the peer and to the results: every datagram's number is still
    // read. It is not to the kernel's counters, which count a dropped buffer once, however many
    // datagrams are in it.
    let _ = sockopt::UDP_GRO.set(&fd, !spec.want_peer_facts);
    if spec.socket.dont_fragment && socket::is_ipv4_socket(&fd) {
        sockopt::set_dont_fragment(&fd, true).map_err(Operation::DontFragment.failed())?;
    }

    Ok(())
}

/// Selects the congestion control algorithm; TCP only.
pub(crate) fn set_congestion(fd: impl AsFd, spec: &TestSpec) -> Result<(), EngineError> {
    match (&spec.socket.congestion, spec.transport) {
        (Some(name), Transport::Tcp) => {
            sockopt::set_congestion(&fd, name).map_err(Operation::Congestion.failed())
        }
        _ => Ok(()),
    }
}

/// A connected data socket as the report shows it.
pub(crate) fn describe(
    fd: &OwnedFd,
    id: StreamId,
    spec: &TestSpec,
    role: StreamRole,
    flow: Flow,
) -> OsResult<Stream> {
    let effective = effective(fd, spec.transport);
    let local = socket::local_addr(fd)?;
    let remote = socket::peer_addr(fd)?;
    let mut stream = Stream::new(id, role, flow, local, remote);
    stream.effective = effective;

    Ok(stream)
}

/// Options that the kernel has granted.
pub(crate) fn effective(fd: impl AsFd, transport: Transport) -> EffectiveOptions {
    EffectiveOptions {
        send_buffer_bytes: sockopt::SO_SNDBUF.get(&fd).ok(),
        receive_buffer_bytes: sockopt::SO_RCVBUF.get(&fd).ok(),
        congestion: (transport == Transport::Tcp)
            .then(|| sockopt::congestion(&fd).ok())
            .flatten(),
    }
}

/// Breaks a connection whose peer acknowledges nothing for this long (`TCP_USER_TIMEOUT`, tcp(7)).
pub(crate) fn limit_idle_time(fd: impl AsFd, timeout: Duration) -> OsResult<()> {
    sockopt::TCP_USER_TIMEOUT.set(&fd, u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX))
}
