//! Wrong tokens: in datagrams with the forged address of another client, and on connections of the
//! attacker's own.

use std::io::Write;
use std::time::{Duration, Instant};

use linerate_interop::{Attacker, knock, probe_head};

use super::attacked::AttackedServer;

/// More than an address may have wrong in a minute.
const DATAGRAMS: u8 = 25;
const PERIOD: Duration = Duration::from_millis(20);

pub(super) fn attack(attacker: &Attacker<'_>) {
    let Some(forged) = attacker.udp(attacker.victim) else {
        return;
    };
    let began = Instant::now();
    while attacker.goes_on_since(began) {
        for number in 0..DATAGRAMS {
            // While the port is closed the kernel reports an error instead.
            let _ = forged.send(&knock(number.into(), [number; 16]));
        }

        if let Some(mut stream) = attacker.connect() {
            // The server resets it.
            let _ = stream.write_all(&probe_head(1, [0xee; 16]));
        }

        attacker.pause(PERIOD);
    }
}

#[test]
fn timed_wrong_tokens_of_a_forged_address_do_not_count_against_it() {
    AttackedServer::start(&[]).withstands(&[attack]);
}
