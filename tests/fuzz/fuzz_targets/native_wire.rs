//! Wire formats of the native dialect.
#![no_main]

use linerate_fuzz::{in_segments, native, one_of};

libfuzzer_sys::fuzz_target!(|data: &[u8]| one_of(
    data,
    &[
        &in_segments(native::frame),
        &native::messages,
        &native::stream_head,
        &in_segments(native::stream_frames),
        &native::datagram,
    ]
));
