//! Scripts: arbitrary bytes as events of a machine.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use linerate_model::{Failure, FailureKind};

/// One event.
pub(crate) enum Op<'a> {
    Bytes(&'a [u8]),
    /// A valid item of the protocol, selected by a byte.
    Item(u8),
    Eof,
    Error,
    Local(u8),
    Time,
}

/// Feeds a machine the events of a script, whose last one is an error; times are multiples of
/// `tick`. `poll` takes an action and returns whether it is `Close`.
pub(crate) fn drive<M>(
    script: &[u8],
    tick: Duration,
    mut machine: M,
    step: impl Fn(&mut M, Instant, Op<'_>),
    poll: impl Fn(&mut M) -> Option<bool>,
    timeout: impl Fn(&M) -> Option<Instant>,
) {
    let mut is_closed = false;
    play(script, tick, |now, op| {
        step(&mut machine, now, op);
        while let Some(closes) = poll(&mut machine) {
            assert!(!is_closed, "nothing follows the end");
            is_closed = closes;
        }

        assert!(!is_closed || timeout(&machine).is_none());
    });
    assert!(is_closed, "an error ends the machine");
}

fn play(script: &[u8], tick: Duration, mut step: impl FnMut(Instant, Op<'_>)) {
    let mut now = start();
    let mut rest = script;
    while let Some(([kind, argument], tail)) = rest.split_first_chunk() {
        rest = tail;
        let op = match kind % 16 {
            0..=4 => {
                let (bytes, tail) = rest.split_at(usize::from(*argument).min(rest.len()));
                rest = tail;
                Op::Bytes(bytes)
            }
            5..=8 => Op::Item(*argument),
            9 if *argument > 150 => Op::Eof,
            10 if *argument > 200 => Op::Error,
            11 | 12 => {
                now += tick * u32::from(*argument);
                Op::Time
            }
            _ => Op::Local(*argument),
        };
        step(now, op);
    }

    step(now, Op::Error);
}

/// Instants have no origin of their own; one for the whole process makes scripts repeatable.
pub(crate) fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

pub(crate) fn failure() -> Failure {
    Failure::new(FailureKind::Error, "something failed")
}
