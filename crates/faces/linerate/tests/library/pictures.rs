//! Goal: pictures of README and of the documents show what reports draw today. Method: each is the
//! drawing or the text of a recorded run, compared with its file; `make pictures` writes the files.

use std::fs;
use std::path::{Path, PathBuf};

use linerate::report::{Form, ReportSpec, report};
use linerate_document::page::escaped;
use linerate_document::style::Style;
use linerate_model::record::{Detail, RunRecord};

/// Records whose pages have the drawings, their titles there, and the pictures.
const PICTURES: [(&str, &str, &str); 5] = [
    ("path.json", "Over time", "timeline.svg"),
    ("path.json", "Latency", "latency.svg"),
    ("sweep.json", "Received by streams", "sweep.svg"),
    ("fleet.json", "", "fleet.svg"),
    ("http.json", "Payload MB/s", "http.svg"),
];
/// The text of a test, and its picture.
const TEXT: (&str, &str) = ("path.json", "terminal.svg");
/// Size of a character of a terminal, and of its margin.
const CHAR: [usize; 2] = [8, 18];
const MARGIN: usize = 16;

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

/// The wide drawing with this title as a file of its own: its title and what a reader must know,
/// the style of its page, the drawing.
fn picture(page: &str, title: &str) -> String {
    let figure = between(page, &format!("<figcaption>{title}"), "</figure>");
    let (caption, _) = figure.split_once("</figcaption>").expect("a caption");
    let caption = format!("{title}{caption}")
        .replace("<small>", "<tspan class=\"soft\" dx=\"8\">")
        .replace("</small>", "</tspan>");
    let drawing = between(figure, "<svg class=\"broad\" viewBox=\"0 0 900 ", "</svg>");
    let (height, drawing) = drawing.split_once('"').expect("a height");
    let (head, content) = drawing.split_once('>').expect("attributes");
    let style = between(page, "<style>", "</style>");

    let height: u32 = height.parse().expect("a number");
    let (top, height) = (CAPTION_HEIGHT, height + CAPTION_HEIGHT);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" font-family=\"system-ui, sans-serif\" \
         viewBox=\"0 -{top} 900 {height}\"{head}>\n<style>{style}\nsvg {{ background: var(--paper) }}</style>\n\
         <text class=\"name\" x=\"8\" y=\"-8\">{caption}</text>{content}</svg>\n"
    )
}

/// Room for the title above a drawing.
const CAPTION_HEIGHT: u32 = 24;

/// The command line of a recorded test and its report, as a terminal of 80 columns shows them.
fn terminal(record: &str) -> String {
    let file = repository().join("fixtures/records").join(record);
    let text = fs::read_to_string(file).expect("a record");
    let record: RunRecord = serde_json::from_str(&text).expect("a record");
    let Some(Detail::Path(test)) = &record.trials[0].detail else {
        panic!("no test of a path");
    };

    let diagnosis = record.diagnosis.as_deref();
    let shown = linerate_path::report::text(test, diagnosis, false, Style::UNSTYLED);
    let command = format!("$ {}", record.origin.argv.join(" "));
    let lines: Vec<&str> = std::iter::once(&*command).chain(shown.lines()).collect();
    let line = |(number, line): (usize, &&str)| {
        // The command and the answer stand out.
        let class = ["command", "answer"].get(number).unwrap_or(&"");
        let y = MARGIN + CHAR[1] * (number + 1) - 4;
        format!(
            "<text class=\"{class}\" x=\"{MARGIN}\" y=\"{y}\">{}</text>\n",
            escaped(line)
        )
    };
    let texts: String = lines.iter().enumerate().map(line).collect();

    let [width, height] = [80 * CHAR[0], lines.len() * CHAR[1]].map(|side| side + 2 * MARGIN);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" xml:space=\"preserve\" width=\"{width}\" viewBox=\"0 0 {width} \
         {height}\" role=\"img\" aria-label=\"{}\">\n<style>{TERMINAL_STYLE}</style>\n<rect \
         width=\"100%\" height=\"100%\" rx=\"8\"/>\n{texts}</svg>\n",
        escaped(lines[1])
    )
}

const TERMINAL_STYLE: &str = "\
rect { fill: #16181c } text { font: 13.3px/1 ui-monospace, 'DejaVu Sans Mono', monospace; \
white-space: pre; fill: #e4e6ea } .command { fill: #a3abb8 } .answer { font-weight: 600 }";

#[test]
fn pictures_are_those_that_reports_draw() {
    let drawn = PICTURES.map(|(record, title, name)| (picture(&page_of(record), title), name));
    let text = (terminal(TEXT.0), TEXT.1);
    for (drawn, name) in drawn.into_iter().chain([text]) {
        let file = repository().join("docs/pictures").join(name);
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            fs::write(&file, &drawn).expect("a writable folder");
        }

        let kept = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(kept, drawn, "{name} is out of date: make pictures");
    }
}
