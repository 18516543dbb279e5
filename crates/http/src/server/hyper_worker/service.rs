//! Requests that hyper has read, and what is answered.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;

use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, SERVER};
use hyper::{Request, Response, StatusCode, Version};

use super::Host;
use super::body::Payload;
use crate::message::request::{Method, Target};
use crate::server::asked::{Asked, Pause};
use crate::server::content::Content;
use crate::server::conversation::Rules;
use crate::server::figures::Counters;

/// Answers the requests of a connection.
pub(super) struct Service {
    content: Arc<Content>,
    counters: Arc<Counters>,
    rules: Rules,
    server: Option<HeaderValue>,
}

impl Service {
    pub(super) fn new(host: &Host) -> Self {
        let server = host.server_header.as_deref();
        Self {
            content: Arc::clone(&host.content),
            counters: Arc::clone(&host.counters),
            rules: host.shared.rules,
            server: server.and_then(|name| HeaderValue::from_str(name).ok()),
        }
    }

    fn response(&self, asked: Asked, is_http1: bool) -> Response<Payload> {
        self.counters.responses.add(1);
        if asked.status >= 400 {
            self.counters.error_responses.add(1);
        }
        let body_bytes = asked.body_bytes.filter(|_| !asked.head_only).unwrap_or_default();
        self.counters.payload_bytes.add(body_bytes);
        // HTTP/2 has frames of its own.
        let chunk_bytes = asked.chunk_bytes.filter(|_| is_http1 && !asked.head_only);
        let payload = Payload::new(
            Arc::clone(&self.content),
            asked.filling,
            body_bytes,
            chunk_bytes.map(u64::from),
        );
        let mut response = Response::new(payload);
        *response.status_mut() = StatusCode::from_u16(asked.status).unwrap_or_default();
        let fields = response.headers_mut();
        if let Some(announced_bytes) = asked.body_bytes {
            fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
            if chunk_bytes.is_none() {
                fields.insert(CONTENT_LENGTH, announced_bytes.into());
            }
        }
        if let Some(server) = &self.server {
            fields.insert(SERVER, server.clone());
        }
        if asked.close && is_http1 {
            fields.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

impl hyper::service::Service<Request<Incoming>> for Service {
    type Response = Response<Payload>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Payload>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.counters.requests.add(1);
        let asked = asked(&request, self.rules.with_aids);
        let is_http1 = request.version() < Version::HTTP_2;
        let this = Self {
            content: Arc::clone(&self.content),
            counters: Arc::clone(&self.counters),
            rules: self.rules,
            server: self.server.clone(),
        };
        Box::pin(async move {
            let asked = match swallow(request.into_body(), this.rules.body_bytes_max).await {
                Ok(()) => asked,
                Err(status) => Asked::refusal(status),
            };
            match asked.pause {
                Some(Pause::Delay(length)) => tokio::time::sleep(length).await,
                // The whole thread stands still: that is what it is for.
                Some(Pause::Stall(length)) => std::thread::sleep(length),
                None => {}
            }
            Ok(this.response(asked, is_http1))
        })
    }
}

fn asked(request: &Request<Incoming>, with_aids: bool) -> Asked {
    let method = match request.method().as_str() {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        other => Method::Other(other),
    };
    let uri = request.uri();
    let target = match uri.path() {
        "*" => Target::Server,
        path => Target::Path {
            path,
            query: uri.query().unwrap_or_default(),
        },
    };
    Asked::read(method, target, with_aids)
}

/// Reads a body to its end and throws it away; the status of a refusal when it is too long or breaks off.
///
/// A body that is a little too long is read all the same: in HTTP/2 letting go of it resets the stream, and the client
/// would not see why.
async fn swallow(mut body: Incoming, body_bytes_max: u64) -> Result<(), u16> {
    let patience_bytes = body_bytes_max.saturating_add(EXCESS_BYTES_MAX);
    let mut received_bytes = 0;
    while body.size_hint().lower() <= patience_bytes && received_bytes <= patience_bytes {
        let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await else {
            break;
        };
        let frame = frame.map_err(|_| BAD_REQUEST)?;
        received_bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
    }
    let is_too_long = received_bytes.saturating_add(body.size_hint().lower()) > body_bytes_max;
    if is_too_long { Err(CONTENT_TOO_LARGE) } else { Ok(()) }
}

/// What is read beyond the longest body.
const EXCESS_BYTES_MAX: u64 = 1 << 20;
const BAD_REQUEST: u16 = 400;
const CONTENT_TOO_LARGE: u16 = 413;
