//! Pointers, strings, streams and panics between C and Rust, for the libraries that programs in C
//! load.
//!
//! [`Text`], [`ArgVector`] and [`Callback`] are the parameters of exported functions that plain
//! references cannot be. A value of theirs comes from the caller in C, who promises what the
//! documentation of each type states; so the exported functions need no `unsafe` code. Objects are
//! parameters as `Option<&T>` and `Option<Box<T>>`, which have the layout of pointers: the caller
//! promises that they came from the function that makes them and are freed once.

// What C passes cannot be checked; the rest of both libraries is free of `unsafe` blocks.
#![allow(unsafe_code)]

mod apart;
mod callback;
mod stdio;
mod text;

pub use apart::{Panicked, guard, run_apart};
pub use callback::{Callback, TextFunction};
pub use stdio::{CFile, Stderr, Stdout, stdout_file};
pub use text::{ArgVector, Kept, Text};
