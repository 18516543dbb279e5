//! Entry points for fuzzing. Not part of the library.

mod request;
mod response;

pub use request::{answer_requests, decode_chunks};
pub use response::response;
