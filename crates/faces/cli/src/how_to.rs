//! Pages of the documentation that are part of the manual as well.

use roff::{Roff, bold, roman};

use crate::manual_page::{ManualPage, NO_DATE, SOURCE, inlines, item, plain, references, section};

/// Name of the page about logins.
pub(crate) const LOGINS: &str = "linerate-logins";

const LOGINS_TEXT: &str = include_str!("../../../../docs/logins.md");

/// The page about logins, section 7.
pub(crate) fn logins() -> ManualPage {
    let mut page = Roff::new();
    let title = LOGINS.to_uppercase();
    page.control("TH", [title.as_str(), "7", NO_DATE, SOURCE, "Miscellanea"]);
    section(&mut page, "Name");
    page.text([roman(format!(
        "{LOGINS} - user names and passwords for network tests"
    ))]);
    section(&mut page, "Description");
    markdown(&mut page, LOGINS_TEXT);
    let related = [
        "linerate(1)",
        "linerate-generate-user(1)",
        "linerate-serve(1)",
        "linerate-iperf3(1)",
    ];
    references(&mut page, &related.map(String::from));

    ManualPage {
        name: LOGINS.to_owned(),
        section: 7,
        text: plain(&page.render()),
    }
}

/// Adds Markdown with headings, paragraphs, lists, code blocks and `code`.
fn markdown(page: &mut Roff, text: &str) {
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            section(page, title);
        } else if line.starts_with("```") {
            page.control("PP", [])
                .control("RS", ["4"])
                .control("nf", []);
            for code in lines.by_ref().take_while(|line| *line != "```") {
                page.text([roman(code)]);
            }
            page.control("fi", []).control("RE", []);
        } else if !line.is_empty() && !line.starts_with("# ") {
            let mut paragraph = line.to_owned();
            // What follows a list's first line is indented.
            let belongs = |next: &&str| {
                !next.is_empty() && !next.starts_with(['*', '#']) && !next.starts_with("```")
            };
            while let Some(next) = lines.next_if(|next| belongs(next)) {
                paragraph.push(' ');
                paragraph.push_str(next.trim());
            }

            match paragraph.strip_prefix("* ") {
                Some(entry) => item(page, bold("*"), entry),
                None => {
                    page.control("PP", []).text(inlines(&paragraph));
                }
            }
        }
    }
}
