//! A client of requests and responses that does what a script says, over a pair of connected
//! sockets.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use linerate_model::path::TransactionSpec;

use super::Transactions;
use crate::data::quota::Quota;
use crate::dialect::native::server::responder::{Meter, Turn};

/// Answer to the head of the stream.
const ANSWER: [u8; 16] = *b"answer of a head";

/// Whatever a client sends and however little it reads: it gets one response per complete request
/// and no byte more, an amount holds for requests and responses together, and each turn ends.
/// Returns the bytes of responses that arrived.
///
/// # Panics
/// When one of these promises is broken.
pub fn transactions(script: &[u8]) -> u64 {
    let Some(([request, response, amount], steps)) = script.split_first_chunk() else {
        return 0;
    };
    let spec = TransactionSpec {
        request_bytes: u32::from(*request) + 1,
        response_bytes: (u32::from(*response) + 1) << (response & 7),
    };
    let allowed = (*amount > 0).then(|| u64::from(*amount) << 10);
    let meter = Meter::new(Quota::new(Vec::new(), allowed));

    let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
    for end in [&ours, &theirs] {
        end.set_nonblocking(true).expect("a socket");
    }

    let mut server = Transactions::new(&ours, spec, &ANSWER);
    let (mut sent, mut received) = (0, 0);
    let mut buffer = vec![0; 16 << 10];

    for step in steps {
        let bytes = vec![b'q'; usize::from(step >> 2) * 16];
        sent += theirs.write(&bytes).unwrap_or(0) as u64;

        if step & 1 == 1 {
            received += drain(&mut theirs);
        }

        for _ in 0..=step & 3 {
            match server.advance(ours.as_fd(), &mut buffer, &meter) {
                Ok(Turn::Answered(_)) => {}
                Ok(Turn::NotBefore(at_ns)) => panic!("no rate is limited: {at_ns}"),
                Err(_) => return received.saturating_sub(ANSWER.len() as u64),
            }
        }

        let totals = meter.totals();
        let complete = totals.received_bytes / u64::from(spec.request_bytes);
        assert!(totals.received_bytes <= sent);
        assert!(
            totals.sent_bytes <= ANSWER.len() as u64 + complete * u64::from(spec.response_bytes)
        );

        // The first byte beyond the amount shows that there is more; a read or write that has begun
        // ends.
        let most = allowed.map_or(u64::MAX, |bytes| bytes + 1 + ANSWER.len() as u64);
        assert!(
            totals.received_bytes + totals.sent_bytes <= most,
            "{totals:?} of {allowed:?}"
        );
    }

    received.saturating_sub(ANSWER.len() as u64)
}

fn drain(socket: &mut UnixStream) -> u64 {
    let mut bytes = [0; 4096];
    let mut sum = 0;

    while let Ok(len @ 1..) = socket.read(&mut bytes) {
        sum += len as u64;
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_are_answered_and_amounts_hold() {
        // Requests of 16 bytes, responses of 2: 16 complete requests, read in the last step.
        assert_eq!(transactions(&[15, 0, 0, 0x40, 1, 1]), 16);
        // Requests of 16 bytes, responses of 32 KiB, of which nothing is read.
        assert_eq!(transactions(&[15, 0xff, 0, 0xfc, 0xfc, 0xfc]), 0);

        // An amount of 1 KiB.
        assert!(transactions(&[0, 0xff, 1, 0x41, 0x41, 0x41, 0x41]) <= 1024);
    }

    proptest! {
        #[test]
        fn any_script_keeps_the_bounds(script: Vec<u8>) {
            let _ = transactions(&script);
        }
    }
}
