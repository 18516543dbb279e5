//! Comparisons, trends, grids and lists of runs as text and HTML; records in the forms of other programs.

pub mod compare;
pub mod export;
pub mod grid;
pub mod list;
pub mod trend;

#[cfg(test)]
fn assert_expected(name: &str, text: &str) {
    linerate_document::expected::assert_expected_in(env!("CARGO_MANIFEST_DIR"), name, text);
}
