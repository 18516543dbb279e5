//! Requests, chunked bodies and responses of HTTP/1.1.
#![no_main]

use linerate_fuzz::{in_segments, one_of};
use linerate_http::fuzzing::{answer_requests, decode_chunks, response};

libfuzzer_sys::fuzz_target!(|data: &[u8]| one_of(
    data,
    &[
        &in_segments(answer_requests),
        &in_segments(decode_chunks),
        &in_segments(|cuts: &[u8], input: &[u8]| {
            (0..4).for_each(|settings| response(settings, cuts, input));
        }),
    ]
));
