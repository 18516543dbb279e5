use super::error::COMPRESSION_ERROR;
use super::*;

/// The frames of a client.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    [&head(payload.len(), kind, flags, stream), payload].concat()
}

fn request(stream: u32, method: &str, path: &str, flags: u8) -> Vec<u8> {
    let fields = [
        (":method", method),
        (":path", path),
        (":authority", "lab:5201"),
        ("host", "other"),
        ("upgrade", "websocket"),
        ("cookie", "a=1"),
    ];
    let block = fields
        .map(|(name, value)| hpack::literal(name, value))
        .concat();
    frame(HEADERS, flags | END_HEADERS, stream, &block)
}

fn opened() -> Http2 {
    let mut http2 = Http2::default();
    http2.feed(PREFACE, 0).expect("a preface");
    http2.take_outgoing();
    http2
}

/// Kinds, flags, streams and payload of frames for the client.
fn sent(http2: &mut Http2) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let outgoing = http2.take_outgoing();
    let (mut rest, mut frames) = (&outgoing[..], Vec::new());
    while let Some(head) = Head::parse(rest) {
        let (frame, others) = rest[FRAME_HEAD_BYTES..].split_at(head.len);
        frames.push((head.kind, head.flags, head.stream, frame.to_vec()));
        rest = others;
    }
    frames
}

fn refused(bytes: &[u8]) -> u32 {
    let mut http2 = opened();
    let error = http2.feed(bytes, 0).expect_err("an error");
    let last = sent(&mut http2).pop().expect("a last frame");
    assert_eq!((last.0, &last.3[4..]), (GOAWAY, &error.0.to_be_bytes()[..]));
    error.0
}

#[test]
fn a_request_is_that_of_http1_in_one_piece_and_in_octets() {
    let bytes = [PREFACE, &request(1, "GET", "/nq/small?x=1", END_STREAM)].concat();
    for len in [1, 7, bytes.len()] {
        let mut http2 = Http2::default();
        for piece in bytes.chunks(len) {
            assert_eq!(http2.feed(piece, 0), Ok(()));
        }
        let (stream, request) = http2.take_request().expect("a request");
        assert_eq!((stream, request.path.as_str()), (1, "/nq/small"));
        assert_eq!(
            (request.host.as_str(), request.cookies.as_str()),
            ("lab:5201", "a=1")
        );
        assert!(request.upgrade.is_none(), "an upgrade has no meaning");
        let settings = sent(&mut http2);
        assert_eq!([settings[0].0, settings[1].0], [SETTINGS, WINDOW_UPDATE]);

        http2.respond(stream, &response::line("200 OK", "x"));
        let frames = sent(&mut http2);
        assert_eq!(frames[0].3[..13], *b"\x00\x07:status\x03200");
        assert!(!frames[0].3.windows(10).any(|name| name == b"connection"));
        assert_eq!(frames[1], (DATA, END_STREAM, 1, b"x\n".to_vec()));
    }
}

#[test]
fn a_message_beyond_the_window_of_the_client_needs_http1() {
    let mut http2 = opened();
    let window = frame(
        SETTINGS,
        0,
        0,
        &[&[0, 4][..], &100u32.to_be_bytes()].concat(),
    );
    http2.feed(&window, 0).expect("settings");
    http2
        .feed(&request(1, "GET", "/", END_STREAM), 0)
        .expect("a request");
    http2.respond(1, &response::line("200 OK", &"x".repeat(100)));
    let code = HTTP_1_1_REQUIRED.to_be_bytes().to_vec();
    assert_eq!(sent(&mut http2).pop(), Some((RST_STREAM, 0, 1, code)));
}

#[test]
fn bodies_take_turns_within_the_windows_of_the_client() {
    let mut http2 = opened();
    for stream in [1, 3] {
        http2
            .feed(&request(stream, "GET", "/nq/large", END_STREAM), 0)
            .expect("a request");
        http2.begin_body(stream, b"HTTP/1.1 200 OK\r\n\r\n", 40_000);
    }
    let mut taken = Vec::new();
    while let Some((bytes, len)) = http2.next_data(1 << 20) {
        let head = Head::parse(&bytes).expect("a head");
        taken.push((head.stream, len, head.flags));
    }
    // The window of the connection is that of the RFC.
    let last = 65_535 - 3 * FRAME_BYTES_MAX;
    let whole = FRAME_BYTES_MAX;
    assert_eq!(
        taken,
        [(1, whole, 0), (3, whole, 0), (1, whole, 0), (3, last, 0)]
    );

    http2
        .feed(&frame(WINDOW_UPDATE, 0, 0, &50_000u32.to_be_bytes()), 0)
        .expect("a window");
    let (bytes, len) = http2.next_data(1 << 20).expect("room");
    assert_eq!((len, bytes[4]), (40_000 - 2 * whole, END_STREAM));
    http2
        .feed(&frame(RST_STREAM, 0, 3, &[0; 4]), 0)
        .expect("a reset");
    assert!(http2.next_data(1 << 20).is_none());
}

#[test]
fn a_body_is_counted_refilled_and_answered_at_its_end() {
    let mut http2 = opened();
    http2
        .feed(&request(1, "POST", "/nq/slurp", 0), 0)
        .expect("a request");
    http2.count_body(1);
    let part = frame(DATA, 0, 1, &vec![0; FRAME_BYTES_MAX]);
    let parts = REFILL_BYTES as usize / FRAME_BYTES_MAX;
    for piece in part.repeat(parts).chunks(5000) {
        http2.feed(piece, 0).expect("a body");
    }
    let refill = REFILL_BYTES.to_be_bytes().to_vec();
    let refills = [1, 0].map(|stream| (WINDOW_UPDATE, 0, stream, refill.clone()));
    assert_eq!(sent(&mut http2), refills);

    assert_eq!(http2.take_payload(), u64::from(REFILL_BYTES));
    http2
        .feed(&frame(DATA, END_STREAM, 1, &[0; 300]), 0)
        .expect("the end");
    assert_eq!(http2.take_payload(), 300);
    let answer = sent(&mut http2);
    assert_eq!((answer[0].0, answer[0].2), (HEADERS, 1));
    assert_eq!(answer.last().map(|frame| frame.1), Some(END_STREAM));
}

#[test]
fn trailers_and_padding_are_read_and_unknown_frames_are_not() {
    let mut http2 = opened();
    let mut block = request(1, "POST", "/nq/slurp", 0).split_off(FRAME_HEAD_BYTES);
    block.splice(0..0, [2, 0, 0, 0, 0, 0]);
    block.extend([0, 0]);
    let flags = PADDED | PRIORITY | END_HEADERS;
    http2
        .feed(&frame(HEADERS, flags, 1, &block), 0)
        .expect("a request");
    assert!(http2.take_request().is_some());
    http2.count_body(1);
    http2
        .feed(&frame(0x77, 0, 9, b"?"), 0)
        .expect("an unknown frame");
    let trailers = hpack::literal("a", "b");
    let flags = END_HEADERS | END_STREAM;
    http2
        .feed(&frame(HEADERS, flags, 1, &trailers), 0)
        .expect("trailers");
    assert_eq!(sent(&mut http2)[0].0, HEADERS);
}

#[test]
fn clients_that_break_the_protocol_or_a_bound_are_refused() {
    let small = request(1, "GET", "/nq/small", END_STREAM);
    let reset = |stream| {
        let request = request(stream, "GET", "/nq/small", END_STREAM);
        [request, frame(RST_STREAM, 0, stream, &[0; 4])].concat()
    };
    let resets: Vec<u8> = (0..FRAMES_PER_S_MAX)
        .flat_map(|n| reset(2 * n + 1))
        .collect();
    let flood = |kind, payload: &[u8]| frame(kind, 0, 0, payload).repeat(1001);
    let long = hpack::literal("a", &"x".repeat(9000));
    for (bytes, code) in [
        (resets, ENHANCE_YOUR_CALM),
        (flood(PING, &[0; 8]), ENHANCE_YOUR_CALM),
        (flood(SETTINGS, &[]), ENHANCE_YOUR_CALM),
        (flood(WINDOW_UPDATE, &[0, 0, 0, 1]), ENHANCE_YOUR_CALM),
        (
            [small.clone(), frame(DATA, 0, 1, &[]).repeat(1000)].concat(),
            ENHANCE_YOUR_CALM,
        ),
        (
            [
                frame(HEADERS, 0, 1, &long[..5000]),
                frame(CONTINUATION, 0, 1, &long[5000..]),
            ]
            .concat(),
            ENHANCE_YOUR_CALM,
        ),
        (frame(DATA, 0, 1, &[0; 300]), PROTOCOL_ERROR),
        (frame(HEADERS, END_HEADERS, 2, &[0x82]), PROTOCOL_ERROR),
        (frame(HEADERS, END_HEADERS, 1, &[0x82]), PROTOCOL_ERROR),
        (
            [frame(HEADERS, 0, 1, &[0x82]), small].concat(),
            PROTOCOL_ERROR,
        ),
        (frame(CONTINUATION, END_HEADERS, 1, &[0x82]), PROTOCOL_ERROR),
        (frame(HEADERS, END_HEADERS, 1, &[0x80]), COMPRESSION_ERROR),
        (
            head(FRAME_BYTES_MAX + 1, HEADERS, 0, 1).to_vec(),
            FRAME_SIZE_ERROR,
        ),
        (
            frame(WINDOW_UPDATE, 0, 0, &[0x7f, 255, 255, 255]),
            FLOW_CONTROL_ERROR,
        ),
    ] {
        assert_eq!(refused(&bytes), code, "{:?}", &bytes[..9]);
    }
    let mut http2 = Http2::default();
    assert!(http2.feed(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 0).is_err());
}

#[test]
fn streams_beyond_the_bound_are_refused_and_the_others_stay() {
    let mut http2 = opened();
    for stream in 0..=STREAMS_MAX {
        let request = request(2 * stream + 1, "POST", "/nq/slurp", 0);
        http2.feed(&request, 0).expect("a request");
        http2.take_request();
    }
    let code = REFUSED_STREAM.to_be_bytes().to_vec();
    let refused = |stream| [(RST_STREAM, 0, stream, code.clone())];
    assert_eq!(sent(&mut http2), refused(2 * STREAMS_MAX + 1));
    assert_eq!(http2.streams.len(), STREAMS_MAX as usize);

    let mut http2 = opened();
    for stream in [1, 3, 5] {
        http2
            .feed(&request(stream, "GET", "/", END_STREAM), 0)
            .expect("a request");
    }
    assert_eq!(sent(&mut http2), refused(5), "two wait");
}
