//! Checks of fuzz targets and property tests of `linerate-web`: functions over arbitrary bytes that
//! panic when a promise is broken.

use linerate_web::wire::client::Handshake;
use linerate_web::wire::frame::{FrameError, FrameReader, Message};
use linerate_web::wire::http2::{Http2, PREFACE};
use linerate_web::wire::measurement::Measurement;
use linerate_web::wire::request::{HEAD_BYTES_MAX, Request};

use super::segments::pieces;

const TEXT_MAX: usize = 64;

/// Frames of both ends are read alike in one piece and in segments, and nothing is kept beyond the
/// bound.
pub fn frames(cuts: &[u8], bytes: &[u8]) {
    for reader in [
        FrameReader::counting,
        || FrameReader::keeping(TEXT_MAX),
        || FrameReader::of_server(TEXT_MAX),
    ] {
        let whole = read(reader(), [bytes]);
        assert_eq!(whole, read(reader(), pieces(cuts, bytes)));
        assert!(whole.0.iter().all(|message| match message {
            Message::Text(kept) | Message::Binary(kept) => kept.len() <= TEXT_MAX,
            Message::Ping(kept) => kept.len() <= 125,
            Message::Close => true,
        }));
        assert!(whole.1 <= bytes.len() as u64);
    }
}

/// Messages, payload up to a failure, and the failure.
fn read<'a>(
    mut reader: FrameReader,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Message>, u64, Option<FrameError>) {
    let (mut messages, mut payload) = (Vec::new(), 0);
    for piece in pieces {
        match reader.feed(piece, |message| messages.push(message)) {
            Ok(read) => payload += read,
            // How much of a piece came before the failure depends on its length.
            Err(error) => return (messages, 0, Some(error)),
        }
    }
    (messages, payload, None)
}

/// A head of a request ends within the bound and within its bytes.
pub fn request(bytes: &[u8]) {
    if let Ok(Some((request, len))) = Request::parse(bytes) {
        assert!(len <= bytes.len().min(HEAD_BYTES_MAX));
        let _ = (request.is_same_origin(), request.parameter("label"));
    }
    assert!(bytes.len() < HEAD_BYTES_MAX || !matches!(Request::parse(bytes), Ok(None)));
}

/// A response begins a test only with the key of its request.
pub fn response(bytes: &[u8]) {
    let (handshake, _) = Handshake::new("download", "lab", [7; 16]);
    if let Ok(Some(len)) = handshake.accept(bytes) {
        assert!(len <= bytes.len());
        let (other, _) = Handshake::new("download", "lab", [8; 16]);
        assert!(other.accept(bytes).is_err());
    }
}

/// Measurements of any text.
pub fn report(bytes: &[u8]) {
    let _ = Measurement::parse(bytes).and_then(|report| report.received());
}

/// HTTP/2 is read alike in one piece and in segments, and what a client makes the server keep is
/// bounded.
pub fn http2(cuts: &[u8], bytes: &[u8]) {
    let whole = requests([bytes]);
    assert_eq!(whole, requests(pieces(cuts, bytes)));
}

/// Paths of requests, frames of the server, and whether the client is refused.
fn requests<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<String>, Vec<u8>, bool) {
    let mut http2 = Http2::default();
    let (mut paths, mut sent) = (Vec::new(), Vec::new());
    http2.feed(PREFACE, 0).expect("a preface");
    for piece in pieces {
        let fed = http2.feed(piece, 0);
        sent.extend(http2.take_outgoing());
        assert!(sent.len() < 1 << 20, "{}", sent.len());
        if fed.is_err() {
            return (Vec::new(), Vec::new(), true);
        }
        while let Some((_, request)) = http2.take_request() {
            assert!(paths.len() <= 1000, "each request is a frame");
            paths.push(request.path);
        }
    }
    (paths, sent, false)
}
