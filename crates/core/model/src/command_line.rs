//! Parts of the command lines of several dialects: `getopt_long(3)`, numbers as C programs read
//! them, tables of options and values.
//!
//! Everything here is a function over text; the dialects read files, the environment and the
//! terminal.

pub mod getopt;
pub mod numbers;
pub mod table;
pub mod tos;
pub mod values;
