//! Manual pages in the roff language of man(7).

use std::fmt::Write as _;

use linerate::command_line::OptionHelp;

/// A page that is being written.
pub(crate) struct Page {
    text: String,
}

impl Page {
    /// Begins a page of this section of the manual; `names` are what the page is about, its own
    /// name first.
    pub(crate) fn new(names: &[&str], section: u8, about: &str) -> Self {
        let title = names.first().copied().unwrap_or_default().to_uppercase();
        let manual = if section == 1 {
            "User Commands"
        } else {
            "Miscellanea"
        };
        let mut text = format!(
            ".TH {} {section} \"\" \"linerate {}\" \"{manual}\"\n",
            escape(&title),
            env!("CARGO_PKG_VERSION")
        );

        let names = escape(&names.join(", "));
        let _ = write!(text, ".SH NAME\n{names} \\- {}\n", inline(about));
        Self { text }
    }

    /// Begins a section.
    pub(crate) fn section(&mut self, title: &str) {
        let _ = writeln!(self.text, ".SH {}", escape(&title.to_uppercase()));
    }

    /// Text that is filled; an empty line separates paragraphs.
    pub(crate) fn paragraphs(&mut self, text: &str) {
        for paragraph in text.split("\n\n") {
            let _ = writeln!(self.text, ".PP\n{}", inline(&joined(paragraph)));
        }
    }

    /// An entry of a list: a term with its markup, and what it means.
    pub(crate) fn item(&mut self, term: &str, text: &str) {
        let _ = writeln!(self.text, ".TP\n{term}");
        for (number, paragraph) in text
            .split("\n\n")
            .filter(|part| !part.is_empty())
            .enumerate()
        {
            let break_before = if number > 0 { ".sp\n" } else { "" };
            let _ = writeln!(self.text, "{break_before}{}", inline(&joined(paragraph)));
        }
    }

    /// A section with an entry for each option of a dialect.
    pub(crate) fn options(&mut self, title: &str, options: &[OptionHelp]) {
        self.section(title);
        for option in options {
            let short = option.short.map(|letter| format!("-{letter}"));
            let longs = option.longs.iter().map(|name| format!("--{name}"));
            let names: Vec<String> = short.into_iter().chain(longs).collect();
            self.item(
                &option_term(&names, &option.value.placeholder()),
                option.help,
            );
        }
    }

    /// Lines that are shown as they are.
    pub(crate) fn literal(&mut self, lines: &str) {
        let _ = writeln!(
            self.text,
            ".PP\n.RS 4\n.nf\n{}\n.fi\n.RE",
            escape(lines.trim_end())
        );
    }

    /// References to other pages, `name(section)`.
    pub(crate) fn references(&mut self, pages: &[String]) {
        self.section("See also");
        for (number, page) in pages.iter().enumerate() {
            let comma = if number + 1 < pages.len() { "," } else { "" };
            let _ = writeln!(self.text, "{}{comma}", reference(page));
        }
    }

    /// The page.
    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// An option's names and value as the term of an entry.
pub(crate) fn option_term(names: &[String], placeholder: &str) -> String {
    let names: Vec<String> = names.iter().map(|name| bold(name)).collect();
    let value = match placeholder
        .strip_prefix("[=")
        .and_then(|rest| rest.strip_suffix(']'))
    {
        Some(optional) => format!("[={}]", italic(optional)),
        None if placeholder.is_empty() => String::new(),
        None => format!(" {}", italic(placeholder.trim_start())),
    };
    names.join(", ") + &value
}

/// A reference `name(section)` with the name in bold.
pub(crate) fn reference(page: &str) -> String {
    match page.split_once('(') {
        Some((name, section)) => format!("{}({section}", bold(name)),
        None => bold(page),
    }
}

/// Bold text.
pub(crate) fn bold(text: &str) -> String {
    format!(r"\fB{}\fR", escape(text))
}

fn italic(text: &str) -> String {
    format!(r"\fI{}\fR", escape(text))
}

/// Text in which `code` between backquotes is bold.
fn inline(text: &str) -> String {
    if text.matches('`').count() % 2 == 1 {
        return escape(text);
    }

    let mut is_code = false;
    let parts = text.split('`').map(|part| {
        let part = match (is_code, part) {
            (_, "") => String::new(),
            (true, code) => bold(code),
            (false, text) => escape(text),
        };
        is_code = !is_code;
        part
    });
    parts.collect()
}

fn joined(paragraph: &str) -> String {
    let lines: Vec<&str> = paragraph.lines().map(str::trim).collect();
    lines.join(" ")
}

/// Backslashes, hyphens and quotes have a meaning in roff, and so has a dot at the start of a line.
/// Quotes, carets and tildes would become typographic ones, which no shell understands.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        // A line that begins with a dot is a request (groff(7)).
        if line.starts_with('.') {
            escaped.push_str(r"\&");
        }

        for c in line.chars() {
            match c {
                '\\' => escaped.push_str(r"\e"),
                // Unescaped, these print as hyphens, typographic quotes and accents
                // (groff_char(7)).
                '-' => escaped.push_str(r"\-"),
                '\'' => escaped.push_str(r"\(aq"),
                '`' => escaped.push_str(r"\(ga"),
                '^' => escaped.push_str(r"\(ha"),
                '~' => escaped.push_str(r"\(ti"),
                other => escaped.push(other),
            }
        }
    }

    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_with_a_meaning_are_escaped() {
        let rows = [
            ("a-b", r"a\-b"),
            (r"\n", r"\en"),
            (".SH\n.PP", "\\&.SH\n\\&.PP"),
            ("'x' `y`", r"\(aqx\(aq \(gay\(ga"),
            ("~/bin", r"\(ti/bin"),
        ];
        for (text, expected) in rows {
            assert_eq!(escape(text), expected);
        }
    }

    #[test]
    fn code_in_a_sentence_is_bold() {
        assert_eq!(inline("use `-c` here"), r"use \fB\-c\fR here");
        assert_eq!(inline("a ` alone"), r"a \(ga alone");
    }

    #[test]
    fn terms_of_options_show_how_a_value_is_given() {
        let names = ["-d".to_owned(), "--debug".to_owned()];
        assert_eq!(option_term(&names, ""), r"\fB\-d\fR, \fB\-\-debug\fR");
        assert_eq!(option_term(&names[1..], " N"), r"\fB\-\-debug\fR \fIN\fR");
        assert_eq!(
            option_term(&names[1..], "[=N]"),
            r"\fB\-\-debug\fR[=\fIN\fR]"
        );
    }
}
