//! Depth and member paths of a JSON text from a peer, before a parser stores anything of it.
//!
//! The text may be no JSON at all. The walk follows brackets, strings and colons only; the parser
//! decides the rest.

/// An open object or array.
enum Container<'a> {
    /// The latest key of an object.
    Object(&'a [u8]),
    /// Number of the present element.
    Array(usize),
}

/// Offset of the first bracket that opens a level below `max`, if there is one.
pub fn nested_too_deep(text: &[u8], max: usize) -> Option<usize> {
    let (at, stack) = walk(text, max);
    (stack.len() > max).then_some(at)
}

/// Names of the members around the byte at `offset`, joined with dots: `result.load.3.at_ns`. Empty
/// outside of members; cut off below `max` levels.
pub fn path_at(text: &[u8], offset: usize, max: usize) -> String {
    // The place of an error can lie behind the end of a text that is cut off.
    let before = text.get(..offset).unwrap_or(text);
    let (_, stack) = walk(before, max);
    let names = stack.iter().filter_map(|container| match container {
        Container::Object(key) => {
            (!key.is_empty()).then(|| String::from_utf8_lossy(key).into_owned())
        }
        Container::Array(index) => Some(index.to_string()),
    });

    names.collect::<Vec<_>>().join(".")
}

/// Containers that are open at the end of the text, or at the first bracket that opens a level
/// below `max`, and where.
fn walk(text: &[u8], max: usize) -> (usize, Vec<Container<'_>>) {
    let mut stack = Vec::new();
    let mut string: &[u8] = &[];

    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                // Brackets, colons and commas within a string have no meaning.
                string = string_at(text.get(at + 1..).unwrap_or_default());
                at += string.len() + 1;
            }
            b'{' => stack.push(Container::Object(&[])),
            b'[' => stack.push(Container::Array(0)),
            b'}' | b']' => drop(stack.pop()),
            b':' => {
                if let Some(Container::Object(key)) = stack.last_mut() {
                    // The last string before a colon is the name of the member.
                    *key = string;
                }
            }
            b',' => {
                if let Some(Container::Array(index)) = stack.last_mut() {
                    *index += 1;
                }
            }
            _ => {}
        }

        // Deeper nesting is the error itself: what follows changes nothing.
        if stack.len() > max {
            break;
        }

        at += 1;
    }

    (at, stack)
}

/// The string up to its closing quote, escapes left as they are.
fn string_at(text: &[u8]) -> &[u8] {
    let mut is_escaped = false;
    let len = text.iter().position(|byte| {
        let ends = *byte == b'"' && !is_escaped;
        // The second of two backslashes escapes nothing.
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    });
    text.get(..len.unwrap_or(text.len())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_belongs_to_the_members_around_it() {
        let text = br#"{"type":"x","a\"}":1,"spec":{"list":[1,[2,3],{"k":"}]"}],"z":null}}"#;
        let rows: &[(&str, &str)] = &[
            ("x\"", "type"),
            ("1,\"spec", "a\\\"}"),
            ("[2,3", "spec.list.1.1"),
            ("}]\"", "spec.list.2.k"),
            ("null", "spec.z"),
        ];
        for (needle, path) in rows {
            let at = String::from_utf8_lossy(text)
                .find(needle)
                .expect("part of the text")
                + needle.len();
            assert_eq!(
                path_at(text, at.min(text.len()), 16).as_str(),
                *path,
                "{needle}"
            );
        }

        assert_eq!(path_at(b"{", 1, 16), "");
        assert_eq!(path_at(b"]]}}", 4, 16), "");
    }

    #[test]
    fn nesting_is_counted_outside_of_strings() {
        assert_eq!(nested_too_deep(b"[[]]", 2), None);
        assert_eq!(nested_too_deep(b"[[[]]]", 2), Some(2));
        assert_eq!(nested_too_deep(br#"{"[[[[":"\"[[["}"#, 2), None);
        assert_eq!(nested_too_deep(b"[][][]{}{}", 1), None);
    }
}
