//! Labels: the names of the lab in plain words.

pub(super) use linerate_document::number::counted;

use linerate_model::http::{CellRun, CellVerdict, ErrorClass, Flag, Phase, RunState, VerdictClass};
use linerate_model::stored_name;

/// The letter of a kind of bottleneck in a matrix, and its meaning.
pub(super) fn letter(class: VerdictClass) -> (char, &'static str) {
    match class {
        VerdictClass::Invalid => ('x', "invalid"),
        VerdictClass::ClientLimit => ('L', "limit of the client's host"),
        VerdictClass::ServerLimit => ('S', "limit of the server's queues or descriptors"),
        VerdictClass::NetworkBound => ('N', "network-bound"),
        VerdictClass::NetworkLoss => ('n', "network loses segments"),
        VerdictClass::OtherPrograms => ('P', "other programs fill the CPUs"),
        VerdictClass::CpuBoundTotal => ('C', "all CPUs of the server busy"),
        VerdictClass::CpuBoundCore => ('c', "one CPU of the server busy"),
        VerdictClass::QueueingBound => ('Q', "queueing, only latency grows"),
        VerdictClass::ConcurrencyLimited => ('f', "too few requests in flight"),
        VerdictClass::ServerInternal => ('i', "server waits for itself"),
        VerdictClass::NotSaturated => ('o', "offered rate met"),
        _ => ('u', "unknown"),
    }
}

/// The letters of a verdict: the first class, and those that fit as well after a `+`.
pub(super) fn letters(verdict: &CellVerdict) -> String {
    let mut letters = String::from(letter(verdict.primary.class).0);
    if !verdict.contributing.is_empty() {
        letters.push('+');
        letters.extend(
            verdict
                .contributing
                .iter()
                .map(|judgement| letter(judgement.class).0),
        );
    }

    letters
}

/// `aborted: interrupted`; `None` for a finished run.
pub(super) fn ending(run: &CellRun) -> Option<String> {
    let reason = run.reason.as_deref().unwrap_or("no reason given");
    (run.state != RunState::Done).then(|| format!("{}: {reason}", stored_name(run.state)))
}

/// The words for a part of the experiment.
pub(super) fn phase(phase: Phase) -> String {
    stored_name(phase).replace('_', " ")
}

/// Whose a kind of failure is.
pub(super) fn belongs_to(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::ConnectRefused => {
            "server: connection refused (down, or no listener on this port)"
        }
        ErrorClass::ConnectTimeout => {
            "server or path: accept or SYN queue full, firewall, conntrack full"
        }
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

/// A limit as a phrase.
pub(super) fn limit(class: VerdictClass) -> &'static str {
    match class {
        VerdictClass::Invalid => "not valid",
        VerdictClass::ClientLimit => "this host",
        VerdictClass::ServerLimit => "the server's queues or descriptors",
        VerdictClass::NetworkBound => "the link is full",
        VerdictClass::NetworkLoss => "the path loses segments",
        VerdictClass::OtherPrograms => "other programs fill the CPUs",
        VerdictClass::CpuBoundTotal => "all CPUs of the server are busy",
        VerdictClass::CpuBoundCore => "one CPU of the server is busy",
        VerdictClass::QueueingBound => "a queue: more connections only wait longer",
        VerdictClass::ConcurrencyLimited => "too few requests at the same time",
        VerdictClass::ServerInternal => "the server waits for itself",
        VerdictClass::NotSaturated => "none, the offered rate was met",
        _ => "not known",
    }
}

/// A kind of failure as a phrase.
pub(super) fn error(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::ConnectRefused => "connection refused",
        ErrorClass::ConnectTimeout => "connect timeout",
        ErrorClass::Unreachable => "unreachable",
        ErrorClass::AddrNotAvail => "no local port",
        ErrorClass::FdLimit => "no descriptor",
        ErrorClass::NoBuffers => "no socket memory",
        ErrorClass::ResetBeforeAnswer => "reset before the response",
        ErrorClass::ResetMidAnswer => "reset in the response",
        ErrorClass::ResetIdle => "reset while idle",
        ErrorClass::Eof => "closed early",
        ErrorClass::Timeout => "timeout",
        ErrorClass::Unsent => "not sent in time",
        ErrorClass::Status3xx => "status 3xx",
        ErrorClass::Status4xx => "status 4xx",
        ErrorClass::Status5xx => "status 5xx",
        ErrorClass::Protocol => "malformed response",
        ErrorClass::Tls => "TLS",
    }
}

/// A flag in a few words.
pub(super) fn flag_name(flag: Flag) -> &'static str {
    match flag {
        Flag::GeneratorLate => "generator late",
        Flag::Unsteady => "rate changed",
        Flag::Overload => "overload",
        Flag::Little => "not by Little's law",
        Flag::DirtyStart => "hosts not idle",
        Flag::BreakerTripped => "too many failures",
        Flag::ControlLost => "control connection lost",
        Flag::Interrupted => "interrupted",
        Flag::ServerGone => "server gone",
    }
}

/// The meaning of a flag.
pub(super) fn flag(flag: Flag) -> &'static str {
    match flag {
        Flag::GeneratorLate => "the generator sent late: latencies are in part its own",
        Flag::Unsteady => "the rate changed: both halves differ by more than 5 %",
        Flag::Overload => "ended early: the offered rate cannot be sustained",
        Flag::Little => {
            "rate times mean latency is not the number of connections (Little's law): some idled"
        }
        Flag::DirtyStart => "the hosts were not idle when it began",
        Flag::BreakerTripped => {
            "ended early: too many failures, or the server asked for a pause (Retry-After)"
        }
        Flag::ControlLost => "the control connection broke: values of the server are incomplete",
        Flag::Interrupted => "interrupted by the user",
        Flag::ServerGone => "the server stopped answering",
    }
}
