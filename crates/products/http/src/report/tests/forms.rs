//! A study as HTML and JSON.

use linerate_model::http::{CeilingPoint, Phase, Study};

use super::super::{html, json, text};
use super::fixtures::{full, hostile, large};
use super::{BLOCKS, all};

#[test]
fn html_is_well_formed_and_one_file() {
    for (name, study) in all() {
        let page = html(&study);
        assert!(
            page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"),
            "{name}"
        );
        for foreign in [
            "<script", "src=", "href=", "url(", "@import", "NaN", "\u{1b}", "\u{202e}",
        ] {
            assert!(!page.contains(foreign), "{name}: {foreign}");
        }

        check_tags(name, &page);
    }

    let page = html(&hostile());
    assert!(page.contains("&lt;script&gt;alert(1)"));
    assert!(page.contains("prefers-color-scheme: dark"));
}

/// Every tag is closed in order, and attributes are quoted.
fn check_tags(name: &str, page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some(place) = rest.find('<') {
        let tag = &rest[place + 1..];
        let end = tag
            .find('>')
            .unwrap_or_else(|| panic!("{name}: a tag has no end"));
        let (inner, after) = (&tag[..end], &tag[end + 1..]);
        rest = after;

        let word = inner
            .split([' ', '/'])
            .find(|word| !word.is_empty())
            .unwrap_or_default();
        assert_eq!(inner.matches('"').count() % 2, 0, "{name}: {inner}");
        assert!(!inner.contains('<'), "{name}: {inner}");

        if inner.starts_with('/') {
            assert_eq!(open.pop(), Some(word), "{name}: {inner}");
        } else if !inner.ends_with('/') && !matches!(word, "!DOCTYPE" | "meta") {
            open.push(word);
        }
    }

    assert!(open.is_empty(), "{name}: {open:?}");
}

#[test]
fn page_has_answers_and_heat_map_first_then_charts_and_folded_tables() {
    let page = html(&full());
    let places: Vec<usize> = [
        "<p class=\"verdict\">Use 64 connections for 1k",
        "<figcaption>Payload MB/s",
        "<figcaption>Payload throughput over connections",
        "<p class=\"remark\">client: ",
        "<details><summary>TCP without HTTP",
        "<details><summary>99th percentile",
        "<details><summary>Checks before the runs",
        "<details><summary>Plan",
    ]
    .map(|part| page.find(part).unwrap_or_else(|| panic!("no {part}")))
    .into();
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(
        page.matches("<caption>").count(),
        0,
        "every table is folded"
    );

    // 47.5 of 103.8 MB/s, and the best one.
    assert!(
        page.contains("class=\"cell\" style=\"--heat:46%\""),
        "{page}"
    );
    assert!(
        page.contains("class=\"cell framed best\" style=\"--heat:100%\""),
        "{page}"
    );
}

#[test]
fn charts_are_drawn_where_there_is_a_curve() {
    let page = html(&full());
    for title in [
        "Payload throughput over connections",
        "Latency over connections",
        "Responses/s over payloads",
        "Latency by quantile",
        "Memory over idle connections",
    ] {
        assert!(page.contains(&format!("<figcaption>{title}")), "{title}");
    }

    let drawings = page.matches("<svg ").count();
    assert_eq!(drawings, 2 * 6, "one in each width");
    assert_eq!(page.matches("role=\"img\" aria-label=\"").count(), drawings);
    assert_eq!(page.matches("</svg>\n<details>").count(), 5);

    let first = plot(&page, "Payload throughput");
    assert_eq!(
        first.matches("class=\"line limit").count(),
        2 * 2 * 3,
        "a line and its name for each payload in each width"
    );
    assert_eq!(
        first.matches("class=\"ring").count(),
        2 * 3,
        "the best stable cells"
    );
    assert!(
        first.contains(">c64</td>") && first.contains(">103.8 MB/s</td>"),
        "{first}"
    );
    assert_eq!(
        plot(&page, "Latency over").matches(">knee</text>").count(),
        2 * 3,
        "the cliffs"
    );
    assert!(page.contains("medians of 3 runs</small>"));

    let mut two_points = full();
    two_points
        .cells
        .retain(|cell| cell.key.phase != Phase::Matrix || cell.key.connections <= 64);
    let page = html(&two_points);
    assert!(
        !page.contains("over connections") && page.contains("<figcaption>Responses/s"),
        "{page}"
    );
}

/// The figure whose title begins so.
fn plot<'a>(page: &'a str, title: &str) -> &'a str {
    let from = page
        .find(&format!("<figcaption>{title}"))
        .expect("the plot");
    &page[from..from + page[from..].find("</figure>").expect("its end")]
}

#[test]
fn what_the_network_allows_is_a_curve_and_the_table_has_the_payloads_that_were_run() {
    let third = |study: &Study| plot(&html(study), "Responses/s").to_owned();
    let mut study = full();
    let straight = third(&study);

    study.ceiling = (40..=68)
        .map(|quarter| {
            let payload_bytes = 2_f64.powf(f64::from(quarter) / 4.0) as u64;
            CeilingPoint {
                payload_bytes,
                responses_per_s: 1.1e8 / payload_bytes as f64,
            }
        })
        .collect();
    let curved = third(&study);

    let corners = |figure: &str| {
        let lines = figure.split("class=\"line limit h1\" d=\"").skip(1);
        let points = lines.filter_map(|rest| rest.split('"').next());
        points.map(|points| points.split('l').count()).max()
    };
    assert_eq!(
        (corners(&straight), corners(&curved)),
        (Some(3), Some(29)),
        "{curved}"
    );
    assert_eq!(
        straight.matches("<tr>").count(),
        curved.matches("<tr>").count()
    );
}

#[test]
fn a_thousand_cells_stay_small() {
    let study = large(20, 50);
    assert_eq!(study.cells.len(), 1000);
    assert!(html(&study).len() < 2 << 20);
    assert!(text(&study, true, BLOCKS).len() < 1 << 20);
    assert!(html(&study).contains("the first 8 of 20 payloads"));
}

#[test]
fn json_is_the_study_as_it_is() {
    // The last has a thousand cells, and no key that the others lack.
    for (name, study) in all().into_iter().take(6) {
        let text = json(&study);
        let read: Study = serde_json::from_str(&text).expect("a study");
        assert!(read == study, "{name}");
        assert_eq!(json(&read), text, "{name}: keys keep their order");
    }

    assert!(json(&full()).starts_with("{\n  \"schema\": \"linerate.http/1\",\n  \"target\": "));
}
