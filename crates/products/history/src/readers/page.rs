//! The records within a page that `linerate report` wrote.

use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;

use super::TEXT_BYTES_MAX;

const LINK: &str = "data:application/gzip;base64,";

pub(super) fn is_page(text: &str) -> bool {
    text.get(..14)
        .is_some_and(|start| start.eq_ignore_ascii_case("<!doctype html"))
}

/// The records behind the links of a page, as JSON; those that exceed the longest text are left
/// out.
pub(super) fn records(page: &str) -> Vec<String> {
    let mut left = TEXT_BYTES_MAX;
    let links = page
        .split(LINK)
        .skip(1)
        .map_while(|rest| rest.split('"').next());
    let records = links.filter_map(|link| {
        let compressed = STANDARD.decode(link).ok()?;
        let mut text = String::new();
        let length = GzDecoder::new(&compressed[..])
            // A small page can expand without bound; one byte above the limit shows it.
            .take(left as u64 + 1)
            .read_to_string(&mut text)
            .ok()?;
        left = left.checked_sub(length)?;
        Some(text)
    });

    records.collect()
}
