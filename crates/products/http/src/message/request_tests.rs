//! Headers that are accepted, and near-misses that are refused.

use super::body::BodyFraming;
use super::request::RequestError::{self, *};
use super::request::{FIELDS_MAX, HEADER_BYTES_MAX, RequestHeader, Target};

fn parse(head: &str) -> Result<RequestHeader<'_>, RequestError> {
    RequestHeader::parse(head.as_bytes()).map(|head| head.expect("a complete head"))
}

fn with(fields: &str) -> String {
    format!("POST /sink HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

#[test]
fn request_is_parsed_up_to_its_empty_line() {
    let head = "GET /b/10k?random=1 HTTP/1.1\r\nHost: 192.0.2.7:8080\r\nAuthorization: Bearer \
                x\r\nAccept: */*\r\n\r\n";
    let input = format!("{head}GET /next");
    let request = parse(&input).expect("valid");
    assert_eq!(
        request,
        RequestHeader {
            method: "GET",
            target: Target::Path {
                path: "/b/10k",
                query: "random=1"
            },
            is_http11: true,
            framing: BodyFraming::None,
            keep_alive: true,
            expects_continue: false,
            len: head.len(),
        }
    );
}

#[test]
fn truncated_header_is_incomplete() {
    let head = with("Content-Length: 3\r\nConnection: close\r\n");
    for end in 0..head.len() {
        assert_eq!(
            RequestHeader::parse(&head.as_bytes()[..end]),
            Ok(None),
            "{end}"
        );
    }

    assert_eq!(parse(&head).expect("valid").len, head.len());
}

#[test]
fn targets_are_paths_absolute_forms_or_asterisk() {
    let path = |path, query| Ok(Target::Path { path, query });
    for (line, expected) in [
        ("GET /", path("/", "")),
        ("GET /1k?", path("/1k", "")),
        ("GET /1k?a?b=/", path("/1k", "a?b=/")),
        ("GET http://h/1k?x=1", path("/1k", "x=1")),
        ("GET HTTP://h:80", path("/", "")),
        ("GET https://[::1]:8443?x", path("/", "x")),
        ("OPTIONS *", Ok(Target::Server)),
        ("GET *", Err(RequestError::Target)),
        ("GET 1k", Err(RequestError::Target)),
        ("GET ftp://h/1k", Err(RequestError::Target)),
        ("GET http:///1k", Err(RequestError::Target)),
        ("GET http://user@h/1k", Err(RequestError::Target)),
        ("GET /1k#top", Err(RequestError::Target)),
        ("CONNECT h:80", Err(RequestError::Target)),
    ] {
        let head = format!("{line} HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(
            parse(&head).map(|request| request.target),
            expected,
            "{line}"
        );
    }
}

#[test]
fn persistence_depends_on_version_and_field() {
    for (version, fields, expected) in [
        ("1.1", "Host: a\r\n", true),
        ("1.1", "Host: a\r\nConnection: close\r\n", false),
        ("1.1", "Host: a\r\nconnection: Upgrade, CLOSE\r\n", false),
        (
            "1.1",
            "Host: a\r\nConnection: keep-alive\r\nConnection: close\r\n",
            false,
        ),
        ("1.1", "Host: a\r\nConnection: closed\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let head = format!("GET / HTTP/{version}\r\n{fields}\r\n");
        assert_eq!(
            parse(&head).expect("valid").keep_alive,
            expected,
            "{head:?}"
        );
    }
}

#[test]
fn bodies_have_one_unambiguous_framing() {
    for (fields, expected) in [
        ("", Ok(BodyFraming::None)),
        ("Content-Length: 0\r\n", Ok(BodyFraming::None)),
        ("Content-Length: 12\r\n", Ok(BodyFraming::Length(12))),
        (
            "Content-Length: 12\r\nContent-length:12\r\n",
            Ok(BodyFraming::Length(12)),
        ),
        ("transfer-ENCODING:  Chunked \r\n", Ok(BodyFraming::Chunked)),
        (
            "Content-Length: 12\r\nContent-Length: 13\r\n",
            Err(ContentLength),
        ),
        ("Content-Length: 12, 12\r\n", Err(ContentLength)),
        ("Content-Length: 0010\r\n", Ok(BodyFraming::Length(10))),
        (
            "Content-Length: 9223372036854775807\r\n",
            Ok(BodyFraming::Length(u64::MAX / 2)),
        ),
        (
            "Content-Length: 9223372036854775808\r\n",
            Err(ContentLength),
        ),
        ("Content-Length: +12\r\n", Err(ContentLength)),
        ("Content-Length: -1\r\n", Err(ContentLength)),
        ("Content-Length: 1 2\r\n", Err(ContentLength)),
        ("Content-Length: 0x1\r\n", Err(ContentLength)),
        ("Content-Length:\r\n", Err(ContentLength)),
        (
            "Content-Length: 99999999999999999999\r\n",
            Err(ContentLength),
        ),
        (
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            Err(TwoFramings),
        ),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
            Err(TwoFramings),
        ),
        ("Transfer-Encoding: gzip, chunked\r\n", Err(UnknownCoding)),
        (
            "Transfer-Encoding: chunked, identity\r\n",
            Err(UnknownCoding),
        ),
        ("Transfer-Encoding: xchunked\r\n", Err(UnknownCoding)),
        ("Transfer-Encoding: \"chunked\"\r\n", Err(UnknownCoding)),
        ("Transfer-Encoding: \u{b}chunked\r\n", Err(Syntax)),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            Err(TransferEncoding),
        ),
        ("Transfer-Encoding: identity\r\n", Err(UnknownCoding)),
        ("Transfer-Encoding:\r\n", Err(TransferEncoding)),
        ("Transfer-Encoding : chunked\r\n", Err(Syntax)),
        ("Content-Length : 3\r\n", Err(Syntax)),
        (" Content-Length: 3\r\n", Err(Syntax)),
        ("X: y\r\n Transfer-Encoding: chunked\r\n", Err(Syntax)),
        ("X: y\r\n\tfolded\r\n", Err(Syntax)),
        ("X: y\nTransfer-Encoding: chunked\r\n", Err(BareLineFeed)),
        ("X: y\rTransfer-Encoding: chunked\r\n", Err(Syntax)),
        ("X: \0\r\n", Err(Syntax)),
        ("Content-Length\0: 3\r\n", Err(Syntax)),
        (": y\r\n", Err(Syntax)),
        ("no colon\r\n", Err(Syntax)),
    ] {
        let head = with(fields);
        assert_eq!(
            parse(&head).map(|request| request.framing),
            expected,
            "{fields:?}"
        );
    }

    let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(parse(old), Err(TransferEncoding));
}

#[test]
fn exactly_one_host_is_required() {
    for (head, expected) in [
        ("GET / HTTP/1.1\r\n\r\n", Err(Host)),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", Err(Host)),
        ("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", Err(Host)),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", Err(Host)),
        ("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", Err(Host)),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", Err(Host)),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", Ok(())),
        ("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", Ok(())),
        ("GET / HTTP/1.0\r\n\r\n", Ok(())),
    ] {
        assert_eq!(parse(head).map(|_| ()), expected, "{head:?}");
    }
}

#[test]
fn lines_and_versions_are_exact() {
    for (head, expected) in [
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", BareLineFeed),
        ("GET / HTTP/1.1\r\nHost: a\n\r\n", BareLineFeed),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", BareLineFeed),
        ("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Syntax),
        ("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Syntax),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", Syntax),
        ("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", Syntax),
        (" GET / HTTP/1.1\r\nHost: a\r\n\r\n", Syntax),
        ("G(T / HTTP/1.1\r\nHost: a\r\n\r\n", Syntax),
        ("GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", Syntax),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", Version),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Version),
        ("GET /\r\n\r\n", Syntax),
        ("\u{16}\u{3}\u{1}", Syntax),
    ] {
        assert_eq!(
            RequestHeader::parse(head.as_bytes()),
            Err(expected),
            "{head:?}"
        );
    }

    let late = "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(
        parse(late).expect("one empty line is forgiven").len,
        late.len()
    );
}

#[test]
fn invalid_header_is_refused_as_soon_as_it_is_certain() {
    let bare = b"GET / HTTP/1.1\r\nHost: a\n";
    assert_eq!(RequestHeader::parse(bare), Err(BareLineFeed));
    let endless = [b"GET /".as_slice(), &[b'x'; HEADER_BYTES_MAX]].concat();
    assert_eq!(RequestHeader::parse(&endless), Err(TooLarge));
    assert_eq!(
        RequestHeader::parse(&endless[..HEADER_BYTES_MAX - 1]),
        Ok(None)
    );
}

#[test]
fn header_is_limited_in_bytes_and_fields() {
    let filler = |bytes: usize| format!("X: {}\r\n", "y".repeat(bytes));
    let empty = with(&filler(0)).len();
    assert!(parse(&with(&filler(HEADER_BYTES_MAX - empty))).is_ok());
    assert_eq!(
        parse(&with(&filler(HEADER_BYTES_MAX - empty + 1))),
        Err(TooLarge)
    );
    assert!(parse(&with(&"X: y\r\n".repeat(FIELDS_MAX - 1))).is_ok());
    assert_eq!(parse(&with(&"X: y\r\n".repeat(FIELDS_MAX))), Err(TooLarge));
}

#[test]
fn first_reason_decides_however_the_header_is_segmented() {
    let many_fields = "X: y\r\n".repeat(FIELDS_MAX);
    for (head, expected) in [
        (
            format!("GET / HTTP/1.1\nHost: a\r\n{many_fields}\r\n"),
            BareLineFeed,
        ),
        (
            format!("GET / HTTP/1.1\r\nHost: a\r\n{many_fields}X: y\n\r\n"),
            TooLarge,
        ),
        ("GET / HTTP/2.0\r\nHost: a\n\r\n".to_owned(), Version),
        (
            format!("GET /{} \0", "x".repeat(HEADER_BYTES_MAX)),
            TooLarge,
        ),
    ] {
        let cut =
            (0..=head.len()).find_map(|end| RequestHeader::parse(&head.as_bytes()[..end]).err());
        assert_eq!(
            (cut, parse(&head).err()),
            (Some(expected), Some(expected)),
            "{head:?}"
        );
    }
}

#[test]
fn only_100_continue_is_an_expectation() {
    let request = with("Content-Length: 9\r\nExpect: 100-Continue\r\n");
    assert!(parse(&request).expect("valid").expects_continue);
    assert_eq!(parse(&with("Expect: 200-ok\r\n")), Err(Expectation));

    let old = "POST / HTTP/1.0\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n";
    assert!(
        !parse(old).expect("valid").expects_continue,
        "HTTP/1.0 knows no interim responses"
    );
}

#[test]
fn every_error_has_its_status() {
    for (error, status) in [
        (Syntax, 400),
        (TwoFramings, 400),
        (TooLarge, 431),
        (Version, 505),
        (UnknownCoding, 501),
        (Expectation, 417),
    ] {
        assert_eq!(error.status(), status, "{error:?}");
    }
}
