//! Goal: no bytes of a peer break a promise of the wire formats. Method: the checks of the fuzz
//! target on random input.

use proptest::collection::vec;
use proptest::prelude::*;

#[path = "../../../../tests/fuzz/src/segments.rs"]
mod segments;
#[path = "../../../../tests/fuzz/src/web.rs"]
pub mod web;

/// Bytes that often are the begin of frames.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let first = prop::sample::select(vec![0x00, 0x01, 0x02, 0x80, 0x81, 0x82, 0x88, 0x89]);
    let second = prop::sample::select(vec![0_u8, 1, 3, 126, 127, 128, 129, 131, 254, 255]);
    let one = (first, second, vec(any::<u8>(), 0..12));
    let frames = vec(
        one.prop_map(|(a, b, rest)| [vec![a, b], rest].concat()),
        0..6,
    );
    frames.prop_map(|frames| frames.concat())
}

/// Frames of HTTP/2 with any fields.
fn http2_frames() -> impl Strategy<Value = Vec<u8>> {
    let one = (0_u8..10, any::<u8>(), 0_u8..4, vec(any::<u8>(), 0..40));
    let frame = one.prop_map(|(kind, flags, stream, payload)| {
        let head = [0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream];
        [&head[..], &payload].concat()
    });
    vec(frame, 0..12).prop_map(|frames| frames.concat())
}

proptest! {
    #[test]
    fn http2_is_read_alike_in_any_segments(bytes in http2_frames(), cuts in vec(0_u8..9, 0..9)) {
        web::http2(&cuts, &bytes);
    }

    #[test]
    fn frames_are_read_alike_in_any_segments(bytes in frames(), cuts in vec(0_u8..9, 0..9)) {
        web::frames(&cuts, &bytes);
    }

    #[test]
    fn heads_and_measurements_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        web::request(&bytes);
        web::response(&bytes);
        web::report(&bytes);
    }
}
