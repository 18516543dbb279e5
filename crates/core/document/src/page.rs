//! Frame of a report as one HTML file: no script, nothing loaded from elsewhere, light or dark as
//! the reader's system is.

use linerate_model::printable::acts;

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

/// Series are distinguished by markers and dashes as well, never by colour alone.
const STYLE: &str = "\
:root { color-scheme: light dark; --ink: #1a1c20; --paper: #fff; --soft: #d8dbe0; --mark: #1663b6; --heat-hue: #7db8f2;
  --h0: #1663b6; --h1: #b4510f; --h2: #2e7d32; --h3: #8e24aa; --h4: #b71c4a; --h5: #00798c }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e4e6ea; --paper: #16181c; --soft: #3b4048; --mark: #6cb0f5; --heat-hue: #1d5fa8;
  --h0: #6cb0f5; --h1: #f0a45d; --h2: #7fcf84; --h3: #d39be8; --h4: #f58ba8; --h5: #5fcfde } }
a { color: var(--mark) } body { color: var(--ink); background: var(--paper); font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem }
tbody th { font-weight: 400 } table { border-collapse: collapse } td, th { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid var(--soft) }
pre { overflow: auto; border: 1px solid var(--soft); padding: .7rem } .remark { border-left: 4px solid var(--mark); padding-left: .7rem }
svg { width: 100%; min-width: 40rem; height: auto } svg text { fill: var(--ink); font-size: 12px } .axis { stroke: var(--soft) }
caption, .words { text-align: left } caption, figcaption { font-weight: 700; padding: .3rem 0 } .wide { overflow-x: auto; margin-top: 1rem }
.wide td { white-space: nowrap } .wide td.words:first-child { white-space: normal; min-width: 10rem } .wide td.words:last-child { white-space: normal; min-width: 16rem }
td[style] { background: color-mix(in srgb, var(--heat-hue) calc(var(--heat) * .7), var(--paper)) } .note { margin: .3rem 0; font-size: .9rem }
figure { margin: 1.5rem 0 } figcaption small { font-weight: 400 } details { margin: .5rem 0 } summary { cursor: pointer }
.h0 { --hue: var(--h0) } .h1 { --hue: var(--h1) } .h2 { --hue: var(--h2) } .h3 { --hue: var(--h3) } .h4 { --hue: var(--h4) } .h5 { --hue: var(--h5) }
.line { stroke: var(--hue); fill: none; stroke-width: 2 } .thin { stroke-width: 1; stroke-opacity: .8 } .limit { stroke-width: 1.5; stroke-dasharray: 6 4 }
.bars { stroke: var(--hue); fill: none } .area { fill: var(--hue); fill-opacity: .75; stroke: var(--paper); stroke-width: .5 }
.band { fill: var(--hue); fill-opacity: .15 } .hover { fill: transparent } .hover:hover { fill: var(--soft); fill-opacity: .4 }
.marker { fill: var(--hue) } .ring { fill: none; stroke: var(--hue); stroke-width: 2 }
.whisker { stroke: var(--hue) } .name { font-weight: 700 } .label { transform: translate(7px, -7px) }
@media print { :root { color-scheme: light } body { max-width: none; margin: 0; font-size: 10pt } a { color: inherit }
  svg { min-width: 0 } svg, tr, .remark { break-inside: avoid } h2, figcaption, summary { break-after: avoid } .wide { overflow: visible }
  details::details-content { content-visibility: visible } .screen { display: none } }
";

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
            for variable in ["ink", "mark", "h0", "h1", "h2", "h3", "h4", "h5"] {
                assert!(
                    contrast(variable) >= 4.5,
                    "{variable} in scheme {scheme}: {}",
                    contrast(variable)
                );
            }
        }
    }
}
