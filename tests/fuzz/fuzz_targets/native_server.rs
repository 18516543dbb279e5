//! Connections of a native server: TLS, requests and responses.
#![no_main]

use linerate_engine::fuzzing::{tls_stream, transactions};
use linerate_fuzz::one_of;

libfuzzer_sys::fuzz_target!(|data: &[u8]| one_of(data, &[&tls_stream, &transactions,]));
