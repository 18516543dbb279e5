//! Bounds of a JSON text, checked by one walk before a parser stores anything.
//!
//! The text may be no JSON at all. The walk follows brackets, strings and commas only; the parser
//! decides the rest.

use thiserror::Error;

/// Most bytes of a line without its end.
pub const LINE_MAX_BYTES: usize = 256 << 10;
/// Most objects and arrays inside each other, the message itself included.
pub const NESTING_MAX: usize = 16;
/// Most bytes of a string or member name, as written.
pub const STRING_MAX_BYTES: usize = 4 << 10;
/// Most elements of an array, and members of an object.
pub const ELEMENTS_MAX: usize = 4096;

/// A bound of a text that is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Excess {
    /// The whole text.
    #[error("a line of more than {LINE_MAX_BYTES} bytes")]
    Line,
    /// Objects and arrays inside each other.
    #[error("nested deeper than {NESTING_MAX}")]
    Nesting,
    /// A string as written, escapes included.
    #[error("a string of more than {STRING_MAX_BYTES} bytes")]
    String,
    /// Elements of an array or members of an object.
    #[error("more than {ELEMENTS_MAX} elements")]
    Elements,
}

/// Checks a text.
pub(crate) fn check(text: &[u8]) -> Result<(), Excess> {
    if text.len() > LINE_MAX_BYTES {
        return Err(Excess::Line);
    }

    // Commas of the open arrays and objects.
    let mut open: Vec<usize> = Vec::with_capacity(NESTING_MAX);
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b'"' => rest = behind_string(behind)?,
            b'{' | b'[' if open.len() == NESTING_MAX => return Err(Excess::Nesting),
            b'{' | b'[' => open.push(0),
            // A closing bracket without an opening one is an error of syntax, which the parser
            // reports.
            b'}' | b']' => drop(open.pop()),
            b',' => {
                if let Some(commas) = open.last_mut() {
                    *commas += 1;
                    // An array has one element more than commas.
                    if *commas >= ELEMENTS_MAX {
                        return Err(Excess::Elements);
                    }
                }
            }
            _ => {}
        }
    }

    Ok(())
}

/// The text after the closing quote.
fn behind_string(text: &[u8]) -> Result<&[u8], Excess> {
    let mut is_escaped = false;
    let len = text.iter().take(STRING_MAX_BYTES + 1).position(|byte| {
        // A quote after an escape belongs to the string (RFC 8259, section 7).
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    });
    match len {
        Some(len) => Ok(text.get(len + 1..).unwrap_or_default()),
        None if text.len() > STRING_MAX_BYTES => Err(Excess::String),
        // An open string at the end of the text is for the parser.
        None => Ok(&[]),
    }
}
