//! Responses of hyper.

use std::future::poll_fn;
use std::pin::Pin;

use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, RETRY_AFTER};
use hyper::{Response, Version};

use super::failure::Failure;
use crate::load::response::{HASH_START, ReceivedResponse, hash_more};
use crate::message::framing::ConnectionOptions;

/// Reads a response to the end of its body, which is dropped.
///
/// # Errors
/// A failure, or more than `bytes_max` bytes.
pub(crate) async fn read(
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
