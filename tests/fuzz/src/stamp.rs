//! Checks of fuzz targets and property tests of `linerate-stamp`: functions over arbitrary bytes that
//! panic when a promise is broken.

use std::net::SocketAddr;

use linerate_stamp::wire::packet::{Head, LEN_MIN, Reflected};
use linerate_stamp::wire::reflector::{Arrival, Reflector};
use linerate_stamp::wire::sender::{Sender, losses};
use linerate_stamp::wire::timestamp::ErrorEstimate;

/// A packet of any sender is answered at its length with its own number, or not at all; and any
/// packet that a session sender takes answers one that it sent.
pub fn packet(bytes: &[u8]) {
    let arrival = Arrival {
        from: SocketAddr::from(([192, 0, 2, 1], 5000)),
        ttl: 64,
        received_ns: 1,
    };
    let mut answer = bytes.to_vec();
    let error = ErrorEstimate::default();
    let is_answered = Reflector::new(862).reflect(&mut answer, arrival, 2, error);
    assert_eq!(is_answered, bytes.len() >= LEN_MIN);
    assert_eq!(answer.len(), bytes.len());
    if let Some(reflected) = Reflected::decode(&answer).filter(|_| is_answered) {
        let sent = Head::decode(bytes).expect("an answered packet has a head");
        assert_eq!(reflected.sender, sent);
        let _ = (sent.sent_ns(), reflected.received_ns());
    }

    let mut sender = Sender::new(9, error);
    for now_ns in 0..4 {
        sender.next_packet(now_ns);
    }
    let taken = sender.receive(bytes, 5).is_some();
    let answered = sender
        .probes()
        .iter()
        .filter(|probe| probe.answer.is_some());
    assert_eq!(answered.count(), usize::from(taken));
    let _ = losses(sender.probes());
}
