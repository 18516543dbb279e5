//! Why hosts are dropped and tasks have no result.

use thiserror::Error;

use super::Step;
use crate::protocol::message::FailCode;

/// Why a host takes part no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DropReason {
    /// Its connection is lost.
    #[error("connection lost")]
    Lost,
    /// Nothing arrived for too long.
    #[error("silent")]
    Silent,
    /// It missed the deadline of a step.
    #[error("{}", late(*.0))]
    Late(Step),
    /// It has no common version of the protocol.
    #[error("no common version")]
    Version,
    /// It refused its plan or preflight.
    #[error("refused: {0:?}")]
    Refused(FailCode),
    /// A line was too long.
    #[error("line too long")]
    Line,
    /// Too many lines were no message.
    #[error("too many invalid lines")]
    Faults,
    /// The parts of a result contradict each other or are too long.
    #[error("invalid parts of a result")]
    Parts,
    /// It reported a task of which it is no end.
    #[error("report about a task of other hosts")]
    ForeignTask,
    /// Its agent started again.
    #[error("agent started again")]
    Restarted,
    /// Its agent ended the run by itself.
    #[error("agent ended the run")]
    Ended,
}

/// Why a task has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NotRun {
    /// One of its hosts took part no longer when the round began.
    #[error("host_out")]
    HostOut,
    /// One of its hosts was dropped during the round.
    #[error("peer_lost")]
    HostLost,
    /// The clock of one of its hosts is not known, so no start can be agreed with it.
    #[error("no_clock")]
    NoClock,
    /// One of its hosts was not armed in time.
    #[error("slow_control")]
    SlowControl,
    /// One of its hosts refused it.
    #[error("refused: {0:?}")]
    Refused(FailCode),
    /// Its client did not report in time.
    #[error("no_result")]
    NoResult,
    /// The run ended.
    #[error("cancelled")]
    Cancelled,
}

const fn late(step: Step) -> &'static str {
    match step {
        Step::Hello => "no HELLO in time",
        Step::Plan => "no answer to its plan in time",
        Step::Preflight => "its paths were not examined in time",
        Step::Clock => "its clock was not read in time",
        _ => "no answer in time",
    }
}
