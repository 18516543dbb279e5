//! HTTP over hyper for the generator: HTTP/1.1 inside TLS, and HTTP/2 with and without.

mod failure;
mod session;
mod tls;

use linerate_model::http::{HttpVersion, NegotiatedProtocol};
use tokio::net::TcpStream;

pub(crate) use failure::{ClientError, Failure, Refusal};
pub(crate) use session::{Driver, NoResponse, Session, read_response};

use crate::protocol::Protocol;
use session::{Stream, Template};
use tls::Tls;

/// Protocol and request of a load.
pub(crate) struct Client {
    tls: Option<Tls>,
    pub is_http2: bool,
    template: Template,
}

/// An established connection.
pub(crate) struct Established {
    /// Sends requests.
    pub session: Session,
    /// Drives the connection: must be polled, and ends with it.
    pub driver: Driver,
    /// Negotiated protocol.
    pub protocol: NegotiatedProtocol,
}

impl Client {
    /// Prepares to send `request`, given in HTTP/1.1 form.
    ///
    /// # Errors
    /// Unreadable certificates, an invalid name, or a request HTTP/2 cannot express.
    pub(crate) fn new(protocol: &Protocol, request: &[u8]) -> Result<Self, ClientError> {
        let tls = protocol
            .tls
            .as_ref()
            .map(|peer| Tls::new(peer, protocol.is_http2));
        Ok(Self {
            tls: tls.transpose()?,
            is_http2: protocol.is_http2,
            template: Template::new(request, protocol)?,
        })
    }

    pub(crate) fn version(&self) -> HttpVersion {
        if self.is_http2 {
            HttpVersion::Http2
        } else {
            HttpVersion::Http1
        }
    }

    /// The next request.
    pub(crate) fn request(&self) -> hyper::Request<session::Upload> {
        self.template.request()
    }

    /// Performs the handshake on a new connection, without a timeout of its own.
    ///
    /// # Errors
    /// Why it failed.
    pub(crate) async fn handshake(&self, stream: TcpStream) -> Result<Established, Refusal> {
        let mut protocol = NegotiatedProtocol {
            http: self.version(),
            ..NegotiatedProtocol::default()
        };

        let stream: Box<dyn Stream> = match &self.tls {
            None => Box::new(stream),
            Some(tls) => {
                let stream = tls.secure(stream).await?;
                protocol.tls = Some(tls::protocol(&stream));
                Box::new(stream)
            }
        };
        let (session, driver) = Session::begin(stream, self.is_http2)
            .await
            .map_err(Refusal::Http)?;
        Ok(Established {
            session,
            driver,
            protocol,
        })
    }
}
