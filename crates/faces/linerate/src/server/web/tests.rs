//! The page over sockets of the loopback interface.

use std::io::{BufRead, BufReader, Read};
use std::time::Instant;

use super::*;

const DEADLINE: Duration = Duration::from_secs(30);
const TOKEN: &str = "0123456789abcdef012345";

fn served() -> SocketAddr {
    let spec = WebSpec {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        token: Some(TOKEN.to_owned()),
    };
    let web = Web::bind(&spec).expect("a port");
    let address = web.listener.local_addr().expect("an address");

    web.start(Live::default()).expect("threads");
    address
}

fn connect(address: SocketAddr, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(DEADLINE)).expect("a time");
    stream.write_all(request.as_bytes()).expect("room");
    stream
}

fn raw(address: SocketAddr, request: &str) -> String {
    let mut text = String::new();
    let mut stream = connect(address, request);
    // A reset ends the response of a request that was refused unread.
    let _ = stream.read_to_string(&mut text);
    text
}

fn get(address: SocketAddr, path: &str, fields: &str) -> String {
    raw(
        address,
        &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{fields}\r\n"),
    )
}

fn bearer() -> String {
    format!("Authorization: Bearer {TOKEN}\r\n")
}

#[test]
fn the_link_sets_a_cookie_that_opens_the_page() {
    let address = served();
    let link = get(address, &format!("/?token={TOKEN}"), "");
    assert!(link.starts_with("HTTP/1.1 303 "), "{link}");

    let cookie = link
        .lines()
        .find_map(|line| line.strip_prefix("Set-Cookie: "))
        .expect("a cookie");
    assert!(
        cookie.contains("HttpOnly")
            && cookie.contains("SameSite=Strict")
            && !cookie.contains(TOKEN),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().expect("a pair");
    let page = get(address, "/", &format!("Cookie: other=1; {cookie}\r\n"));
    assert!(
        page.starts_with("HTTP/1.1 200 ") && page.contains("<h1>linerate serve</h1>"),
        "{page}"
    );

    for field in [
        "nosniff",
        "no-store",
        "frame-ancestors 'none'",
        "script-src 'sha256-",
    ] {
        assert!(page.contains(field), "{field}: {page}");
    }
}

#[test]
fn a_random_token_is_32_bytes_and_printed_as_a_link() {
    let spec = WebSpec {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        token: None,
    };
    let web = Web::bind(&spec).expect("a port");
    let link = web.link.expect("a link");
    assert_eq!(
        link.split_once("token=").map(|(_, token)| token.len()),
        Some(2 * SECRET_BYTES),
        "{link}"
    );
}

#[test]
fn strangers_get_nothing() {
    let address = served();
    let rows = [
        (format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n"), "401"),
        (
            format!("GET /live HTTP/1.1\r\nHost: {address}\r\n\r\n"),
            "401",
        ),
        (
            format!("GET /?token=0123456789abcdef01234X HTTP/1.1\r\nHost: {address}\r\n\r\n"),
            "401",
        ),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: {address}\r\nCookie: linerate_{}=\r\n\r\n",
                address.port()
            ),
            "401",
        ),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: rebound.example:{}\r\n{}\r\n",
                address.port(),
                bearer()
            ),
            "421",
        ),
        (
            format!("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n{}\r\n", bearer()),
            "421",
        ),
        (format!("GET / HTTP/1.1\r\n{}\r\n", bearer()), "421"),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: {address}\r\nHost: {address}\r\n{}\r\n",
                bearer()
            ),
            "421",
        ),
        (
            format!("POST / HTTP/1.1\r\nHost: {address}\r\n{}\r\n", bearer()),
            "405",
        ),
        (
            format!("GET /etc HTTP/1.1\r\nHost: {address}\r\n{}\r\n", bearer()),
            "404",
        ),
        ("nonsense\r\n\r\n".to_owned(), "400"),
    ];
    for (request, status) in rows {
        let response = raw(address, &request);
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request:?}: {response}"
        );
    }

    let long = format!(
        "GET / HTTP/1.1\r\nHost: {address}\r\nX: {}\r\n\r\n",
        "x".repeat(20_000)
    );
    assert!(!raw(address, &long).contains("200 OK"));
}

/// A viewer whose stream has begun.
fn viewer(address: SocketAddr) -> BufReader<TcpStream> {
    let request = format!("GET /live HTTP/1.1\r\nHost: {address}\r\n{}\r\n", bearer());
    let mut reader = BufReader::new(connect(address, &request));

    let mut line = String::new();
    while !line.starts_with("data: ") {
        line.clear();
        assert!(
            reader.read_line(&mut line).expect("a stream") > 0,
            "the stream ended"
        );
    }

    reader
}

#[test]
fn the_seventeenth_viewer_is_refused_until_one_leaves() {
    let address = served();
    let mut viewers: Vec<_> = (0..VIEWERS_MAX).map(|_| viewer(address)).collect();
    let refused = get(address, "/live", &bearer());
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(
        get(address, "/", &bearer()).starts_with("HTTP/1.1 200 "),
        "pages are still served"
    );
    viewers.pop();

    let end = Instant::now() + DEADLINE;
    let is_free = || {
        let request = format!("GET /live HTTP/1.1\r\nHost: {address}\r\n{}\r\n", bearer());
        let mut status = String::new();
        BufReader::new(connect(address, &request))
            .read_line(&mut status)
            .expect("a response");
        status.contains("200")
    };
    while !is_free() {
        assert!(Instant::now() < end, "the place is still taken");
        thread::yield_now();
    }
}

#[test]
fn all_viewers_get_the_same_frame_and_a_stalled_one_is_dropped() {
    let frames = Arc::new(Frames::default());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let stalled =
        TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
    let (stream, _) = listener.accept().expect("a connection");
    stream
        .set_write_timeout(Some(Duration::from_secs(5)))
        .expect("a time");

    let place = Place::take(&frames).expect("a place");
    let sender = thread::spawn(move || place.0.send(&stream, "first"));
    let frame = format!("data: {}\n\n", "x".repeat(300_000));

    let end = Instant::now() + DEADLINE;
    while !sender.is_finished() && Instant::now() < end {
        frames.publish(frame.clone());
        thread::yield_now();
    }

    assert!(sender.is_finished(), "it still sends");
    assert!(sender.join().expect("no panic").is_err());
    assert_eq!(frames.viewers.load(Ordering::Relaxed), 0);
    drop(stalled);
}

#[test]
fn tokens_are_long_and_plain() {
    assert_eq!(token(" 0123456789abcdef012345\n").as_deref(), Ok(TOKEN));
    for text in ["", &TOKEN[1..], "0123456789abcdef01234;", &"x".repeat(257)] {
        assert!(token(text).is_err(), "{text}");
    }
}
