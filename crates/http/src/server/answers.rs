//! The heads of answers.

use std::sync::Arc;

use super::asked::Asked;
use super::body_path::BodyPath;
use super::chunks::Chunks;
use super::content::Content;
use super::date::{DATE_BYTES, imf_fixdate};
use super::figures::Counters;
use super::outbox::Outbox;

/// Writes answers. One per thread.
#[derive(Debug)]
pub(crate) struct Answers {
    content: Arc<Content>,
    /// `None` when answers have none.
    date: Option<[u8; DATE_BYTES]>,
    /// The whole line, or nothing.
    server_field: Vec<u8>,
}

/// How an answer fits the request it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reply {
    /// What was asked for.
    pub(crate) asked: Asked,
    /// The client speaks HTTP/1.1 rather than HTTP/1.0.
    pub(crate) is_http11: bool,
    /// The connection stays open.
    pub(crate) keep_alive: bool,
}

impl Reply {
    /// The answer to what could not be read.
    pub(crate) const fn refusal(status: u16) -> Self {
        Self {
            asked: Asked::status(status),
            is_http11: true,
            keep_alive: false,
        }
    }
}

impl Answers {
    /// Answers with a date unless told otherwise; `server` is the value of a `Server` field.
    pub(crate) fn new(content: Arc<Content>, with_date: bool, server: Option<&str>) -> Self {
        let server_field = server.map(|name| format!("Server: {name}\r\n").into_bytes());
        Self {
            content,
            date: with_date.then(|| imf_fixdate(0)),
            server_field: server_field.unwrap_or_default(),
        }
    }

    /// What bodies refer to.
    pub(crate) fn content(&self) -> &Content {
        &self.content
    }

    /// Moves the date on.
    pub(crate) fn set_date(&mut self, unix_seconds: u64) {
        if let Some(date) = &mut self.date {
            *date = imf_fixdate(unix_seconds);
        }
    }

    /// Adds an answer on a connection that is paced or not; see [`super::body_path::is_paced`].
    pub(crate) fn push(&self, reply: Reply, is_paced: bool, counters: &Counters, outbox: &mut Outbox) {
        counters.responses.add(1);
        if reply.asked.status >= 400 {
            counters.error_responses.add(1);
        }
        let Asked {
            body_bytes,
            chunk_bytes,
            ..
        } = reply.asked;
        // HTTP/1.0 does not know chunks.
        let chunk_bytes = chunk_bytes.filter(|_| reply.is_http11);
        outbox.write(|bytes| self.write_head(bytes, &reply, chunk_bytes.is_some()));
        let Some(body_bytes) = body_bytes.filter(|_| !reply.asked.head_only) else {
            return;
        };
        counters.payload_bytes.add(body_bytes);
        let filling = reply.asked.filling;
        match chunk_bytes {
            Some(chunk_bytes) => outbox.push_chunks(Chunks::new(filling, body_bytes, chunk_bytes.get())),
            None => {
                let path = BodyPath::of(body_bytes, is_paced);
                outbox.push_body(&self.content, filling, body_bytes, path);
            }
        }
    }

    /// Tells a client that waits that it may send its body.
    pub(crate) fn push_continue(outbox: &mut Outbox) {
        outbox.write(|bytes| bytes.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n"));
    }

    fn write_head(&self, bytes: &mut Vec<u8>, reply: &Reply, is_chunked: bool) {
        match reply.asked.status {
            200 => bytes.extend_from_slice(b"HTTP/1.1 200 OK\r\n"),
            status => write_status_line(bytes, status),
        }
        if let Some(date) = &self.date {
            bytes.extend_from_slice(b"Date: ");
            bytes.extend_from_slice(date);
            bytes.extend_from_slice(b"\r\n");
        }
        if let Some(body_bytes) = reply.asked.body_bytes {
            bytes.extend_from_slice(b"Content-Type: application/octet-stream\r\n");
            if is_chunked {
                bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
            } else {
                bytes.extend_from_slice(b"Content-Length: ");
                write_decimal(bytes, body_bytes);
                bytes.extend_from_slice(b"\r\n");
            }
        }
        bytes.extend_from_slice(&self.server_field);
        // In HTTP/1.1 an open connection is the rule, in HTTP/1.0 the exception that has to be confirmed.
        if !reply.keep_alive {
            bytes.extend_from_slice(b"Connection: close\r\n");
        } else if !reply.is_http11 {
            bytes.extend_from_slice(b"Connection: keep-alive\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
    }
}

fn write_status_line(bytes: &mut Vec<u8>, status: u16) {
    bytes.extend_from_slice(b"HTTP/1.1 ");
    write_decimal(bytes, status.into());
    bytes.push(b' ');
    bytes.extend_from_slice(reason(status).as_bytes());
    bytes.extend_from_slice(b"\r\n");
}

/// Digits without the machinery of formatting, because every answer has some.
fn write_decimal(bytes: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut rest = number;
    let mut first = digits.len();
    for (index, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        first = index;
        if rest == 0 {
            break;
        }
    }
    bytes.extend_from_slice(digits.get(first..).unwrap_or_default());
}

/// The phrases of RFC 9110 for the codes we send by ourselves; others go without.
fn reason(status: u16) -> &'static str {
    match status {
        204 => "No Content",
        400 => "Bad Request",
        404 => "Not Found",
        413 => "Content Too Large",
        417 => "Expectation Failed",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::request::{Method, Target};

    fn head(path: &str, query: &str, is_http11: bool, keep_alive: bool) -> String {
        let mut answers = Answers::new(Arc::default(), true, None);
        answers.set_date(784_111_777);
        let asked = Asked::read(Method::Head, Target::Path { path, query });
        let reply = Reply {
            asked,
            is_http11,
            keep_alive,
        };
        let mut bytes = Vec::new();
        answers.write_head(&mut bytes, &reply, asked.chunk_bytes.is_some());
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn a_head_has_four_lines_and_114_bytes_beside_its_digits() {
        let text = head("/10k", "", true, true);
        assert_eq!(
            text,
            "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: application/octet-stream\r\n\
             Content-Length: 10240\r\n\r\n"
        );
        assert_eq!(text.len(), 114 + 5);
    }

    #[test]
    fn the_connection_is_mentioned_where_it_is_not_the_rule() {
        assert!(head("/0", "", true, false).ends_with("Content-Length: 0\r\nConnection: close\r\n\r\n"));
        assert!(head("/0", "", false, true).ends_with("Content-Length: 0\r\nConnection: keep-alive\r\n\r\n"));
        assert!(head("/nowhere", "", true, true).starts_with("HTTP/1.1 404 Not Found\r\n"));
        assert!(head("/1k", "chunked=10", true, true).ends_with("Transfer-Encoding: chunked\r\n\r\n"));
    }

    #[test]
    fn the_date_can_be_left_out_and_a_server_named() {
        let answers = Answers::new(Arc::default(), false, Some("linerate/1"));
        let mut bytes = Vec::new();
        answers.write_head(
            &mut bytes,
            &Reply {
                keep_alive: true,
                ..Reply::refusal(204)
            },
            false,
        );
        let text = String::from_utf8(bytes).expect("text");
        assert!(
            !text.contains("Date") && text.contains("\r\nServer: linerate/1\r\n"),
            "{text}"
        );
    }

    #[test]
    fn numbers_are_written_as_digits() {
        for number in [0, 7, 10, 102_400, u64::MAX] {
            let mut bytes = Vec::new();
            write_decimal(&mut bytes, number);
            assert_eq!(bytes, number.to_string().into_bytes());
        }
    }
}
