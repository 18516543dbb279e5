//! Checks of fuzz targets. The unit tests of the protocol crates include the modules and run them on
//! random input.

pub mod fleet;
pub mod iperf2;
pub mod iperf3;
pub mod native;
mod script;
mod segments;
pub mod stamp;
pub mod texts;
pub mod web;

/// One check of a target that has several: a function over arbitrary bytes that panics when a
/// promise is broken, and may return a count.
pub trait Check {
    /// Runs it.
    fn run(&self, data: &[u8]);
}

impl<R, F: Fn(&[u8]) -> R> Check for F {
    fn run(&self, data: &[u8]) {
        let _ = self(data);
    }
}

/// Runs the check that the first byte selects, on the bytes behind it.
pub fn one_of(data: &[u8], checks: &[&dyn Check]) {
    if let Some((&selected, input)) = data.split_first() {
        checks[usize::from(selected) % checks.len()].run(input);
    }
}

/// A check of input in segments: the first byte is the number of their lengths, which follow it.
pub fn in_segments<R>(check: impl Fn(&[u8], &[u8]) -> R) -> impl Fn(&[u8]) -> R {
    move |data| {
        let (count, rest) = data
            .split_first()
            .map_or((0, data), |(&n, rest)| (usize::from(n), rest));
        let (cuts, input) = rest.split_at(count.min(rest.len()));
        check(cuts, input)
    }
}

/// A check of the valid text at the start of the input.
pub fn as_text<R>(check: impl Fn(&str) -> R) -> impl Fn(&[u8]) -> R {
    move |data| check(data.utf8_chunks().next().map_or("", |chunk| chunk.valid()))
}
