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

/// Series are distinguished by markers and dashes as well, never by colour alone. Rows of a table
/// become blocks where its columns do not fit, so that none scrolls sideways.
const STYLE: &str = "\
:root { color-scheme: light dark; --ink: #1a1c20; --paper: #fff; --panel: #f5f6f8; --soft: #d8dbe0; --dim: #5b6270; --mark: #1663b6; --heat-hue: #7db8f2;
  --good: #1b7a36; --fair: #566b00; --poor: #a45a00; --bad: #b3261e;
  --h0: #1663b6; --h1: #b4510f; --h2: #2e7d32; --h3: #8e24aa; --h4: #b71c4a; --h5: #00798c }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e4e6ea; --paper: #16181c; --panel: #1f2227; --soft: #3b4048; --dim: #a3abb8; --mark: #6cb0f5; --heat-hue: #1d5fa8;
  --good: #6fcf87; --fair: #c3d05a; --poor: #f0b05d; --bad: #ff8a80;
  --h0: #6cb0f5; --h1: #f0a45d; --h2: #7fcf84; --h3: #d39be8; --h4: #f58ba8; --h5: #5fcfde } }
* { box-sizing: border-box } a { color: var(--mark) }
body { color: var(--ink); background: var(--paper); font: 16px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 1.5rem auto; padding: 0 1rem; overflow-wrap: anywhere }
h1 { font-size: 1.25rem } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem } h3 { font-size: 1rem; margin: 0 } h1, header h2, header p, .card p, .finding p { margin: 0 }
.good { --hue: var(--good) } .fair { --hue: var(--fair) } .poor { --hue: var(--poor) } .bad { --hue: var(--bad) }
.facts, .note, .unit, small { color: var(--dim); font-weight: 400 } .facts, .note { font-size: .875rem }
header .verdict { font-size: 1.7rem; line-height: 1.25; font-weight: 600; margin: .7rem 0 1rem; text-wrap: balance } header .step { margin: -.4rem 0 1rem } .step strong { color: var(--mark); margin-right: .4rem }
.cards { display: flex; flex-wrap: wrap; gap: .75rem }
header:not(:first-child) { border-top: 1px solid var(--soft); margin-top: 2rem; padding-top: .7rem } .card { flex: 1 1 9.5rem; max-width: 19rem } .card, .finding { background: var(--panel); border-radius: .5rem; padding: .7rem .9rem } .card .value { font-size: 2rem; line-height: 1.2; font-weight: 700 } .unit { font-size: 1rem }
.badge { border: 2px solid var(--hue) } .badge .value { color: var(--hue) } .badge .value { font-size: 2.4rem } .word .value { font-size: 1.4rem }
.route { display: flex; list-style: none; margin: 1.5rem 0; padding: 0 } .station, .segment { display: flex; flex-direction: column }
.station { flex: 0 1 auto; min-width: 7rem; max-width: 16rem; border: 2px solid var(--dim); border-radius: .5rem; padding: .4rem .7rem; justify-content: center; text-align: center }
.segment { flex: 1; justify-content: center; text-align: center; font-size: .875rem } .segment i { border-top: 3px solid var(--dim); margin: .2rem 0 } .route .narrow { --hue: var(--bad) } .station.narrow { border-color: var(--hue) } .segment.narrow i { border-top: 8px double var(--hue) } .route .limit { color: var(--hue) }
.queue { margin: .15rem auto; width: 90%; padding: 0 .4rem; border: 1px solid var(--soft); background: linear-gradient(to right, color-mix(in srgb, var(--h1) 35%, transparent) var(--share), transparent var(--share)) }
.finding { border-left: 5px solid var(--hue); margin: .75rem 0 } .finding details { display: inline-block; margin: .2rem 1.5rem 0 0; vertical-align: top } .finding details[open] { display: block } .severity { color: var(--hue); font-weight: 600; margin-left: .4rem }
table { border-collapse: collapse; width: 100%; margin-top: 1rem; font-size: .9rem } tbody th { font-weight: 400 } td, th { padding: .25rem .5rem; text-align: right; vertical-align: top; border-bottom: 1px solid var(--soft) }
caption, td.words, th.words { text-align: left } caption, figcaption { font-weight: 700; padding: .3rem 0 }
pre { white-space: pre-wrap; border: 1px solid var(--soft); padding: .7rem } .remark { border-left: 4px solid var(--mark); padding-left: .7rem }
svg { width: 100%; height: auto } svg text { fill: var(--ink); font-size: 12px } svg .soft { fill: var(--dim) } svg .name { font-weight: 600 } svg .end { fill: var(--hue) } .axis { stroke: var(--soft) } .median { stroke: var(--ink); stroke-width: 3 }
td.whole { white-space: nowrap } td::before { overflow-wrap: break-word } td[style] { background: color-mix(in srgb, var(--heat-hue) calc(var(--heat) * .7), var(--paper)) }
figure { margin: 1.5rem 0 } details { margin: .5rem 0 } summary { cursor: pointer } .narrow:is(svg) { display: none }
.h0 { --hue: var(--h0) } .h1 { --hue: var(--h1) } .h2 { --hue: var(--h2) } .h3 { --hue: var(--h3) } .h4 { --hue: var(--h4) } .h5 { --hue: var(--h5) }
.line { stroke: var(--hue); fill: none; stroke-width: 1.75; stroke-linejoin: round } .thin { stroke-width: 1; stroke-opacity: .8 } .limit { stroke-width: 1.25; stroke-dasharray: 6 4 }
.bars { fill: var(--hue) } .area { fill: var(--hue); fill-opacity: .7; stroke: var(--paper); stroke-width: .5 }
.band { fill: var(--hue); fill-opacity: .12 } .phase { fill: var(--panel) } .hover { fill: transparent } .hover:hover { fill: var(--soft); fill-opacity: .4 }
.cell { fill: color-mix(in srgb, var(--heat-hue) var(--heat), var(--paper)); stroke: var(--soft); stroke-width: .5 } .cell.none { fill: none } .cell.framed { stroke: var(--bad); stroke-width: 3 } .cell.best { stroke: var(--good) }
.marker { fill: var(--hue) } .ring { fill: none; stroke: var(--hue); stroke-width: 2 } .whisker { stroke: var(--hue); stroke-width: 1.5 }
@media screen and (max-width: 699px) { body { margin: .75rem auto } header .verdict { font-size: 1.35rem } .card .value { font-size: 1.6rem } .card { flex-basis: 8.5rem }
  svg.broad { display: none } svg.narrow:is(svg) { display: block; max-width: 520px; margin: auto }
  .route { flex-direction: column; align-items: stretch } .station { max-width: none } .segment { border-left: 3px solid var(--dim); margin-left: 2rem; padding: .5rem 1rem; text-align: left } .segment i { display: none } .segment.narrow { border-left: 8px double var(--hue) } .queue { margin: .15rem 0 } }
@media screen and (max-width: 699px) { table thead { display: none } table tbody, table tr, table td, table caption { display: block } table tr { border-bottom: 1px solid var(--soft); padding: .4rem 0 }
  table td { border: 0; display: flex; justify-content: space-between; gap: 1rem; padding: .1rem 0 } table td:first-child { font-weight: 600 } table td:empty { display: none } table td::before { content: attr(data-label); color: var(--dim); font-weight: 400; text-align: left } }
@media screen and (max-width: 999px) { .many thead { display: none } .many tbody, .many tr, .many td, .many caption { display: block } .many tr { border-bottom: 1px solid var(--soft); padding: .4rem 0 }
  .many td { border: 0; display: flex; justify-content: space-between; gap: 1rem; padding: .1rem 0 } .many td:first-child { font-weight: 600 } .many td:empty { display: none } .many td::before { content: attr(data-label); color: var(--dim); font-weight: 400; text-align: left } }
.most thead { display: none } .most tbody, .most tr, .most td, .most caption { display: block } .most tr { border-bottom: 1px solid var(--soft); padding: .4rem 0 }
.most td { border: 0; display: flex; justify-content: space-between; gap: 1rem; padding: .1rem 0 } .most td:first-child { font-weight: 600 } .most td:empty { display: none } .most td::before { content: attr(data-label); color: var(--dim); font-weight: 400; text-align: left }
@media print { @page { margin: 12mm } :root { color-scheme: light } body { max-width: none; margin: 0; padding: 0; font-size: 9pt; line-height: 1.35 } a { color: inherit }
  header .verdict { font-size: 14pt; margin: .4rem 0 } .card .value { font-size: 15pt } .card, .finding { padding: .3rem .6rem } .route { margin: .7rem 0 } h2 { margin: .8rem 0 .3rem }
  svg, tr, .remark, .card, .finding { break-inside: avoid } h2, figcaption, summary { break-after: avoid } figure { margin: .6rem 0 } figure svg { max-height: 150mm } details:not([open]), .screen { display: none } }
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
