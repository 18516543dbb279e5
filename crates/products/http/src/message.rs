//! HTTP/1.1 messages (RFC 9112): headers, framing, bodies. No sockets, no clock.

pub(crate) mod body;
pub(crate) mod chunked;
pub(crate) mod request;
pub(crate) mod response;

#[cfg(test)]
mod request_tests;

/// Reason phrases of RFC 9110.
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}
