//! Codes and messages of iperf3 for errors of the engine.

use linerate_iperf3::wire::ErrorCode;
use linerate_iperf3::wire::server::ServerInput;
use linerate_model::Failure;
use linerate_model::service::RefusalReason;
use linerate_sys::OsError;

use crate::error::{EngineError, Operation};

impl From<&EngineError> for ErrorCode {
    fn from(error: &EngineError) -> Self {
        match error {
            EngineError::System { operation, .. } | EngineError::Resolve { operation, .. } => {
                match operation {
                    Operation::AcceptStream => Self::StreamAccept,
                    Operation::Buffer => Self::SetBuf,
                    Operation::Congestion => Self::SetCongestion,
                    Operation::CreateThread => Self::PthreadCreate,
                    Operation::DontFragment => Self::SetDontFragment,
                    Operation::Init => Self::InitTest,
                    Operation::InitStream => Self::InitStream,
                    Operation::Keepalive => Self::SetCntlKa,
                    Operation::KeepaliveCount => Self::SetCntlKaCount,
                    Operation::KeepaliveIdle => Self::SetCntlKaKeepIdle,
                    Operation::KeepaliveInterval => Self::SetCntlKaInterval,
                    Operation::Listen => Self::Listen,
                    Operation::ListenStream => Self::StreamListen,
                    Operation::Mss => Self::SetMss,
                    Operation::NoDelay => Self::SetNoDelay,
                    Operation::OpenFile => Self::File,
                    Operation::PinCpu => Self::Affinity,
                    Operation::Poll => Self::Select,
                    Operation::ReadStream => Self::StreamRead,
                    Operation::Tos => Self::SetTos,
                    Operation::TrafficClass => Self::SetCos,
                    Operation::UserTimeout => Self::SetUserTimeout,
                    Operation::WriteStream => Self::StreamWrite,
                }
            }
            EngineError::Access(_) => Self::InitTest,
            EngineError::BufferSize => Self::SetBuf2,
            EngineError::KeepalivePeriod => Self::CntlKa,
            EngineError::Idle => Self::NoMsg,
            EngineError::Refused(RefusalReason::Streams) => Self::NumStreams,
            EngineError::Refused(RefusalReason::Duration) => Self::MaxServerTestDurationExceeded,
            EngineError::Refused(RefusalReason::Bytes | RefusalReason::Rate) => Self::TotalRate,
            EngineError::Refused(RefusalReason::Address) => Self::AuthTest,
            EngineError::Refused(_) => Self::AccessDenied,
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let code = ErrorCode::from(&error);
        match error {
            // Its text names the file and needs no other.
            EngineError::Access(error) => Self::error(code.number(), error.to_string()),
            error => code.failure(error.cause().as_deref()),
        }
    }
}

/// The input of a server's machine for an error of its test. A refusal without an error of its own
/// is "busy".
pub(crate) fn input(error: &EngineError) -> ServerInput {
    match ErrorCode::from(error) {
        ErrorCode::AccessDenied => ServerInput::Busy,
        code => ServerInput::Failed {
            code,
            errno: error.errno(),
            cause: error.cause(),
        },
    }
}

/// Turns an error of the operating system into a failure with this code.
pub(crate) fn failed(code: ErrorCode) -> impl Fn(OsError) -> Failure {
    move |error| code.failure(Some(&error.text()))
}
