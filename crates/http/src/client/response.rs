//! Responses of hyper.

use std::future::poll_fn;
use std::pin::Pin;

use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, RETRY_AFTER};
use hyper::{Response, Version};

use super::failure::Failure;
use crate::load::response::{HASH_START, ReceivedResponse, hash_more};
use crate::message::framing::ConnectionOptions;

/// Contents of a response header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// The connection is persistent.
    pub(crate) keeps_alive: bool,
    pub(crate) has_retry_after: bool,
}

impl Head {
    pub(crate) fn of(response: &Response<Incoming>) -> Self {
        let mut options = ConnectionOptions::default();
        for value in response.headers().get_all(CONNECTION) {
            options.add(value.as_bytes());
        }
        let version = response.version();
        Self {
            status: response.status().as_u16(),
            keeps_alive: version == Version::HTTP_2 || options.keeps_alive(version == Version::HTTP_11),
            has_retry_after: response.headers().contains_key(RETRY_AFTER),
        }
    }
}

/// Reads a body to its end and drops it.
///
/// # Errors
/// A failure, or more than `bytes_max` bytes.
pub(crate) async fn read_body(
    head: Head,
    mut body: Incoming,
    is_hashed: bool,
    bytes_max: u64,
) -> Result<ReceivedResponse, Failure> {
    let (mut body_bytes, mut hash) = (0_u64, HASH_START);
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|error| Failure::of_hyper(&error, true))?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        body_bytes += data.len() as u64;
        if body_bytes > bytes_max {
            return Err(Failure::protocol("the body is larger than 1 GiB"));
        }
        if is_hashed {
            hash = hash_more(hash, data);
        }
    }
    Ok(ReceivedResponse {
        status: head.status,
        keeps_alive: head.keeps_alive,
        has_retry_after: head.has_retry_after,
        head_bytes: None,
        body_bytes,
        hash,
    })
}
