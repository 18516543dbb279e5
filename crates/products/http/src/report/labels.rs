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

/// The name of a flag as in JSON, and its meaning.
pub(super) fn flag(flag: Flag) -> String {
    let meaning = match flag {
        Flag::GeneratorLate => {
            "the generator itself sent late although a connection was free (99th percentile above \
             1 ms and a tenth of the latency), so latencies are in part its own"
        }
        Flag::Unsteady => "the two halves of the window differ by more than 5 % in throughput",
        Flag::Overload => "the offered rate cannot be sustained; the run ended early",
        Flag::Little => {
            "throughput times mean latency is not the number of connections (Little's law, within \
             10 %); some connections idled, or something was counted wrongly"
        }
        Flag::DirtyStart => "the hosts had not come to rest when it began",
        Flag::BreakerTripped => {
            "too many failures, or the server asked for a pause (Retry-After), so the run was ended"
        }
        Flag::ControlLost => "the control channel broke, so the server's values are incomplete",
        Flag::Interrupted => "the user ended it",
        Flag::ServerGone => "the server did not answer until the end",
    };
    format!("{}: {meaning}", stored_name(flag))
}
