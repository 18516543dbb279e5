//! A peer of a TLS stream that sends what a script says, over a pair of connected sockets.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use linerate_trust::{ClientConfig, ClientSession, HostKey, ServerConfig, ServerSession};

use super::{Moved, TlsStream};
use crate::tls_stream::intake::OF_CLIENTS;

/// Bytes that one step of a script sends.
const STEP_BYTES: usize = 32 << 10;

/// Whatever the client of a server sends, in records of any length and also invalid ones: a turn
/// returns no more plaintext than it reads, nothing remains, and a connection delivers no more
/// than its limits before it ends. Returns the plaintext that arrived.
///
/// # Panics
/// When one of these promises is broken.
pub fn tls_stream(script: &[u8]) -> usize {
    let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
    for end in [&ours, &theirs] {
        end.set_nonblocking(true).expect("a socket");
    }

    let key = HostKey::ephemeral().expect("a key");
    let mut client = ClientSession::new(&ClientConfig::new());
    let mut stream = TlsStream::server(ServerSession::new(&ServerConfig::new(&key)));

    let (mut arrived, mut steps) = (0, script.chunks_exact(2));
    loop {
        let outgoing = if client.is_handshaking() {
            read_handshake(&mut theirs, &mut client);
            client.take_outgoing()
        } else {
            let Some([kind, amount]) = steps.next() else {
                break;
            };
            step(&mut client, *kind, *amount)
        };
        // What has no room is cut off: the rest is an invalid record.
        let _ = theirs.write(&outgoing);

        let Some(plaintext_bytes) = turns(&mut stream, &ours) else {
            break;
        };
        arrived += plaintext_bytes;
        if outgoing.is_empty() && client.is_handshaking() {
            break;
        }
    }

    let Moved { received_bytes, .. } = stream.moved;
    let most = u64::from(OF_CLIENTS.burst_units) * 1024 + OF_CLIENTS.turn_bytes as u64;
    // The script takes no second, so hardly anything is added to the burst.
    assert!(received_bytes <= 2 * most, "{received_bytes} bytes");

    arrived
}

/// Reads until the socket is empty; `None` when the stream has ended.
fn turns(stream: &mut TlsStream, socket: &UnixStream) -> Option<usize> {
    let mut sum = 0;
    loop {
        let before = stream.moved.received_bytes;
        let plaintext = stream.receive(socket.as_fd()).ok()?;
        let read = stream.moved.received_bytes - before;
        assert!(
            read <= OF_CLIENTS.turn_bytes as u64,
            "{read} bytes in a turn"
        );
        assert!(stream.received.is_empty(), "plaintext stays behind");

        // A record that was not complete before adds at most its length.
        assert!(
            plaintext.len() <= 16 * 1024 + OF_CLIENTS.turn_bytes,
            "{} bytes of plaintext",
            plaintext.len()
        );

        sum += plaintext.len();
        if read == 0 {
            return Some(sum);
        }
    }
}

fn read_handshake(socket: &mut UnixStream, client: &mut ClientSession) {
    let mut bytes = [0; 4096];
    if let Ok(len) = std::io::Read::read(socket, &mut bytes) {
        // A server that refuses the client has ended the session.
        let _ = client.receive(bytes.get(..len).unwrap_or_default());
    }
}

/// Ciphertext of one step: records of a length, or other bytes.
fn step(client: &mut ClientSession, kind: u8, amount: u8) -> Vec<u8> {
    let record_bytes = match kind & 3 {
        0 => 1,
        1 => usize::from(amount) + 1,
        2 => 16 * 1024,
        _ => return vec![amount; usize::from(kind)],
    };
    let mut ciphertext = Vec::new();

    for _ in 0..=kind >> 2 {
        if client.send(&vec![amount; record_bytes]).is_err() || ciphertext.len() >= STEP_BYTES {
            break;
        }
        ciphertext.extend(client.take_outgoing());
    }

    ciphertext
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_and_long_records_arrive_and_floods_end() {
        assert_eq!(tls_stream(&[1, 99]), 100);
        assert!(tls_stream(&[2, 0, 1, 9]) >= 16 * 1024);
        assert!(
            tls_stream(&[0xfc, 0].repeat(20)) < 1000,
            "records of one byte"
        );
        assert!(tls_stream(&[0xfe, 0].repeat(50)) < 300_000, "long records");
        assert_eq!(tls_stream(&[3, 22, 7, 23, 255, 0]), 0, "no records");
    }

    proptest! {
        #[test]
        fn any_script_keeps_the_bounds(script: Vec<u8>) {
            let _ = tls_stream(&script);
        }
    }
}
