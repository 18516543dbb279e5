//! Pages of the documentation that are part of the manual as well.

use super::roff::Page;

/// Name of the page about logins.
pub(crate) const LOGINS: &str = "linerate-logins";

const LOGINS_TEXT: &str = include_str!("../../../../../docs/logins.md");

/// The page about logins, section 7.
pub(crate) fn logins() -> String {
    page(
        LOGINS,
        "user names and passwords for network tests",
        LOGINS_TEXT,
    )
}

/// Turns Markdown with headings, paragraphs, lists, code blocks and `code` into a manual page.
fn page(name: &str, about: &str, markdown: &str) -> String {
    let mut page = Page::new(&[name], 7, about);
    page.section("Description");

    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            page.section(title);
        } else if line.starts_with("```") {
            let code: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            page.literal(&code.join("\n"));
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
                Some(item) => page.item(r"\(bu", item),
                None => page.paragraphs(&paragraph),
            }
        }
    }

    page.references(
        &[
            "linerate(1)",
            "linerate-generate-user(1)",
            "linerate-serve(1)",
            "linerate-iperf3(1)",
        ]
        .map(String::from),
    );
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_logins_uses_only_markup_that_is_understood() {
        for text in LOGINS_TEXT.split("```").step_by(2) {
            assert!(
                !text.contains(['|', '[', '<']) && !text.contains("**"),
                "{text}"
            );
        }

        let page = logins();
        assert!(!page.contains("```") && !page.contains("##"), "{page}");
        assert!(
            page.contains(r"Copy \fBpublic.pem\fR to every client"),
            "{page}"
        );
        assert!(
            page.contains("\n.nf\nopenssl genrsa \\-out private.pem 2048\n"),
            "{page}"
        );
    }
}
