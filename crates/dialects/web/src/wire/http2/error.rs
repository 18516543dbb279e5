//! Errors of a connection (RFC 9113, section 7).

/// Why a connection ends: a code (section 7), and what the client did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("HTTP/2: {1}")]
pub struct Http2Error(pub(super) u32, pub(super) &'static str);

// Codes.
pub(super) const PROTOCOL_ERROR: u32 = 1;
pub(super) const FLOW_CONTROL_ERROR: u32 = 3;
pub(super) const FRAME_SIZE_ERROR: u32 = 6;
pub(super) const REFUSED_STREAM: u32 = 7;
pub(super) const COMPRESSION_ERROR: u32 = 9;
pub(super) const ENHANCE_YOUR_CALM: u32 = 11;
pub(super) const HTTP_1_1_REQUIRED: u32 = 13;

pub(super) fn check(holds: bool, code: u32, text: &'static str) -> Result<(), Http2Error> {
    if holds {
        Ok(())
    } else {
        Err(Http2Error(code, text))
    }
}
