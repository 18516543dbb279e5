//! What the names of the lab mean to a reader.

pub(super) use crate::number::counted;

use linerate_model::http::{Arrivals, CellVerdict, CheckStatus, ErrorClass, Flag, Phase, Side, VerdictClass};

/// The letter of a kind of bottleneck in a matrix, and its meaning.
pub(super) fn letter(class: VerdictClass) -> (char, &'static str) {
    match class {
        VerdictClass::Invalid => ('x', "invalid, says nothing"),
        VerdictClass::ClientLimit => ('L', "limit of the client's host"),
        VerdictClass::ServerLimit => ('S', "limit of the server's queues or descriptors"),
        VerdictClass::NetworkBound => ('N', "network-bound"),
        VerdictClass::NetworkLoss => ('n', "network loses segments"),
        VerdictClass::CpuBoundTotal => ('C', "all processors of the server busy"),
        VerdictClass::CpuBoundCore => ('c', "one processor of the server busy"),
        VerdictClass::QueueingBound => ('Q', "queueing, only latency grows"),
        VerdictClass::ConcurrencyLimited => ('f', "too few requests in flight"),
        VerdictClass::ServerInternal => ('i', "server waits for itself"),
        VerdictClass::NotSaturated => ('o', "offered rate met"),
        VerdictClass::Unknown => ('u', "unknown"),
    }
}

/// The letters of a verdict: the first class, and those that fit as well after a `+`.
pub(super) fn letters(verdict: &CellVerdict) -> String {
    let mut letters = String::from(letter(verdict.primary.class).0);
    if !verdict.contributing.is_empty() {
        letters.push('+');
        letters.extend(verdict.contributing.iter().map(|judgement| letter(judgement.class).0));
    }
    letters
}

/// The word for a part of the experiment.
pub(super) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Baseline => "baseline",
        Phase::Payload => "payload",
        Phase::Matrix => "matrix",
        Phase::Idle => "idle",
        Phase::LowRate => "low rate",
        Phase::Active => "active",
    }
}

/// Whose a kind of failure is.
pub(super) fn belongs_to(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::ConnectRefused => "server: down, or nobody listens there",
        ErrorClass::ConnectTimeout => "server or path: accept or SYN queue full, firewall, conntrack full",
        ErrorClass::Unreachable => "path: no way there, or a local firewall",
        ErrorClass::AddrNotAvail => "client limit: local ports",
        ErrorClass::FdLimit => "client limit: descriptors",
        ErrorClass::NoBuffers => "client limit: socket memory",
        ErrorClass::ResetBeforeAnswer | ErrorClass::ResetMidAnswer => "server: a limit or a crash",
        ErrorClass::ResetIdle => "server: a limit, a crash or its idle timeout",
        ErrorClass::Eof => "server: its keep-alive limit",
        ErrorClass::Timeout => "server or path: queueing or a stall",
        ErrorClass::Unsent => "offered rate: more than can be sustained",
        ErrorClass::Status3xx => "application: redirections are not followed",
        ErrorClass::Status4xx | ErrorClass::Status5xx => "application",
        ErrorClass::Protocol => "broken server or generator",
        ErrorClass::Tls => "TLS",
    }
}

/// The name of a flag as in JSON, and its meaning.
fn flag_words(flag: Flag) -> (&'static str, &'static str) {
    match flag {
        Flag::GeneratorLate => (
            "generator-late",
            "the generator itself sent late although a connection was free (99th percentile above 1 ms or a tenth of \
             the median latency), so latencies are in part its own",
        ),
        Flag::Unsteady => ("unsteady", "the two halves of the window differ by more than 5 % in throughput"),
        Flag::Overload => ("overload", "the offered rate cannot be sustained; the run ended early"),
        Flag::Little => (
            "little",
            "throughput times mean latency is not the number of connections (Little's law, within 10 %); some \
             connections idled, or something was counted wrongly",
        ),
        Flag::DirtyStart => ("dirty-start", "the hosts had not come to rest when it began"),
        Flag::BreakerTripped => (
            "breaker-tripped",
            "too many failures, or the server asked for a pause (Retry-After), so the run was ended",
        ),
        Flag::ControlLost => ("control-lost", "the control channel broke, so the server's figures are incomplete"),
        Flag::Interrupted => ("interrupted", "the user ended it"),
    }
}

/// The name of a flag, as in JSON.
pub(super) fn flag_name(flag: Flag) -> &'static str {
    flag_words(flag).0
}

/// What a flag means, in a sentence.
pub(super) fn flag(flag: Flag) -> String {
    let (name, meaning) = flag_words(flag);
    format!("{name}: {meaning}")
}

/// The word for an outcome, as it is printed.
pub(super) fn status(status: CheckStatus) -> &'static str {
    match status {
        CheckStatus::Pass => "PASS",
        CheckStatus::Info => "INFO",
        CheckStatus::Warn => "WARN",
        CheckStatus::Fail => "FAIL",
        CheckStatus::Unknown => "UNKNOWN",
    }
}

/// The word for an end.
pub(super) fn side(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

/// How due times are spread.
pub(super) fn arrivals(arrivals: Arrivals) -> &'static str {
    match arrivals {
        Arrivals::Uniform => "uniform",
        Arrivals::Poisson => "poisson",
    }
}
