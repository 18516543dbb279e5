//! TLS records of one byte each: 22 bytes of ciphertext and a decryption for every byte of a message.

use std::iter;
use std::time::Instant;

use linerate_interop::{Attacker, RawNative};

use super::attacked::AttackedServer;

const CONNECTIONS: usize = 4;
/// Records of one call.
const RECORDS: usize = 2000;
/// Length of a message that is allowed; it is never completed before its last record.
const LENGTH: [u8; 4] = (16_u32 << 10).to_be_bytes();

pub(super) fn attack(attacker: &Attacker<'_>) {
    let mut connections: Vec<RawNative> = (0..CONNECTIONS).map_while(|_| attacker.control()).collect();
    connections.retain_mut(|connection| connection.pour([&LENGTH[..]]));
    let began = Instant::now();
    while attacker.goes_on_since(began) && !connections.is_empty() {
        connections.retain_mut(|connection| connection.pour(iter::repeat_n(&b" "[..], RECORDS)));
    }
}

#[test]
fn timed_records_of_one_byte_take_no_time_from_others() {
    AttackedServer::start(&[]).withstands(&[attack]);
}
