//! Removes what terminals, mail programs, chats and browsers add to the output of commands.

use super::lines::indent;
use super::sections::is_beginning;

/// Lines of a text with their number: without escape sequences, quoting marks, fences and common
/// indentation.
pub(super) fn lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut margin = 0;

    for (index, line) in text.split('\n').enumerate() {
        // A carriage return inside a line separates the states of a progress display.
        for part in line.trim_end_matches('\r').split('\r') {
            let plain = without_escapes(part);
            let line = without_quotes(&plain);
            if is_fence(line) {
                continue;
            }

            let depth = indent(line);
            if !line.trim().is_empty() && (depth < margin || is_beginning(line.trim())) {
                margin = depth;
            }

            lines.push((index + 1, without_margin(line, margin)));
        }
    }

    lines
}

/// Removes control sequences (ECMA-48) and invisible characters; special blanks become ordinary
/// ones.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => match characters.next() {
                // A control sequence ends with a byte from `@` to `~` (ECMA-48, section 5.4).
                Some('[') => drop(characters.find(|c| ('@'..='~').contains(c))),
                // A command for the terminal ends with BEL, or with ESC and a backslash.
                Some(']') => drop(characters.find(|c| matches!(c, '\u{7}' | '\\'))),
                Some('(' | ')') => drop(characters.next()),
                _ => {}
            },
            '\u{a0}' | '\u{202f}' => plain.push(' '),
            '\u{feff}' | '\u{200b}'..='\u{200d}' => {}
            other => plain.push(other),
        }
    }

    plain
}

fn without_quotes(line: &str) -> &str {
    let mut rest = line;
    while let Some(inner) = rest.trim_start().strip_prefix('>') {
        rest = inner.strip_prefix(' ').unwrap_or(inner);
    }
    rest
}

/// Begin or end of verbatim text in Markdown, HTML and wikis.
fn is_fence(line: &str) -> bool {
    const FENCES: [&str; 8] = [
        "```",
        "~~~",
        "<pre",
        "</pre",
        "[code",
        "[/code",
        "{code",
        "{noformat",
    ];

    FENCES
        .iter()
        .any(|fence| line.trim_start().starts_with(fence))
}

/// The line without the first `margin` columns of blanks.
fn without_margin(line: &str, margin: usize) -> String {
    let mut removed = 0;
    let mut rest = line.chars();

    while removed < margin {
        let Some(blank) = rest.clone().next().filter(|c| c.is_whitespace()) else {
            break;
        };
        removed += if blank == '\t' { 8 } else { 1 };
        rest.next();
    }

    // A tab can reach beyond the margin: its other columns remain as blanks.
    format!(
        "{:1$}{2}",
        "",
        removed.saturating_sub(margin),
        rest.as_str()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoration_of_terminals_and_mail_is_removed() {
        let rows = [
            (
                "> > Settings for e:\n> > \tSpeed: 1",
                "Settings for e:\n\tSpeed: 1",
            ),
            (
                ">Settings for e:\r\n>\tSpeed: 1\r",
                "Settings for e:\n\tSpeed: 1",
            ),
            (
                "look:\n\tSettings for e:\n\t\tSpeed: 1\nthanks",
                "look:\nSettings for e:\n\tSpeed: 1\nthanks",
            ),
            (
                "```text\n    $ ip link\n    1: lo: <UP> mtu\n        link\n```",
                "$ ip link\n1: lo: <UP> mtu\n    link",
            ),
            (
                "\u{1b}]0;me@a: ~\u{7}\u{1b}[1;32mme@a\u{1b}[0m:~$ ip\u{a0}link",
                "me@a:~$ ip link",
            ),
            ("10 %\r20 %\r30 %", "10 %\n20 %\n30 %"),
        ];
        for (pasted, expected) in rows {
            let plain: Vec<String> = lines(pasted).into_iter().map(|(_, line)| line).collect();
            assert_eq!(plain.join("\n"), expected, "{pasted:?}");
        }
    }
}
