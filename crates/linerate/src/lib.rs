//! Network throughput tests and diagnosis as a library.
#![forbid(unsafe_code)]
