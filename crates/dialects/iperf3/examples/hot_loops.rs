//! Cost of a UDP datagram in this crate, for counting instructions: `bench/instructions`.

use std::hint::black_box;

use linerate_iperf3::wire::sequence::SequenceTracker;
use linerate_iperf3::wire::udp_header::UdpHeader;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (name, count) = (arguments.next().unwrap_or_default(), arguments.next());
    let count: u64 = count.and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut datagram = [0_u8; 64];
    let mut tracker = SequenceTracker::new(false);

    for number in 1..=count {
        match name.as_str() {
            "write" => {
                UdpHeader::at(black_box(number * 1000), number)
                    .emit(black_box(&mut datagram), false);
            }
            "read" => {
                let header = UdpHeader::parse(black_box(&datagram), false);
                tracker.on_datagram(
                    number,
                    header.map_or(0, |h| h.sent_ns()),
                    black_box(number * 1000),
                );
            }
            _ => {}
        }
    }

    black_box((datagram, tracker));
}
