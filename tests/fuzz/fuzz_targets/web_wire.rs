//! Wire formats of browsers and of ndt7.
#![no_main]

use linerate_fuzz::{in_segments, one_of, web};

libfuzzer_sys::fuzz_target!(|data: &[u8]| one_of(
    data,
    &[
        &in_segments(web::frames),
        &web::request,
        &web::response,
        &web::report,
    ]
));
