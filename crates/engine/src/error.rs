//! Errors of the engine. A dialect maps them to its codes and messages.

use linerate_model::service::RefusalReason;
use linerate_sys::OsError;
use linerate_sys::socket::ResolveError;

use crate::server::access::AccessError;

/// Why a test or a server failed on this end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    #[error("unable to {}: {}", .operation.text(), .source.text())]
    System { operation: Operation, source: OsError },
    /// A host name has no address.
    #[error("unable to {}", .operation.text())]
    Resolve { operation: Operation, source: Option<ResolveError> },
    /// A list of addresses cannot be used.
    #[error("{0}")]
    Access(#[from] AccessError),
    /// The kernel granted smaller socket buffers than requested.
    #[error("socket buffer size not set correctly")]
    BufferSize,
    /// The keepalive retries do not fit into the idle time.
    #[error("keepalive period is shorter than its retries")]
    KeepalivePeriod,
    /// Nothing arrived for the receive timeout, or the peer made no progress.
    #[error("idle timeout for receiving data")]
    Idle,
    /// A rule of the server.
    #[error("{0}")]
    Refused(RefusalReason),
}

/// What the operating system was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    AcceptStream,
    Buffer,
    Congestion,
    CreateThread,
    DontFragment,
    Init,
    InitStream,
    Keepalive,
    KeepaliveCount,
    KeepaliveIdle,
    KeepaliveInterval,
    Listen,
    ListenStream,
    Mss,
    NoDelay,
    OpenFile,
    PinCpu,
    Poll,
    ReadStream,
    Tos,
    TrafficClass,
    UserTimeout,
    WriteStream,
}

impl Operation {
    fn text(self) -> &'static str {
        match self {
            Self::AcceptStream => "accept stream connection",
            Self::Buffer => "set socket buffer size",
            Self::Congestion => "set TCP_CONGESTION",
            Self::CreateThread => "create thread",
            Self::DontFragment => "set IP Do-Not-Fragment flag",
            Self::Init => "initialize",
            Self::InitStream => "initialize stream",
            Self::Keepalive => "set SO_KEEPALIVE",
            Self::KeepaliveCount => "set TCP_KEEPCNT",
            Self::KeepaliveIdle => "set TCP_KEEPIDLE",
            Self::KeepaliveInterval => "set TCP_KEEPINTVL",
            Self::Listen => "start listener for connections",
            Self::ListenStream => "start stream listener",
            Self::Mss => "set TCP_MAXSEG",
            Self::NoDelay => "set TCP_NODELAY",
            Self::OpenFile => "open file",
            Self::PinCpu => "set CPU affinity",
            Self::Poll => "wait for events",
            Self::ReadStream => "read from stream socket",
            Self::Tos => "set IP TOS",
            Self::TrafficClass => "set IPv6 traffic class",
            Self::UserTimeout => "set TCP_USER_TIMEOUT",
            Self::WriteStream => "write to stream socket",
        }
    }

    /// The failure of this operation.
    pub(crate) fn failed(self) -> impl Fn(OsError) -> EngineError {
        move |source| EngineError::System { operation: self, source }
    }
}

impl EngineError {
    /// The operating system's error number, 0 without one.
    pub(crate) fn errno(&self) -> i32 {
        match self {
            Self::System { source, .. } => source.errno().unwrap_or(0),
            _ => 0,
        }
    }

    /// The text of the operating system or the resolver.
    pub(crate) fn cause(&self) -> Option<String> {
        match self {
            Self::System { source, .. } => Some(source.text()),
            Self::Resolve { source, .. } => source.as_ref().map(ToString::to_string),
            _ => None,
        }
    }
}
