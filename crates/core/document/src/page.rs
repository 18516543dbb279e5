//! Frame of a report as one HTML file: no script, nothing loaded from elsewhere, light or dark as
//! the reader's system is.

use linerate_model::printable::acts;

use crate::style::shortened;

/// Everything before the first heading.
pub fn begin(title: &str) -> String {
    let policy = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">");
    begin_with(title, &policy)
}

/// As [`begin`], with these elements in the head.
pub fn begin_with(title: &str, head: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\">\n{head}\n<title>{}</title>\n<style>\n{STYLE}</style></head><body>\n",
        escaped(title)
    )
}

/// Everything after the last line.
pub const END: &str = "</body></html>\n";

/// A page loads nothing and runs nothing, whatever text is in it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// Series are distinguished by markers and dashes as well, never by colour alone. Rows of a table
/// become blocks where its columns do not fit, so that none scrolls sideways.
const STYLE: &str = include_str!("page.css");

/// Untrusted text of any length, shortened and escaped.
pub(crate) fn shown(text: &str) -> String {
    escaped(&shortened(text))
}

/// Untrusted text, escaped.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if acts(c) && c != '\n' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }

    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The colour of a variable in the `scheme`th rule for `:root`: light, dark.
    fn luminance(variable: &str, scheme: usize) -> f64 {
        let rule = STYLE.split(":root {").nth(scheme + 1).expect("a rule");
        let value = rule
            .split(&format!("--{variable}: #"))
            .nth(1)
            .expect("a colour");
        let digits: String = value.chars().take_while(char::is_ascii_hexdigit).collect();
        let digits = if digits.len() == 3 {
            digits.chars().flat_map(|c| [c, c]).collect()
        } else {
            digits
        };
        let channel = |at: usize| {
            let share =
                f64::from(u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits")) / 255.0;
            if share <= 0.040_45 {
                share / 12.92
            } else {
                ((share + 0.055) / 1.055).powf(2.4)
            }
        };

        0.2126 * channel(0) + 0.7152 * channel(2) + 0.0722 * channel(4)
    }

    /// Contrast ratio as in WCAG 2.1, 1.4.3.
    #[test]
    fn text_and_lines_are_distinguishable_in_light_and_dark() {
        for scheme in 0..2 {
            let contrast = |variable: &str| {
                let (a, b) = (luminance(variable, scheme), luminance("paper", scheme));
                (a.max(b) + 0.05) / (a.min(b) + 0.05)
            };
            for variable in [
                "ink", "dim", "mark", "good", "fair", "poor", "bad", "h0", "h1", "h2", "h3", "h4",
                "h5",
            ] {
                assert!(
                    contrast(variable) >= 4.5,
                    "{variable} in scheme {scheme}: {}",
                    contrast(variable)
                );
            }
        }
    }
}
