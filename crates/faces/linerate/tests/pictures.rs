//! Goal: pictures of README and of the documents show what reports draw today. Method: each is the
//! drawing of a recorded run, compared with its file; `make pictures` writes the files.

use std::fs;
use std::path::{Path, PathBuf};

use linerate::report::{Form, ReportSpec, report};

/// Records whose pages have the drawings, their titles there, and the pictures.
const PICTURES: [(&str, &str, &str); 3] = [
    ("path.json", "Over time", "timeline.svg"),
    ("path.json", "Latency", "latency.svg"),
    ("sweep.json", "received by streams", "sweep.svg"),
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn page_of(record: &str) -> String {
    let file = repository().join("fixtures/records").join(record);
    let spec = ReportSpec::new(vec![file.display().to_string()], Form::Html);
    report(&spec).expect("a page")
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(start).expect(start);
    rest.split_once(end).expect(end).0
}

/// The wide drawing with this title as a file of its own, with the style of its page.
fn picture(page: &str, title: &str) -> String {
    let figure = between(page, &format!("<figcaption>{title}"), "</figure>");
    let drawing = between(figure, "<svg class=\"broad\"", "</svg>");
    let (head, content) = drawing.split_once('>').expect("attributes");
    let style = between(page, "<style>", "</style>");
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" font-family=\"system-ui, \
         sans-serif\"{head}>\n<style>{style}\nsvg {{ background: var(--paper) }}</style>{content}</svg>\n"
    )
}

#[test]
fn pictures_are_those_that_reports_draw() {
    for (record, title, name) in PICTURES {
        let drawn = picture(&page_of(record), title);
        let file = repository().join("docs/pictures").join(name);
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            fs::write(&file, &drawn).expect("a writable folder");
        }

        let kept = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(kept, drawn, "{name} is out of date: make pictures");
    }
}
