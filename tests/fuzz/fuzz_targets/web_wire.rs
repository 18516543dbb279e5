//! Wire formats of browsers, of ndt7 and of STAMP.
#![no_main]

use linerate_fuzz::{in_segments, one_of, stamp, web};

libfuzzer_sys::fuzz_target!(|data: &[u8]| one_of(
    data,
    &[
        &in_segments(web::frames),
        &in_segments(web::http2),
        &web::request,
        &web::response,
        &web::report,
        &stamp::packet,
    ]
));
