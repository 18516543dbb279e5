//! The manual page of the iperf3 dialect, made from the option table.

use super::help::SECTIONS;
use super::options::{Effect, OPTIONS, OptionRow};

/// The page in the roff language of man(7).
pub(crate) fn man_page() -> String {
    let mut page = format!(
        r#".TH IPERF3 1 "" "linerate {}" "User Commands"
.SH NAME
iperf3 \- measure network throughput (linerate)
.SH SYNOPSIS
.B iperf3 \-s
.RI [ options ]
.br
.B iperf3 \-c
.I host
.RI [ options ]
.SH DESCRIPTION
One end runs as the server, the other as the client. The client opens one or more data streams to the server, moves
data for a while, and both ends report what arrived.
.PP
This is linerate in the guise of iperf3: it takes the same options, speaks the same protocol and writes the same
reports, so either end may be the original. Options act in the order they are given; where one is repeated the last
one counts. Long options may be shortened as long as they stay unique. Words that are no options are ignored.
.PP
Where [KMGT] is shown, a number may be followed by K, M, G or T: powers of 1000 for rates, of 1024 for amounts.
"#,
        env!("CARGO_PKG_VERSION")
    );
    for (section, title) in SECTIONS {
        page.push_str(&format!(".SH {}\n", title.to_uppercase()));
        for option in OPTIONS.iter().filter(|option| option.section == section) {
            page.push_str(&entry(option));
        }
    }
    page.push_str(
        ".SH ENVIRONMENT
.TP
.B IPERF3_PASSWORD
Password for a server that asks for a login.
.SH EXIT STATUS
0 when the test was completed, 1 when it was not or the command line was wrong.
.SH SEE ALSO
.BR linerate (1)
",
    );
    page
}

fn entry(option: &OptionRow) -> String {
    let names: Vec<String> = [
        option.short.map(|letter| format!("-{letter}")),
        Some(format!("--{}", option.long)),
    ]
    .into_iter()
    .flatten()
    .map(|name| format!(r"\fB{}\fR", escape(&name)))
    .collect();
    let value = match option.effect {
        Effect::Switch(_) => String::new(),
        Effect::Value(name, _) => format!(r" \fI{}\fR", escape(name)),
        Effect::MaybeValue(name, _) => format!(r"[=\fI{}\fR]", escape(name)),
    };
    format!(".TP\n{}{value}\n{}\n", names.join(", "), escape(option.help))
}

/// Backslashes and hyphens have a meaning in roff, and so has a dot or quote at the start of a line.
fn escape(text: &str) -> String {
    let escaped = text.replace('\\', r"\e").replace('-', r"\-");
    if escaped.starts_with(['.', '\'']) {
        format!(r"\&{escaped}")
    } else {
        escaped
    }
}
