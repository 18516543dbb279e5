//! The probe over hyper.

use std::io;
use std::net::{self, SocketAddr};
use std::time::Instant;

use hyper::header::{HeaderName, LOCATION, SERVER};
use linerate_model::http::ErrorClass;
use tokio::net::TcpStream;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::timeout;

use super::{BYTES_MAX, ProbeError, ProbeResult, ProbeTarget, connect};
use crate::client::{Client, Established, Failure, NoResponse, Refusal, read_response};

pub(super) fn send(target: ProbeTarget<'_>, request: &[u8]) -> Result<ProbeResult, ProbeError> {
    let client = Client::new(target.protocol, request)
        .map_err(|error| ProbeError::Request(error.to_string()))?;
    let exchange = |error| ProbeError::Exchange(target.address, error);
    let executor = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    // Connecting has a timeout of its own.
    let stream = connect(target)?;
    let all = async {
        timeout(
            target.timeout,
            exchange_with(target.address, stream, &client),
        )
        .await
    };
    let completed = LocalSet::new().block_on(&executor.map_err(exchange)?, all);

    completed.unwrap_or(Err(ProbeError::Silent(target.address, target.timeout)))
}

async fn exchange_with(
    address: SocketAddr,
    stream: net::TcpStream,
    client: &Client,
) -> Result<ProbeResult, ProbeError> {
    let stream = stream
        .set_nonblocking(true)
        .and_then(|()| TcpStream::from_std(stream));
    let stream = stream.map_err(|error| ProbeError::Connect(address, error))?;
    let established = client
        .handshake(stream)
        .await
        .map_err(|refusal| match refusal {
            Refusal::Untrusted(text) => ProbeError::Untrusted(address, text),
            Refusal::Tls(text) => ProbeError::Tls(address, text),
            Refusal::Http(failure) => failure_of(address, client, &failure),
        })?;

    let Established {
        mut session,
        driver,
        protocol,
    } = established;
    // A failure of the connection is reported by the exchange as well.
    spawn_local(driver);

    let begin = Instant::now();
    let sent = session.send(client.request()).await;
    let response = sent.map_err(|unanswered| match unanswered {
        NoResponse::NotSent => failure_of(address, client, &Failure::closed()),
        NoResponse::Failed(failure) => failure_of(address, client, &failure),
    })?;
    let field = |name: &HeaderName| {
        let value = response.headers().get(name);
        value.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let server = field(&SERVER);
    let location = field(&LOCATION);
    let response = read_response(response, false, BYTES_MAX).await;
    let response = response.map_err(|failure| failure_of(address, client, &failure))?;

    Ok(ProbeResult {
        protocol,
        status: response.status,
        head_bytes: None,
        body_bytes: response.body_bytes,
        keeps_alive: response.keeps_alive,
        server,
        location,
        elapsed: begin.elapsed(),
    })
}

fn failure_of(address: SocketAddr, client: &Client, failure: &Failure) -> ProbeError {
    let protocol = client.version().name();
    match failure.class {
        ErrorClass::Tls => ProbeError::Tls(address, failure.text.clone()),
        ErrorClass::Protocol => ProbeError::Protocol(address, protocol, failure.text.clone()),
        _ => ProbeError::Exchange(address, io::Error::other(failure.text.clone())),
    }
}
