//! Parsers and the server's machine on arbitrary bytes, in one piece and in segments. For tests and
//! fuzzing.

mod request;
mod response;
#[path = "../../../../tests/fuzz/src/segments.rs"]
mod segments;

#[cfg(test)]
pub(crate) use request::decode;
pub use request::{answer_requests, decode_chunks};
pub use response::response;
