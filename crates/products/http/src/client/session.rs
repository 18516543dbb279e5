//! An established connection of either version of HTTP.

use std::future::Future;
use std::pin::Pin;

use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::rt::Executor;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::failure::{self, Failure};
use super::request::Upload;

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
