//! Errors of the engine. A dialect maps them to its codes and messages.

use linerate_model::service::RefusalReason;
use linerate_model::{Failure, FailureKind};
use linerate_sys::OsError;
use linerate_sys::socket::ResolveError;

use crate::server::access::AccessError;

/// Why a test or a server failed on this end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    #[error("unable to {operation}: {}", .source.text())]
    System {
        operation: Operation,
        source: OsError,
    },
    /// A host name has no address.
    #[error("unable to {operation}")]
    Resolve {
        operation: Operation,
        source: Option<ResolveError>,
    },
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

/// Failed operation of the operating system.
#[derive(Debug, Clone, Copy, thiserror::Error)]
pub(crate) enum Operation {
    #[error("accept stream connection")]
    AcceptStream,
    #[error("set socket buffer size")]
    Buffer,
    #[error("set TCP_CONGESTION")]
    Congestion,
    #[error("create thread")]
    CreateThread,
    #[error("set IP Do-Not-Fragment flag")]
    DontFragment,
    #[error("initialize")]
    Init,
    #[error("initialize stream")]
    InitStream,
    #[error("set SO_KEEPALIVE")]
    Keepalive,
    #[error("set TCP_KEEPCNT")]
    KeepaliveCount,
    #[error("set TCP_KEEPIDLE")]
    KeepaliveIdle,
    #[error("set TCP_KEEPINTVL")]
    KeepaliveInterval,
    #[error("start listener for connections")]
    Listen,
    #[error("start stream listener")]
    ListenStream,
    #[error("set TCP_MAXSEG")]
    Mss,
    #[error("set TCP_NODELAY")]
    NoDelay,
    #[error("open file")]
    OpenFile,
    #[error("set CPU affinity")]
    PinCpu,
    #[error("wait for events")]
    Poll,
    #[error("read from stream socket")]
    ReadStream,
    #[error("set IP TOS")]
    Tos,
    #[error("set IPv6 traffic class")]
    TrafficClass,
    #[error("set TCP_USER_TIMEOUT")]
    UserTimeout,
    #[error("write to stream socket")]
    WriteStream,
}

impl Operation {
    /// The failure of this operation.
    pub(crate) fn failed(self) -> impl Fn(OsError) -> EngineError {
        move |source| EngineError::System {
            operation: self,
            source,
        }
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

/// A failure of this end without a code.
#[expect(
    clippy::needless_pass_by_value,
    reason = "errors are passed by `map_err`"
)]
pub(crate) fn failure(message: impl ToString) -> Failure {
    Failure::new(FailureKind::Error, message.to_string())
}
