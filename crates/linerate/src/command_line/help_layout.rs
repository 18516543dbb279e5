//! How the helps of the dialects are laid out.

/// Column at which descriptions begin.
const TEXT_COLUMN: usize = 30;
/// Width of a line.
const LINE_WIDTH: usize = 100;

/// An option and what it does; `placeholder` follows the long name.
pub fn entry(short: Option<char>, long: &str, placeholder: &str, help: &str) -> String {
    let names = match short {
        Some(letter) => format!("  -{letter}, --{long}{placeholder}"),
        None => format!("      --{long}{placeholder}"),
    };
    let mut lines = wrap(help, LINE_WIDTH - TEXT_COLUMN).into_iter();
    let mut text = String::new();
    if names.len() < TEXT_COLUMN {
        let first = lines.next().unwrap_or_default();
        text.push_str(&format!("{names:TEXT_COLUMN$}{first}\n"));
    } else {
        text.push_str(&format!("{names}\n"));
    }
    for line in lines {
        text.push_str(&format!("{:TEXT_COLUMN$}{line}\n", ""));
    }
    text
}

/// Breaks at blanks into lines of at most `width` characters, longer words excepted.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
