//! Parts of a page that a reader sees first: the answer in large type, the path as a line, and
//! findings as cards. A terminal has the same in sentences.

use std::fmt::Write;

use linerate_model::finding::Severity;

use crate::page::shown;

/// The answer of a page, or of one run on a page of several.
#[derive(Default)]
pub struct Head {
    /// The ends of what was measured: `lab1 → 192.0.2.7`.
    pub title: String,
    /// When, how long, by what.
    pub facts: Vec<String>,
    /// The answer in one sentence.
    pub verdict: String,
    /// The answer begins with a name, which keeps its letters.
    pub is_name_first: bool,
    /// What to do about it.
    pub step: String,
    /// How good it is.
    pub badge: Option<Badge>,
    /// Three or four results.
    pub cards: Vec<Card>,
    /// The page has other runs as well.
    pub is_part: bool,
}

/// How good something is. The colour is that of the severity.
pub struct Badge {
    text: String,
    severity: Severity,
    label: String,
}

impl Badge {
    /// A word, and what it is about.
    pub fn new(text: impl Into<String>, severity: Severity, label: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            severity,
            label: label.into(),
        }
    }

    /// A grade from `A+` to `F`, which has its own colour, and what it is about.
    pub fn grade(letter: &str, label: impl Into<String>) -> Self {
        let severity = match letter.chars().next() {
            Some('A') => Severity::Info,
            Some('B') => Severity::Low,
            Some('C') => Severity::Medium,
            _ => Severity::High,
        };
        Self::new(letter, severity, label)
    }
}

/// One result in large type.
pub struct Card {
    label: String,
    value: String,
    note: String,
}

impl Card {
    /// A value with its unit behind the last space, its name, and what it compares with.
    pub fn new(
        label: impl Into<String>,
        value: impl Into<String>,
        note: impl Into<String>,
    ) -> Self {
        Self {
            label: label.into(),
            value: value.into(),
            note: note.into(),
        }
    }
}

/// A path as a line: stations with a segment between each two.
#[derive(Default)]
pub struct Route {
    /// From the client to the server.
    pub stations: Vec<Station>,
    /// The segment behind each station but the last.
    pub segments: Vec<Segment>,
}

/// A host or a hop.
pub struct Station {
    /// Its name or address.
    pub name: String,
    /// Its role, and what is known of it.
    pub detail: String,
    /// It limits the path.
    pub is_narrowest: bool,
}

/// What lies between two stations.
#[derive(Default)]
pub struct Segment {
    /// What passes through it, one line each.
    pub lines: Vec<String>,
    /// It limits the path.
    pub is_narrowest: bool,
    /// What waits before it.
    pub queues: Vec<Queue>,
}

/// A queue.
pub struct Queue {
    /// Its direction and its delay.
    pub text: String,
    /// Its share of the longest one, 0..=1.
    pub share: f64,
}

/// A sentence as HTML. What stands between two backticks is code, as in the same sentence of a
/// terminal.
pub(crate) fn line(text: &str) -> String {
    let text = shown(text);
    let mut parts = text.split('`');
    let mut html = parts.next().unwrap_or_default().to_owned();

    while let Some(part) = parts.next() {
        let _ = match parts.next() {
            Some(behind) => write!(html, "<code>{part}</code>{behind}"),
            // A backtick without a second one is a character.
            None => write!(html, "`{part}"),
        };
    }

    html
}

/// A sentence with a capital as its first letter.
pub fn capitalized(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|letter| letter.to_uppercase());
    first.into_iter().flatten().chain(letters).collect()
}

/// An element with a class; nothing without a text.
pub(crate) fn element(name: &str, class: &str, text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("<{name} class=\"{class}\">{}</{name}>", line(text)),
    }
}

pub(crate) fn class(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "good",
        Severity::Low => "fair",
        Severity::Medium => "poor",
        Severity::High | Severity::Blocker => "bad",
    }
}

impl Head {
    pub(crate) fn html(&self) -> String {
        let heading = if self.is_part { "h2" } else { "h1" };
        let verdict = if self.is_name_first {
            self.verdict.clone()
        } else {
            capitalized(&self.verdict)
        };
        let mut out = format!(
            "<header><{heading}>{}</{heading}>\n{}{}\n",
            line(&self.title),
            element("p", "facts", &self.facts.join(" · ")),
            element("p", "verdict", &verdict)
        );
        if !self.step.is_empty() {
            let step = line(&self.step);
            out += &format!("<p class=\"step\"><strong>Do</strong> {step}</p>\n");
        }

        if self.badge.is_some() || !self.cards.is_empty() {
            out += "<div class=\"cards\">\n";
            for card in &self.cards {
                let (value, unit) = card.value.rsplit_once(' ').unwrap_or((&card.value, ""));
                out += &format!(
                    "<div class=\"card\"><p>{}</p><p class=\"value\">{} {}</p>{}</div>\n",
                    line(&card.label),
                    line(value),
                    element("span", "unit", unit),
                    element("p", "note", &card.note)
                );
            }
            if let Some(badge) = &self.badge {
                // A word is longer than a grade.
                let size = if badge.text.len() > 2 { " word" } else { "" };
                out += &format!(
                    "<div class=\"card badge {}{size}\"><p class=\"value\">{}</p>{}</div>\n",
                    class(badge.severity),
                    line(&badge.text),
                    element("p", "note", &badge.label)
                );
            }
            out += "</div>\n";
        }

        out + "</header>\n"
    }
}

impl Route {
    pub(crate) fn html(&self) -> String {
        let mut out = "<ol class=\"route\">\n".to_owned();
        let segments = self
            .segments
            .iter()
            .map(Some)
            .chain(std::iter::repeat(None));
        for (station, segment) in self.stations.iter().zip(segments) {
            out += &format!(
                "<li class=\"station{}\"><strong>{}</strong>{}{}</li>\n",
                class_of(station.is_narrowest),
                line(&station.name),
                element("span", "note", &station.detail),
                limit(station.is_narrowest)
            );
            out.extend(segment.map(Segment::html));
        }
        out + "</ol>\n"
    }
}

/// Class of a part of a path.
const fn class_of(is_narrowest: bool) -> &'static str {
    if is_narrowest { " narrow" } else { "" }
}

const fn limit(is_narrowest: bool) -> &'static str {
    if is_narrowest {
        "<strong class=\"limit\">narrowest part</strong>"
    } else {
        ""
    }
}

impl Segment {
    fn html(&self) -> String {
        let narrow = class_of(self.is_narrowest);
        let lines: String = self
            .lines
            .iter()
            .map(|text| element("span", "rate", text))
            .collect();
        let limit = limit(self.is_narrowest);
        let mut out = format!("<li class=\"segment{narrow}\">{lines}<i></i>{limit}");

        for queue in &self.queues {
            out += &format!(
                "<span class=\"queue\" style=\"--share:{:.0}%\">{}</span>",
                100.0 * queue.share.clamp(0.0, 1.0),
                line(&queue.text)
            );
        }
        out + "</li>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letter_and_colour_of_a_grade_agree() {
        let letters = [
            ("A+", "good"),
            ("A", "good"),
            ("B", "fair"),
            ("C", "poor"),
            ("D", "bad"),
            ("F", "bad"),
        ];
        for (letter, colour) in letters {
            assert_eq!(class(Badge::grade(letter, "").severity), colour, "{letter}");
        }
    }

    #[test]
    fn code_of_a_sentence_is_code() {
        let cases = [
            ("run `ip link` there", "run <code>ip link</code> there"),
            ("`a` and `<b>`", "<code>a</code> and <code>&lt;b&gt;</code>"),
            ("a ` b", "a ` b"),
            ("`a` ` b", "<code>a</code> ` b"),
        ];
        for (sentence, html) in cases {
            assert_eq!(line(sentence), html);
        }
    }

    #[test]
    fn texts_of_peers_are_text() {
        let hostile = "<script>alert(1)</script>\u{1b}[2J";
        let head = Head {
            title: hostile.to_owned(),
            facts: vec![hostile.to_owned()],
            verdict: hostile.to_owned(),
            step: hostile.to_owned(),
            badge: Some(Badge::new(hostile, Severity::Info, hostile)),
            cards: vec![Card::new(hostile, hostile, hostile)],
            ..Head::default()
        };
        let route = Route {
            stations: vec![Station {
                name: hostile.to_owned(),
                detail: hostile.to_owned(),
                is_narrowest: false,
            }],
            segments: vec![Segment {
                lines: vec![hostile.to_owned()],
                is_narrowest: true,
                queues: vec![Queue {
                    text: hostile.to_owned(),
                    share: 2.0,
                }],
            }],
        };

        let page = head.html() + &route.html();
        assert!(
            !page.contains("<script") && !page.contains('\u{1b}'),
            "{page}"
        );
        assert!(page.contains("--share:100%"), "{page}");
    }
}
