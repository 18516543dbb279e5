//! TLS connections that send no message, but as many bytes as the server takes.

use std::time::Instant;
use std::{iter, thread};

use linerate_interop::Attacker;

use super::attacked::AttackedServer;

/// A server that reads one of them until its socket is empty lets the other ones fill.
const CONNECTIONS: usize = 2;
/// Length of a message that is allowed.
const LENGTH: [u8; 4] = (16_u32 << 10).to_be_bytes();
const RECORD: [u8; 1 << 10] = [b' '; 1 << 10];
/// Records of one connection: 160 MB.
const RECORDS: usize = 160 << 10;

/// Sends until the server closes the connection.
fn pour(attacker: &Attacker<'_>, began: Instant) {
    let Some(mut connection) = attacker.control() else {
        return;
    };
    let records = || iter::once(&LENGTH[..]).chain(iter::repeat_n(&RECORD[..], RECORDS));
    while attacker.goes_on_since(began) && connection.pour(records()) {}
}

pub(super) fn attack(attacker: &Attacker<'_>) {
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(move || pour(attacker, began));
        }
    });
}

#[test]
fn timed_plaintext_without_a_message_is_not_stored() {
    AttackedServer::start(&[]).withstands(&[attack]);
}
