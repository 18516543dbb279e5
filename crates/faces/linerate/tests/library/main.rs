//! Tests of the library, in one program: each of its own would link all products again.

mod doctor_field;
mod doctor_fixtures;
mod doctor_garbage;
mod doctor_pasted;
mod examples;
#[cfg(feature = "full")]
mod history_scale;
mod pictures;
mod reports_field;
mod threads;
#[cfg(feature = "full")]
mod view;
