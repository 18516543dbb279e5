//! Wire formats and machines of iperf 2's dialect.
#![no_main]

use linerate_fuzz::{iperf2, one_of};

libfuzzer_sys::fuzz_target!(|data: &[u8]| one_of(
    data,
    &[
        &iperf2::header,
        &iperf2::datagram,
        &iperf2::stream_data,
        &iperf2::machines,
    ]
));
