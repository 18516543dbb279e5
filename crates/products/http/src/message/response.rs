//! Response headers (RFC 9112, sections 4 and 6.3).
//!
//! Accepts what servers send, but no response with ambiguous framing: two lengths that differ, a
//! length beside chunks, or an unknown transfer coding are errors, because the next response would
//! begin at the wrong byte.

use super::body::{BodyFraming, ConnectionOptions, add_length};

/// A parsed header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResponseHeader {
    /// Bytes of the header with the empty line.
    pub len: usize,
    /// Status code, 100 to 999.
    pub status: u16,
    /// Framing of the body.
    pub framing: BodyFraming,
    /// The connection is persistent.
    pub keeps_alive: bool,
    /// It has a `Retry-After` field.
    pub has_retry_after: bool,
}

impl ResponseHeader {
    /// An interim response (1xx, except a change of protocol).
    pub(crate) fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }
}

/// Why a response is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResponseError {
    #[error("the response is not HTTP/1: {0}")]
    Malformed(httparse::Error),
    #[error("the response header has more than {HEADER_BYTES_MAX} bytes or {FIELDS_MAX} fields")]
    TooLong,
    #[error("the response's Content-Length is not one number")]
    Length,
    #[error("the response has both Content-Length and Transfer-Encoding")]
    LengthAndChunks,
    #[error("the response's Transfer-Encoding is not chunked")]
    Coding,
    #[error("the response changes the protocol")]
    Upgrade,
}

/// Longest header in bytes.
pub(crate) const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Most fields of a header.
pub(crate) const FIELDS_MAX: usize = 128;

/// Parses the header at the start of `input`; `None` while it is incomplete. `is_response_to_head`:
/// the request was `HEAD`, so no body follows. After an error the rest of the connection is
/// unusable.
pub(crate) fn parse(
    input: &[u8],
    is_response_to_head: bool,
) -> Result<Option<ResponseHeader>, ResponseError> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut fields);
    let len = match response.parse(input) {
        Ok(httparse::Status::Complete(len)) if len <= HEADER_BYTES_MAX => len,
        Ok(httparse::Status::Partial) if input.len() < HEADER_BYTES_MAX => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(ResponseError::TooLong),
        Err(error) => return Err(ResponseError::Malformed(error)),
    };

    let status = response.code.unwrap_or_default();
    // Bytes after it belong to another protocol (RFC 9110, section 15.2.2).
    if status == 101 {
        return Err(ResponseError::Upgrade);
    }

    let fields = Fields::read(response.headers)?;
    let framing = fields.framing(status, is_response_to_head)?;
    let keeps_alive = fields.options.keeps_alive(response.version == Some(1));
    Ok(Some(ResponseHeader {
        len,
        status,
        framing,
        // The end of the connection is the end of such a body.
        keeps_alive: keeps_alive && framing != BodyFraming::UntilClose,
        has_retry_after: fields.has_retry_after,
    }))
}

/// The fields that matter.
#[derive(Default)]
struct Fields {
    length: Option<u64>,
    is_chunked: bool,
    options: ConnectionOptions,
    has_retry_after: bool,
}

impl Fields {
    fn read(headers: &[httparse::Header<'_>]) -> Result<Self, ResponseError> {
        let mut fields = Self::default();
        for header in headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                fields.length =
                    Some(add_length(fields.length, header.value).ok_or(ResponseError::Length)?);
            } else if is("transfer-encoding") {
                // A sender applies `chunked` at most once (RFC 9112, section 6.1).
                if fields.is_chunked || !header.value.trim_ascii().eq_ignore_ascii_case(b"chunked")
                {
                    return Err(ResponseError::Coding);
                }
                fields.is_chunked = true;
            } else if is("connection") {
                fields.options.add(header.value);
            } else if is("retry-after") {
                fields.has_retry_after = true;
            }
        }

        Ok(fields)
    }

    fn framing(
        &self,
        status: u16,
        is_response_to_head: bool,
    ) -> Result<BodyFraming, ResponseError> {
        // These have no body, whatever their fields are (RFC 9112, section 6.3).
        if is_response_to_head || (100..200).contains(&status) || status == 204 || status == 304 {
            return Ok(BodyFraming::None);
        }

        match (self.is_chunked, self.length) {
            (true, Some(_)) => Err(ResponseError::LengthAndChunks),
            (true, None) => Ok(BodyFraming::Chunked),
            (false, Some(length)) => Ok(BodyFraming::Length(length)),
            (false, None) => Ok(BodyFraming::UntilClose),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ResponseError::*;
    use super::*;

    fn head(text: &str) -> Result<Option<ResponseHeader>, ResponseError> {
        parse(text.as_bytes(), false)
    }

    fn framing(fields: &str) -> Result<BodyFraming, ResponseError> {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        head(&text).map(|head| head.expect("it is complete").framing)
    }

    #[test]
    fn framing_is_unambiguous() {
        assert_eq!(
            framing("Content-Length: 12\r\n"),
            Ok(BodyFraming::Length(12))
        );
        assert_eq!(
            framing("content-length: 12\r\nContent-Length: 12\r\n"),
            Ok(BodyFraming::Length(12))
        );
        assert_eq!(
            framing("Transfer-Encoding: Chunked\r\n"),
            Ok(BodyFraming::Chunked)
        );
        assert_eq!(framing(""), Ok(BodyFraming::UntilClose));

        for (fields, expected) in [
            ("Content-Length: 12\r\nContent-Length: 13\r\n", Length),
            ("Content-Length: +12\r\n", Length),
            ("Content-Length: 1, 1\r\n", Length),
            ("Content-Length:\r\n", Length),
            (
                "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
                LengthAndChunks,
            ),
            ("Transfer-Encoding: gzip, chunked\r\n", Coding),
            (
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                Coding,
            ),
        ] {
            assert_eq!(framing(fields), Err(expected), "{fields:?}");
        }
    }

    #[test]
    fn some_responses_never_have_a_body() {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
        let to_head = parse(text.as_bytes(), true)
            .expect("valid")
            .expect("complete");
        assert_eq!(to_head.framing, BodyFraming::None);

        for status in [204, 304, 100, 103] {
            let text = format!("HTTP/1.1 {status} X\r\nContent-Length: 9\r\n\r\n");
            let head = head(&text).expect("valid").expect("complete");
            assert_eq!(head.framing, BodyFraming::None, "{status}");
            assert_eq!(head.is_interim(), status < 200);
        }
    }

    #[test]
    fn persistence_depends_on_version_and_fields() {
        for (text, expected) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n",
                false,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: x, close\r\n\r\n",
                false,
            ),
            ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false),
            (
                "HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n",
                true,
            ),
            ("HTTP/1.1 200 OK\r\n\r\n", false),
        ] {
            assert_eq!(
                head(text).expect("valid").expect("complete").keeps_alive,
                expected,
                "{text:?}"
            );
        }
    }

    #[test]
    fn header_is_complete_with_its_last_byte() {
        let text = "HTTP/1.1 503 Busy\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n";
        for len in 0..text.len() {
            assert_eq!(head(&text[..len]), Ok(None), "{len} bytes");
        }

        let whole = head(text).expect("valid").expect("complete");
        assert_eq!(
            (whole.len, whole.status, whole.has_retry_after),
            (text.len(), 503, true)
        );
    }

    #[test]
    fn endless_and_foreign_headers_are_refused() {
        let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(HEADER_BYTES_MAX));
        assert_eq!(head(&endless), Err(TooLong));
        let many = format!(
            "HTTP/1.1 200 OK\r\n{}\r\n",
            "a: b\r\n".repeat(FIELDS_MAX + 1)
        );
        assert_eq!(head(&many), Err(TooLong));
        assert!(matches!(head("SSH-2.0-x\r\n\r\n"), Err(Malformed(_))));
        assert_eq!(head("HTTP/1.1 101 X\r\n\r\n"), Err(Upgrade));
    }
}
