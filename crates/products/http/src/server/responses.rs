//! Response headers.

use std::io::Write;
use std::sync::Arc;

use jiff::Timestamp;

use super::chunks::Chunks;
use super::content::Content;
use super::resource::Resource;
use super::stats::Counters;
use super::write_queue::WriteQueue;
use crate::message::reason;

/// Writes responses. One per thread.
#[derive(Debug)]
pub(crate) struct ResponseWriter {
    pub content: Arc<Content>,
    /// `None` without a `Date` field.
    date: Option<String>,
    /// The whole `Server` field; empty without one.
    server_field: Vec<u8>,
}

/// A response to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Response {
    /// Status and body.
    pub resource: Resource,
    /// HTTP/1.1 rather than HTTP/1.0.
    pub is_http11: bool,
    /// The connection is persistent.
    pub keep_alive: bool,
}

impl Response {
    /// Rejects a request and closes the connection.
    pub(crate) const fn refusal(status: u16) -> Self {
        Self {
            resource: Resource::status(status),
            is_http11: true,
            keep_alive: false,
        }
    }
}

impl ResponseWriter {
    /// `server` is the value of the `Server` field.
    pub(crate) fn new(content: Arc<Content>, with_date: bool, server: Option<&str>) -> Self {
        let server_field = server.map(|name| format!("Server: {name}\r\n").into_bytes());
        Self {
            content,
            // The event loop fills it in before it handles its first event.
            date: with_date.then(String::new),
            server_field: server_field.unwrap_or_default(),
        }
    }

    /// Updates the `Date` field.
    pub(crate) fn set_date(&mut self, unix_seconds: u64) {
        if let Some(date) = &mut self.date {
            *date = imf_fixdate(unix_seconds);
        }
    }

    /// Queues a response.
    pub(crate) fn push(&self, response: Response, counters: &Counters, queue: &mut WriteQueue) {
        counters.responses.add(1);
        if response.resource.status >= 400 {
            counters.error_responses.add(1);
        }

        let Resource {
            body_bytes,
            chunk_bytes,
            ..
        } = response.resource;
        // HTTP/1.0 has no chunked coding.
        let chunk_bytes = chunk_bytes.filter(|_| response.is_http11);
        queue.write(|bytes| self.write_header(bytes, &response, chunk_bytes.is_some()));

        // A response to `HEAD` has the fields of `GET` and no content (RFC 9110, section 9.3.2).
        let Some(body_bytes) = body_bytes.filter(|_| !response.resource.head_only) else {
            return;
        };
        counters.payload_bytes.add(body_bytes);
        if let Some(text) = response.resource.explanation {
            return queue.write(|bytes| bytes.extend_from_slice(text.as_bytes()));
        }

        let pattern = response.resource.pattern;
        match chunk_bytes {
            Some(chunk_bytes) => {
                queue.push_chunks(Chunks::new(pattern, body_bytes, chunk_bytes.get()));
            }
            None => queue.push_body(&self.content, pattern, body_bytes),
        }
    }

    fn write_header(&self, bytes: &mut Vec<u8>, response: &Response, is_chunked: bool) {
        match response.resource.status {
            // The status of nearly all responses needs no formatting.
            200 => bytes.extend_from_slice(b"HTTP/1.1 200 OK\r\n"),
            status => bytes
                .extend_from_slice(format!("HTTP/1.1 {status} {}\r\n", reason(status)).as_bytes()),
        }

        if let Some(date) = &self.date {
            bytes.extend_from_slice(b"Date: ");
            bytes.extend_from_slice(date.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }

        // 204 must not have a `Content-Length` (RFC 9110, section 8.6).
        if let Some(body_bytes) = response.resource.body_bytes {
            bytes.extend_from_slice(match response.resource.explanation {
                None => b"Content-Type: application/octet-stream\r\n",
                Some(_) => b"Content-Type: text/plain\r\n",
            });
            if is_chunked {
                bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
            } else {
                // Writing to a vector does not fail.
                let _ = write!(bytes, "Content-Length: {body_bytes}\r\n");
            }
        }

        bytes.extend_from_slice(&self.server_field);
        // Persistence is the default of HTTP/1.1 and must be confirmed in HTTP/1.0.
        if !response.keep_alive {
            bytes.extend_from_slice(b"Connection: close\r\n");
        } else if !response.is_http11 {
            bytes.extend_from_slice(b"Connection: keep-alive\r\n");
        }

        bytes.extend_from_slice(b"\r\n");
    }
}

/// The format of the `Date` field (RFC 9110, section 5.6.7).
fn imf_fixdate(unix_seconds: u64) -> String {
    let seconds = i64::try_from(unix_seconds).unwrap_or(i64::MAX);
    let time = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
    time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::request::Target;

    fn header(path: &str, query: &str, is_http11: bool, keep_alive: bool) -> String {
        let mut responses = ResponseWriter::new(Arc::default(), true, None);
        responses.set_date(784_111_777);
        let resource = Resource::read("HEAD", Target::Path { path, query }, 1);
        let response = Response {
            resource,
            is_http11,
            keep_alive,
        };

        let mut bytes = Vec::new();
        responses.write_header(&mut bytes, &response, resource.chunk_bytes.is_some());
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn a_head_has_four_lines_and_114_bytes_beside_its_digits() {
        let text = header("/10k", "", true, true);
        assert_eq!(
            text,
            "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: \
             application/octet-stream\r\n\
             Content-Length: 10240\r\n\r\n"
        );
        assert_eq!(text.len(), 114 + 5);
    }

    #[test]
    fn connection_field_is_sent_where_it_is_not_the_default() {
        assert!(
            header("/0", "", true, false)
                .ends_with("Content-Length: 0\r\nConnection: close\r\n\r\n")
        );
        assert!(
            header("/0", "", false, true)
                .ends_with("Content-Length: 0\r\nConnection: keep-alive\r\n\r\n")
        );
        assert!(header("/nowhere", "", true, true).starts_with("HTTP/1.1 404 Not Found\r\n"));
        assert!(
            header("/1k", "chunked=10", true, true).ends_with("Transfer-Encoding: chunked\r\n\r\n")
        );
    }

    #[test]
    fn date_is_optional_and_server_field_is_added() {
        let responses = ResponseWriter::new(Arc::default(), false, Some("linerate/1"));
        let mut bytes = Vec::new();
        responses.write_header(
            &mut bytes,
            &Response {
                keep_alive: true,
                ..Response::refusal(204)
            },
            false,
        );

        let text = String::from_utf8(bytes).expect("text");
        assert!(
            !text.contains("Date") && text.contains("\r\nServer: linerate/1\r\n"),
            "{text}"
        );
    }
}
