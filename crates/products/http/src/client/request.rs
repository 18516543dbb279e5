//! Requests for hyper, made from the bytes the own event loop sends.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri, http};

use super::failure::ClientError;
use crate::message::request::FIELDS_MAX;
use crate::protocol::Protocol;

/// A request that is sent many times.
pub(super) struct Template {
    method: Method,
    uri: Uri,
    fields: HeaderMap,
    body: Bytes,
}

impl Template {
    pub(super) fn new(bytes: &[u8], protocol: &Protocol) -> Result<Self, ClientError> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut head = httparse::Request::new(&mut fields);
        let httparse::Status::Complete(head_bytes) = head.parse(bytes)? else {
            return Err(ClientError::NoEnd);
        };
        let mut kept = HeaderMap::new();

        for field in head.headers.iter() {
            let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(http::Error::from)?;
            kept.append(
                name,
                HeaderValue::from_bytes(field.value).map_err(http::Error::from)?,
            );
        }

        let path = head.path.unwrap_or("/");
        let uri = if protocol.is_http2 {
            // HTTP/2 has pseudo-headers for scheme and host (RFC 9113, section 8.3.1).
            let host = kept.remove(HOST).unwrap_or(HeaderValue::from_static(""));
            let scheme = if protocol.tls.is_some() {
                "https"
            } else {
                "http"
            };
            let uri = Uri::builder().scheme(scheme).authority(host.as_bytes());
            uri.path_and_query(path).build()
        } else {
            Uri::builder().path_and_query(path).build()
        };
        Ok(Self {
            method: Method::from_bytes(head.method.unwrap_or("GET").as_bytes())
                .map_err(http::Error::from)?,
            uri: uri?,
            fields: kept,
            body: Bytes::copy_from_slice(bytes.get(head_bytes..).unwrap_or_default()),
        })
    }

    pub(super) fn request(&self) -> Request<Upload> {
        let mut request = Request::new(Upload(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.fields.clone();
        request
    }
}

/// The rest of a body.
pub(crate) struct Upload(Bytes);

impl Body for Upload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let left = std::mem::take(&mut self.0);
        Poll::Ready((!left.is_empty()).then_some(Ok(Frame::data(left))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{TlsPeer, Trust};

    const POST: &[u8] =
        b"POST /a?b HTTP/1.1\r\nHost: h:8443\r\nX-A: b\r\nContent-Length: 3\r\n\r\nabc";

    fn template(is_http2: bool) -> Template {
        let protocol = Protocol {
            is_http2,
            tls: Some(TlsPeer {
                name: "h".to_owned(),
                trust: Trust::System,
            }),
        };
        Template::new(POST, &protocol).expect("a request")
    }

    #[test]
    fn http1_names_the_host_in_a_field_and_http2_beside_the_path() {
        let first = template(false).request();
        assert_eq!(first.uri().to_string(), "/a?b");
        assert_eq!(first.headers()["host"], "h:8443");

        let second = template(true).request();
        assert_eq!(second.uri().to_string(), "https://h:8443/a?b");
        assert!(!second.headers().contains_key("host"));

        for request in [first, second] {
            assert_eq!(request.method(), Method::POST);
            assert_eq!(request.headers()["x-a"], "b");
            assert_eq!(request.body().size_hint().exact(), Some(3));
        }
    }

    #[test]
    fn incomplete_request_is_refused() {
        assert!(Template::new(b"GET / HTTP/1.1\r\nHost: h\r\n", &Protocol::default()).is_err());
    }
}
