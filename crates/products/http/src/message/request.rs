//! Request headers (RFC 9112, sections 2 to 6), parsed strictly.
//!
//! `httparse` finds the lines; what it accepts and other implementations interpret differently is
//! refused here: bare line feeds, leading blank lines, lengths that are lists or differ, transfer
//! codings other than `chunked` alone, folded lines, no host or two. No proxy can be made to see
//! other boundaries between requests.

use std::mem::MaybeUninit;

use super::body::{BodyFraming, ConnectionOptions, add_length};

/// Longest header in bytes: request line, fields and the empty line.
pub(crate) const HEADER_BYTES_MAX: usize = 16 * 1024;
/// Most fields of a header.
pub(crate) const FIELDS_MAX: usize = 100;

/// A parsed header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestHeader<'a> {
    /// Method; names are case-sensitive.
    pub method: &'a str,
    pub target: Target<'a>,
    /// HTTP/1.1 rather than HTTP/1.0.
    pub is_http11: bool,
    /// Framing of the body; never [`BodyFraming::UntilClose`].
    pub framing: BodyFraming,
    /// The connection is persistent. An HTTP/1.0 client needs a confirmation.
    pub keep_alive: bool,
    /// The client waits for `100 Continue` before it sends its body.
    pub expects_continue: bool,
    /// Bytes of the header with the empty line.
    pub len: usize,
}

/// Request target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    /// A path that begins with `/`, and the query behind its `?`, possibly empty. The authority of
    /// an absolute form is dropped.
    Path {
        /// The path; percent signs are not decoded.
        path: &'a str,
        /// The query without its `?`.
        query: &'a str,
    },
    /// The server as a whole: `OPTIONS *`.
    Server,
}

/// Why a request is refused. The start of the next request is unknown afterwards, so the connection
/// closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestError {
    /// Malformed request line or field.
    Syntax,
    /// Line ends with LF alone.
    BareLineFeed,
    /// Header exceeds [`HEADER_BYTES_MAX`] bytes or [`FIELDS_MAX`] fields.
    TooLarge,
    /// HTTP version is neither 1.1 nor 1.0.
    Version,
    /// Request target is no path and no http URL.
    Target,
    /// No Host, several, or an invalid one.
    Host,
    /// Invalid or conflicting Content-Length.
    ContentLength,
    /// Both Content-Length and Transfer-Encoding.
    TwoFramings,
    /// Invalid Transfer-Encoding.
    TransferEncoding,
    /// Transfer coding other than chunked.
    UnknownCoding,
    /// Expectation other than 100-continue.
    Expectation,
}

impl RequestError {
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::TooLarge => 431,
            Self::Version => 505,
            Self::UnknownCoding => 501,
            Self::Expectation => 417,
            _ => 400,
        }
    }
}

impl<'a> RequestHeader<'a> {
    /// Parses the header at the start of `input`; `None` while it is incomplete.
    ///
    /// The result depends on the bytes alone, not on their segmentation: the first error decides,
    /// as soon as it is certain.
    pub(crate) fn parse(input: &'a [u8]) -> Result<Option<Self>, RequestError> {
        // A client may send an empty line behind a body (RFC 9112, section 2.2).
        let head = input.strip_prefix(b"\r\n").unwrap_or(input);
        let skipped = input.len() - head.len();
        // `httparse` would skip any number of empty lines.
        if head.starts_with(b"\n") || head.starts_with(b"\r\n") {
            return Err(RequestError::Syntax);
        }

        // What follows may be bodies and further requests, whose bytes do not count.
        let head = head.get(..HEADER_BYTES_MAX).unwrap_or(head);
        // Not initialised: a hundred entries would be written for every request.
        let mut lines = [const { MaybeUninit::uninit() }; FIELDS_MAX];

        let mut request = httparse::Request::new(&mut []);
        match request.parse_with_uninit_headers(head, &mut lines) {
            Ok(httparse::Status::Complete(len))
                if has_bare_line_feed(head.get(..len).unwrap_or(head)) =>
            {
                Err(RequestError::BareLineFeed)
            }
            Ok(httparse::Status::Complete(len)) => {
                Self::assemble(&request, len + skipped).map(Some)
            }
            Ok(httparse::Status::Partial) => incomplete(head).map(|()| None),
            Err(error) => Err(first_reason(head, of_httparse(error))),
        }
    }

    fn assemble(request: &httparse::Request<'_, 'a>, len: usize) -> Result<Self, RequestError> {
        let is_http11 = request.version == Some(1);
        let mut fields = Fields::default();

        for field in request.headers.iter() {
            fields.take(field)?;
        }

        let method = request.method.unwrap_or_default();
        // Either gets 400 (RFC 9112, section 3.2).
        if fields.hosts > 1 || (is_http11 && fields.hosts == 0) {
            return Err(RequestError::Host);
        }

        Ok(Self {
            method,
            target: Target::read(method, request.path.unwrap_or_default())?,
            is_http11,
            framing: fields.framing(is_http11)?,
            keep_alive: fields.options.keeps_alive(is_http11),
            // HTTP/1.0 has no interim responses.
            expects_continue: is_http11 && fields.expects_continue,
            len,
        })
    }
}

impl<'a> Target<'a> {
    fn read(method: &str, target: &'a str) -> Result<Self, RequestError> {
        // The asterisk form belongs to `OPTIONS` alone (RFC 9112, section 3.2.4).
        if target == "*" && method == "OPTIONS" {
            return Ok(Self::Server);
        }

        let path = if target.starts_with('/') {
            target
        } else {
            behind_authority(target).ok_or(RequestError::Target)?
        };
        // A fragment is no part of a request target (RFC 9112, section 3.2).
        if path.contains('#') {
            return Err(RequestError::Target);
        }

        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        // An empty path is equivalent to `/` (RFC 9110, section 4.2.3).
        let path = if path.is_empty() { "/" } else { path };
        Ok(Self::Path { path, query })
    }
}

/// Path and query of an absolute form (RFC 9112, section 3.2.2).
fn behind_authority(target: &str) -> Option<&str> {
    let (scheme, rest) = target.split_once("://")?;
    let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);

    // User information in a request is refused as phishing (RFC 9110, section 4.2.4).
    (is_http && !authority.is_empty() && is_host(authority.as_bytes())).then_some(path)
}

/// Fields that matter.
#[derive(Default)]
struct Fields {
    hosts: u8,
    length: Option<u64>,
    codings: u8,
    is_chunked: bool,
    options: ConnectionOptions,
    expects_continue: bool,
}

impl Fields {
    fn take(&mut self, field: &httparse::Header<'_>) -> Result<(), RequestError> {
        let value = field.value;
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        // The length rules out almost every other field.
        match field.name.len() {
            4 if is("host") => {
                self.hosts = self.hosts.saturating_add(1);
                ensure(is_host(value), RequestError::Host)
            }
            6 if is("expect") => {
                // Another expectation gets 417 (RFC 9110, section 10.1.1).
                self.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
                ensure(self.expects_continue, RequestError::Expectation)
            }
            10 if is("connection") => {
                self.options.add(value);
                Ok(())
            }
            14 if is("content-length") => {
                self.length = add_length(self.length, value);
                ensure(self.length.is_some(), RequestError::ContentLength)
            }
            17 if is("transfer-encoding") => {
                self.codings = self.codings.saturating_add(1);
                self.is_chunked = value.eq_ignore_ascii_case(b"chunked");
                let is_single = self.codings == 1 && !value.is_empty();
                ensure(is_single, RequestError::TransferEncoding)?;
                // A coding that the server does not know gets 501 (RFC 9112, section 6.1).
                ensure(self.is_chunked, RequestError::UnknownCoding)
            }
            _ => Ok(()),
        }
    }

    fn framing(&self, is_http11: bool) -> Result<BodyFraming, RequestError> {
        match (self.is_chunked, self.length) {
            // Both may be an attempt of request smuggling (RFC 9112, section 6.3).
            (true, Some(_)) => Err(RequestError::TwoFramings),
            (true, None) if is_http11 => Ok(BodyFraming::Chunked),
            // In HTTP/1.0 the framing counts as faulty (RFC 9112, section 6.1).
            (true, None) => Err(RequestError::TransferEncoding),
            (false, None | Some(0)) => Ok(BodyFraming::None),
            (false, Some(length)) => Ok(BodyFraming::Length(length)),
        }
    }
}

fn ensure(is_met: bool, error: RequestError) -> Result<(), RequestError> {
    is_met.then_some(()).ok_or(error)
}

/// A name or an address with or without a port; empty is allowed (RFC 9110, section 7.2).
fn is_host(value: &[u8]) -> bool {
    let is_host_byte =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+;=:[]".contains(byte);
    value.iter().all(is_host_byte)
}

/// Checks that an incomplete header may become valid.
fn incomplete(head: &[u8]) -> Result<(), RequestError> {
    if has_bare_line_feed(head) {
        return Err(RequestError::BareLineFeed);
    }
    if head.len() >= HEADER_BYTES_MAX {
        return Err(RequestError::TooLarge);
    }

    Ok(())
}

/// Checks every pair of bytes without stopping at the first hit, so that the compiler can vectorise
/// it.
fn has_bare_line_feed(lines: &[u8]) -> bool {
    let before = lines.iter();
    let pairs = before.zip(lines.iter().skip(1));
    lines.first() == Some(&b'\n')
        || pairs.fold(false, |found, (a, b)| {
            found | ((*b == b'\n') & (*a != b'\r'))
        })
}

/// A bare line feed before the position of the `httparse` error takes precedence.
fn first_reason(head: &[u8], error: RequestError) -> RequestError {
    let bare = head.iter().enumerate().find(|(at, byte)| {
        let before = at.checked_sub(1).and_then(|before| head.get(before));
        **byte == b'\n' && before != Some(&b'\r')
    });
    let Some((at, _)) = bare else { return error };
    let mut lines = [const { MaybeUninit::uninit() }; FIELDS_MAX];

    // Parsed alone, these lines show an error that precedes the bare line feed.
    let up_to_it = head.get(..=at).unwrap_or(head);
    match httparse::Request::new(&mut []).parse_with_uninit_headers(up_to_it, &mut lines) {
        Ok(_) => RequestError::BareLineFeed,
        Err(earlier) => of_httparse(earlier),
    }
}

fn of_httparse(error: httparse::Error) -> RequestError {
    match error {
        httparse::Error::TooManyHeaders => RequestError::TooLarge,
        httparse::Error::Version => RequestError::Version,
        _ => RequestError::Syntax,
    }
}
