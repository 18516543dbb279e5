//! Sessions that send the longest valid messages as often as that is allowed.

use std::iter;
use std::time::{Duration, Instant};

use linerate_interop::{Attacker, RawNative, frame};

use super::attacked::AttackedServer;

const SESSIONS: usize = 8;
/// A session may send 64 messages per second, all of them at once.
const MESSAGES: usize = 60;
const PERIOD: Duration = Duration::from_secs(1);
/// Longest message.
const MESSAGE_BYTES: usize = 16 << 10;

/// `keep`, made long by blanks between its members.
fn longest_keep() -> Vec<u8> {
    let (begin, end) = ("{\"type\":\"keep\",\"n\":0,\"got\":0", "}");
    let blanks = " ".repeat(MESSAGE_BYTES - begin.len() - end.len());
    frame(&format!("{begin}{blanks}{end}"))
}

pub(super) fn attack(attacker: &Attacker<'_>) {
    let keep = longest_keep();
    let mut sessions: Vec<RawNative> = (0..SESSIONS).map_while(|_| attacker.session(1)).collect();
    let began = Instant::now();
    while attacker.goes_on_since(began) && !sessions.is_empty() {
        sessions.retain_mut(|session| session.pour(iter::repeat_n(&keep[..], MESSAGES)));
        attacker.pause(PERIOD);
    }
}

#[test]
fn timed_long_messages_within_the_rate_take_no_time_from_others() {
    AttackedServer::start(&[]).withstands(&[attack]);
}
