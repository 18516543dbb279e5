//! An established connection of either version of HTTP, its requests and its responses.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::{http1, http2};
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::rt::Executor;
use hyper::{Method, Request, Response, Uri, Version, http};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::failure::{self, ClientError, Failure};
use crate::load::response::{HASH_START, ReceivedResponse, hash_more};
use crate::message::body::ConnectionOptions;
use crate::message::request::FIELDS_MAX;
use crate::protocol::Protocol;

/// A byte stream. One type, so that hyper is compiled once.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Sends requests on one connection. In HTTP/2 every copy has its own request in flight.
pub(crate) enum Session {
    Http1(http1::SendRequest<Upload>),
    Http2(http2::SendRequest<Upload>),
}

/// Drives a connection; ends with it.
pub(crate) type Driver = Pin<Box<dyn Future<Output = Result<(), hyper::Error>>>>;

/// A request without a response.
#[derive(Debug)]
pub(crate) enum NoResponse {
    /// It was not sent, or the server did not process it: the connection had ended.
    NotSent,
    /// It failed.
    Failed(Failure),
}

impl Session {
    /// Starts HTTP on a connection.
    ///
    /// # Errors
    /// Write failures.
    pub(super) async fn begin(
        stream: Box<dyn Stream>,
        is_http2: bool,
    ) -> Result<(Self, Driver), Failure> {
        let failed = |error: hyper::Error| Failure::of_hyper(&error, false);
        let io = TokioIo::new(stream);

        if is_http2 {
            let builder = http2::Builder::new(SameThread);
            let (sender, connection) = builder.handshake(io).await.map_err(failed)?;
            Ok((Self::Http2(sender), Box::pin(connection)))
        } else {
            let (sender, connection) = http1::handshake(io).await.map_err(failed)?;
            Ok((Self::Http1(sender), Box::pin(connection)))
        }
    }

    /// Copies for concurrent requests; HTTP/1.1 has one.
    pub(crate) fn split(self, count: u32) -> Vec<Self> {
        match self {
            Self::Http1(_) => vec![self],
            Self::Http2(sender) => (0..count.max(1))
                .map(|_| Self::Http2(sender.clone()))
                .collect(),
        }
    }

    /// Waits until a request can be sent; `false` when the connection has ended.
    pub(crate) async fn is_ready(&mut self) -> bool {
        match self {
            Self::Http1(sender) => sender.ready().await.is_ok(),
            Self::Http2(sender) => sender.ready().await.is_ok(),
        }
    }

    /// Sends a request and waits for the header of its response.
    pub(crate) async fn send(
        &mut self,
        request: Request<Upload>,
    ) -> Result<Response<Incoming>, NoResponse> {
        let completed = match self {
            Self::Http1(sender) => sender.try_send_request(request).await,
            Self::Http2(sender) => sender.try_send_request(request).await,
        };
        completed.map_err(|mut error| {
            // hyper returns a request that it has not written to the connection.
            if error.take_message().is_some() || failure::is_unprocessed(error.error()) {
                NoResponse::NotSent
            } else {
                NoResponse::Failed(Failure::of_hyper(error.error(), false))
            }
        })
    }
}

/// Runs the background tasks of HTTP/2 in the current thread.
#[derive(Debug, Clone, Copy)]
struct SameThread;

impl<F: Future<Output = ()> + 'static> Executor<F> for SameThread {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

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

/// Reads a response to the end of its body, which is dropped.
///
/// # Errors
/// A failure, or more than `bytes_max` bytes.
pub(crate) async fn read_response(
    response: Response<Incoming>,
    is_hashed: bool,
    bytes_max: u64,
) -> Result<ReceivedResponse, Failure> {
    let mut options = ConnectionOptions::default();
    for value in response.headers().get_all(CONNECTION) {
        options.add(value.as_bytes());
    }

    let version = response.version();
    let mut received = ReceivedResponse {
        status: response.status().as_u16(),
        // HTTP/2 has no `Connection` field (RFC 9113, section 8.2.2).
        keeps_alive: version == Version::HTTP_2 || options.keeps_alive(version == Version::HTTP_11),
        has_retry_after: response.headers().contains_key(RETRY_AFTER),
        head_bytes: None,
        body_bytes: 0,
        hash: HASH_START,
    };

    let mut body = response.into_body();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|error| Failure::of_hyper(&error, true))?;
        // Trailers are no payload.
        let Some(data) = frame.data_ref() else {
            continue;
        };
        received.body_bytes += data.len() as u64;

        if received.body_bytes > bytes_max {
            return Err(Failure::protocol("the body is larger than 1 GiB"));
        }

        if is_hashed {
            received.hash = hash_more(received.hash, data);
        }
    }

    Ok(received)
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
