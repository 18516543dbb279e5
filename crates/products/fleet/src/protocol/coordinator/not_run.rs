//! Why hosts are dropped and tasks have no result.

use std::fmt;

use super::Step;
use crate::protocol::message::FailCode;

/// Why a host takes part no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// Its connection is lost.
    Lost,
    /// Nothing arrived for too long.
    Silent,
    /// It missed the deadline of a step.
    Late(Step),
    /// It has no common version of the protocol.
    Version,
    /// It refused its plan or preflight.
    Refused(FailCode),
    /// A line was too long.
    Line,
    /// Too many lines were no message.
    Faults,
    /// The parts of a result contradict each other or are too long.
    Parts,
    /// It reported a task of which it is no end.
    ForeignTask,
    /// Its agent started again.
    Restarted,
    /// Its agent ended the run by itself.
    Ended,
}

/// Why a task has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotRun {
    /// One of its hosts took part no longer when the round began.
    HostOut,
    /// One of its hosts was dropped during the round.
    HostLost,
    /// One of its hosts was not armed in time.
    SlowControl,
    /// One of its hosts refused it.
    Refused(FailCode),
    /// Its client did not report in time.
    NoResult,
    /// The run ended.
    Cancelled,
}

impl NotRun {
    /// Another round may give a result.
    #[must_use]
    pub fn may_retry(self) -> bool {
        match self {
            Self::SlowControl | Self::NoResult => true,
            Self::Refused(code) => {
                matches!(code, FailCode::State | FailCode::Order | FailCode::Late)
            }
            Self::HostOut | Self::HostLost | Self::Cancelled => false,
        }
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late(Step::Hello) => f.write_str("no HELLO in time"),
            Self::Late(Step::Plan) => f.write_str("no answer to its plan in time"),
            Self::Late(Step::Preflight) => f.write_str("its paths were not examined in time"),
            Self::Late(Step::Clock) => f.write_str("its clock was not read in time"),
            Self::Late(_) => f.write_str("no answer in time"),
            Self::Refused(code) => write!(f, "refused: {code:?}"),
            Self::Lost => f.write_str("connection lost"),
            Self::Silent => f.write_str("silent"),
            Self::Version => f.write_str("no common version"),
            Self::Line => f.write_str("line too long"),
            Self::Faults => f.write_str("too many invalid lines"),
            Self::Parts => f.write_str("invalid parts of a result"),
            Self::ForeignTask => f.write_str("report about a task of other hosts"),
            Self::Restarted => f.write_str("agent started again"),
            Self::Ended => f.write_str("agent ended the run"),
        }
    }
}

impl fmt::Display for NotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(code) => write!(f, "refused: {code:?}"),
            Self::HostOut => f.write_str("host_out"),
            Self::HostLost => f.write_str("peer_lost"),
            Self::SlowControl => f.write_str("slow_control"),
            Self::NoResult => f.write_str("no_result"),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}
