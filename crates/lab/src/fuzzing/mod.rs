//! Entrances for fuzzing. Not part of the library.

mod plan;
mod sweep;

pub use plan::plan_from_anything;
pub use sweep::factors_from_anything;
