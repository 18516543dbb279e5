//! Sessions that send the longest valid messages as often as that is allowed.

use std::iter;
use std::time::{Duration, Instant};

use linerate_interop::{Attacker, RawNative, frame};

use super::attacked::AttackedServer;

/// Sessions whose messages are a record each, and such with records of one byte.
const SESSIONS: (usize, usize) = (6, 2);
/// A session may send 64 messages per second, all of them at once.
const MESSAGES: usize = 60;
const PERIOD: Duration = Duration::from_secs(1);
/// Longest message.
const MESSAGE_BYTES: usize = 16 << 10;

/// `keep`, made long by a member that the server does not know.
fn longest_keep() -> Vec<u8> {
    let (begin, end) = ("{\"type\":\"keep\",\"n\":0,\"got\":0,\"x\":[0", "]}");
    let elements = ",0".repeat((MESSAGE_BYTES - begin.len() - end.len()) / 2);
    frame(&format!("{begin}{elements}{end}"))
}

pub(super) fn attack(attacker: &Attacker<'_>) {
    let keep = longest_keep();
    let whole: Vec<&[u8]> = vec![&keep[..]; MESSAGES];
    let bytes: Vec<&[u8]> = whole.iter().flat_map(|keep| keep.chunks(1)).collect();

    let began = Instant::now();
    let pieces = iter::repeat_n(&whole, SESSIONS.0).chain(iter::repeat_n(&bytes, SESSIONS.1));
    let mut sessions: Vec<(RawNative, &Vec<&[u8]>)> = pieces
        .map_while(|pieces| Some((attacker.session(1)?, pieces)))
        .collect();
    while attacker.goes_on_since(began) && !sessions.is_empty() {
        sessions.retain_mut(|(session, pieces)| session.pour(pieces.iter().copied()));
        attacker.pause(PERIOD);
    }
}

#[test]
fn timed_long_messages_within_the_rate_take_no_time_from_others() {
    AttackedServer::start(&[]).withstands(&[attack]);
}
