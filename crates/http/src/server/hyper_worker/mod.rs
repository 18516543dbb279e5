//! A thread of a server that speaks TLS or HTTP/2: hyper on an executor of its own.
//!
//! Not part of the performance targets: a connection owns its buffers here, idle or not.

mod body;
mod certificate;
mod progress;
mod service;
mod tls;

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::content::Content;
use super::figures::Counters;
use super::worker::Shared;
use crate::message::request::HEAD_BYTES_MAX;
use progress::{Progress, Watched};
use service::Service;

pub use tls::Identity;
pub(super) use tls::identity;

/// One thread.
pub(super) struct HyperWorker {
    executor: Runtime,
    listeners: Vec<OwnedFd>,
    host: Arc<Host>,
}

/// What the connections of a thread have in common.
pub(super) struct Host {
    /// Absent for HTTP/1.1 and HTTP/2 in plain text.
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) shared: Arc<Shared>,
    pub(super) counters: Arc<Counters>,
    pub(super) content: Arc<Content>,
    /// Value of a `Server` field.
    pub(super) server_header: Option<String>,
    pub(super) without_date: bool,
}

impl HyperWorker {
    /// Prepares a thread.
    ///
    /// # Errors
    /// The operating system's, for instance `EMFILE`.
    pub(super) fn new(listeners: Vec<OwnedFd>, host: Host) -> io::Result<Self> {
        Ok(Self {
            executor: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
            listeners,
            host: Arc::new(host),
        })
    }

    /// Serves until it is told to stop, which is looked at when the bell rings.
    pub(super) fn run(self, bell: &Notify) {
        let Self {
            executor,
            listeners,
            host,
        } = self;
        executor.block_on(async {
            for listener in listeners {
                tokio::spawn(accept_all(Arc::clone(&host), listener));
            }
            while !host.shared.stop.load(Ordering::Acquire) {
                bell.notified().await;
            }
        });
    }
}

impl Host {
    /// Accounts for a new connection; `false` when there are too many.
    fn admit(&self) -> bool {
        let is_admitted = self.shared.open.fetch_add(1, Ordering::Relaxed) < self.shared.connections_max;
        if is_admitted {
            self.counters.accepted.add(1);
        } else {
            // Before the handshake there is no way to say why.
            self.counters.refused_at_limit.add(1);
            self.shared.open.fetch_sub(1, Ordering::Relaxed);
        }
        is_admitted
    }

    fn release(&self) {
        self.counters.closed.add(1);
        self.shared.open.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn accept_all(host: Arc<Host>, listener: OwnedFd) {
    let Ok(listener) = tokio::net::TcpListener::from_std(TcpListener::from(listener)) else {
        return;
    };
    loop {
        match listener.accept().await {
            Ok((_, peer)) if !host.shared.guests.include(peer.ip()) => host.counters.refused_by_address.add(1),
            Ok((stream, _)) if host.admit() => {
                tokio::spawn(serve_and_release(Arc::clone(&host), stream));
            }
            Ok(_) => {}
            // No descriptor or no memory: whoever asks again at once asks forever.
            Err(_) => {
                host.counters.descriptors_exhausted.add(1);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn serve_and_release(host: Arc<Host>, stream: TcpStream) {
    let progress = Progress::default();
    let stream = Watched::new(stream, progress.clone(), Arc::clone(&host.counters));
    match &host.tls {
        None => serve(&host, stream, &progress).await,
        Some(acceptor) => {
            // Whoever cannot finish a handshake has nothing to say to us.
            if let Ok(Ok(stream)) = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
                serve(&host, stream, &progress).await;
            }
        }
    }
    host.release();
}

/// Serves until the connection ends, or until nothing has moved for the idle timeout.
async fn serve<S>(host: &Host, stream: S, progress: &Progress)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // What is idle is closed below; this is for heads that come byte by byte, which move.
        .header_read_timeout(host.shared.idle_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .auto_date_header(!host.without_date);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEAD_LIST_BYTES_MAX)
        .max_concurrent_streams(STREAMS_MAX)
        .auto_date_header(!host.without_date);
    let service = Service::new(host);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    loop {
        let before = progress.get();
        match timeout(host.shared.idle_timeout, connection.as_mut()).await {
            Ok(Err(error)) if is_timeout(&*error) => return host.counters.timed_out.add(1),
            // An end is an end, however else it came about.
            Ok(_) => return,
            Err(_) if progress.get() == before => return host.counters.timed_out.add(1),
            Err(_) => {}
        }
    }
}

fn is_timeout(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref().is_some_and(hyper::Error::is_timeout)
}

/// Pause after the system had no descriptor for a connection.
const PAUSE: Duration = Duration::from_millis(100);
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// As [`HEAD_BYTES_MAX`], in the type HTTP/2 wants.
const HEAD_LIST_BYTES_MAX: u32 = 16 * 1024;
/// Requests at a time on one connection of HTTP/2.
const STREAMS_MAX: u32 = 256;
