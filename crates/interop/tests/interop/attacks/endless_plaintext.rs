//! TLS connections that send no message, but as many bytes as the server takes.

use std::time::Instant;

use linerate_interop::{Attacker, RawNative};

use super::attacked::AttackedServer;

/// Largest plaintext of a record, RFC 8446 section 5.1.
const RECORD: [u8; 16 << 10] = [b' '; 16 << 10];
const CONNECTIONS: usize = 4;

pub(super) fn attack(attacker: &Attacker<'_>) {
    let mut connections: Vec<RawNative> = (0..CONNECTIONS).map_while(|_| attacker.control()).collect();
    let began = Instant::now();
    while attacker.goes_on_since(began) && !connections.is_empty() {
        connections.retain_mut(|connection| connection.pour([&RECORD[..]; 16]));
    }
}

#[test]
fn timed_plaintext_without_a_message_is_not_stored() {
    AttackedServer::start(&[]).withstands(&[attack]);
}
