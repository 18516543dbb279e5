//! TLS records of one byte each: 22 bytes of ciphertext and a decryption for every byte of a
//! message.

use std::iter;
use std::time::Instant;

use linerate_interop::Attacker;

use super::attacked::AttackedServer;

/// Length of a message that is allowed; it is complete with the last record.
const MESSAGE_BYTES: u32 = 16 << 10;
/// Records that are sent without a pause: 35 MB of ciphertext.
const RECORDS: usize = 3 << 19;

pub(super) fn attack(attacker: &Attacker<'_>) {
    // A session has more time than a connection that has sent no message.
    let Some(mut session) = attacker.session(1) else {
        return;
    };
    let began = Instant::now();
    let length = MESSAGE_BYTES.to_be_bytes();
    let records = || iter::once(&length[..]).chain(iter::repeat_n(&b" "[..], RECORDS));
    while attacker.goes_on_since(began) && session.pour(records()) {}
}

#[test]
fn timed_records_of_one_byte_take_no_time_from_others() {
    AttackedServer::start(&[]).withstands(&[attack]);
}
