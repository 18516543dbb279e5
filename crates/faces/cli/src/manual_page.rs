//! Parts of pages of the manual, in the roff language of man(7).

use roff::{Inline, Roff, bold, roman};

/// Program and version at the foot of a page.
pub(crate) const SOURCE: &str = concat!("linerate ", env!("CARGO_PKG_VERSION"));
/// Without one a page is the same whenever it is made; roff leaves an empty one out.
pub(crate) const NO_DATE: &str = " ";

/// A page of the manual.
pub(crate) struct ManualPage {
    /// Its name without the section.
    pub name: String,
    /// Its section.
    pub section: u8,
    /// The page in the roff language of man(7).
    pub text: String,
}

/// Begins a section.
pub(crate) fn section(page: &mut Roff, title: &str) {
    page.control("SH", [title.to_uppercase().as_str()]);
}

/// An entry of a list: a term, and what it means.
pub(crate) fn item(page: &mut Roff, term: Inline, text: &str) {
    page.control("TP", []).text([term]).text(inlines(text));
}

/// References to other pages, `name(section)`.
pub(crate) fn references(page: &mut Roff, pages: &[String]) {
    section(page, "See also");
    page.text([roman(pages.join(", "))]);
}

/// Text in which `code` between backquotes is bold.
pub(crate) fn inlines(text: &str) -> Vec<Inline> {
    let parts = text.split('`').enumerate();
    parts
        // Text between backquotes has an odd number, because each quote begins a part.
        .map(|(number, part)| match number % 2 {
            1 => bold(part),
            _ => roman(part),
        })
        .collect()
}

/// Quotes, carets and tildes would become typographic ones (groff_char(7)), which no shell
/// understands.
pub(crate) fn plain(page: &str) -> String {
    page.replace('`', r"\(ga")
        .replace('^', r"\(ha")
        .replace('~', r"\(ti")
}
