//! Failures of hyper and TLS as error classes.

use std::error::Error;
use std::io;

use linerate_model::http::ErrorClass;

use crate::load::failure::of_exchange;

/// The protocol or the request cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("the request has no end")]
    NoEnd,
    #[error("the request cannot be sent: {0}")]
    Syntax(#[from] httparse::Error),
    #[error("the request cannot be sent: {0}")]
    Request(#[from] hyper::http::Error),
    #[error("cannot speak TLS: {0}")]
    Tls(#[from] rustls::Error),
    #[error("{0:?} is not a valid DNS name or IP address")]
    Name(String),
    #[error(transparent)]
    Trust(#[from] linerate_trust::TrustError),
}

/// A failed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub class: ErrorClass,
    pub text: String,
}

/// A failed handshake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// The certificate is not trusted.
    #[error("{0}")]
    Untrusted(String),
    /// TLS failed otherwise.
    #[error("{0}")]
    Tls(String),
    /// HTTP failed to start.
    #[error("{}", .0.text)]
    Http(Failure),
}

impl Refusal {
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::Untrusted(_) | Self::Tls(_) => ErrorClass::Tls,
            Self::Http(failure) => failure.class,
        }
    }
}

impl Failure {
    /// The connection was closed in order.
    pub(crate) fn closed() -> Self {
        Self {
            class: ErrorClass::Eof,
            text: "closed before the response was complete".to_owned(),
        }
    }

    pub(crate) fn protocol(text: &str) -> Self {
        Self {
            class: ErrorClass::Protocol,
            text: text.to_owned(),
        }
    }

    /// `has_begun`: part of the response had arrived.
    pub(crate) fn of_hyper(error: &hyper::Error, has_begun: bool) -> Self {
        let mut deepest: &(dyn Error + 'static) = error;
        let mut class = None;

        // hyper wraps the error of the system; the outermost class that is known counts, and the
        // innermost text.
        while let Some(source) = deepest.source() {
            class = class.or_else(|| class_of(source, has_begun));
            deepest = source;
        }

        let class = class.unwrap_or_else(|| match error {
            error if error.is_incomplete_message() || error.is_closed() || error.is_canceled() => {
                ErrorClass::Eof
            }
            error if error.is_timeout() => ErrorClass::Timeout,
            _ => ErrorClass::Protocol,
        });
        match class {
            ErrorClass::Eof => Self::closed(),
            _ => Self {
                class,
                text: deepest.to_string(),
            },
        }
    }
}

/// True if the server closed the connection in order without processing this request (GOAWAY with a
/// lower stream, RFC 9113, section 6.8): it may be sent again, and the server never counted it.
pub(super) fn is_unprocessed(error: &hyper::Error) -> bool {
    let cause = error
        .source()
        .and_then(|source| source.downcast_ref::<h2::Error>());
    cause.is_some_and(|cause| {
        cause.is_go_away() && cause.is_remote() && cause.reason() == Some(h2::Reason::NO_ERROR)
    })
}

/// Error class of an error kind; `None` where the kind does not determine it.
fn class_of(error: &(dyn Error + 'static), has_begun: bool) -> Option<ErrorClass> {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return of_io(error, has_begun);
    }

    let error = error.downcast_ref::<h2::Error>()?;
    if let Some(error) = error.get_io() {
        return of_io(error, has_begun);
    }

    // GOAWAY with NO_ERROR is a graceful shutdown (RFC 9113, section 6.8).
    let is_orderly = error.reason() == Some(h2::Reason::NO_ERROR);
    match error {
        error if error.is_go_away() && is_orderly => Some(ErrorClass::Eof),
        error if error.is_remote() => Some(of_reset(has_begun)),
        _ => Some(ErrorClass::Protocol),
    }
}

fn of_io(error: &io::Error, has_begun: bool) -> Option<ErrorClass> {
    // tokio-rustls reports errors of TLS inside those of I/O.
    if error
        .get_ref()
        .is_some_and(|inner| inner.is::<rustls::Error>())
    {
        return Some(ErrorClass::Tls);
    }

    match error.kind() {
        io::ErrorKind::UnexpectedEof => Some(ErrorClass::Eof),
        // h2 reports this for streams whose connection is gone.
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Some(of_reset(has_begun)),
        _ if error.raw_os_error().is_some() => Some(of_exchange(error, has_begun, false)),
        _ => None,
    }
}

fn of_reset(has_begun: bool) -> ErrorClass {
    if has_begun {
        ErrorClass::ResetMidAnswer
    } else {
        ErrorClass::ResetBeforeAnswer
    }
}
