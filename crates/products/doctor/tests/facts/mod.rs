//! Facts of a scenario: a JSON object in which words like `client.core_busy=0.98` replace members.

use serde_json::Value;

/// Columns of a table's rows, of which the last may contain the separator; `#` begins a comment.
pub(crate) fn rows<const N: usize>(table: &'static str) -> Vec<[&'static str; N]> {
    let lines = table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let columns = |line: &'static str| {
        let columns: Vec<&str> = line.splitn(N, '|').map(str::trim).collect();
        columns
            .try_into()
            .unwrap_or_else(|_| panic!("{N} columns: {line}"))
    };
    lines.map(columns).collect()
}

/// Sets the members that the words name; a value that is no JSON is a text.
pub(crate) fn set(facts: &mut Value, words: &str) {
    for word in words.split_whitespace() {
        let (path, text) = word.split_once('=').expect("member=value");
        let value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
        let member = path.split('.').fold(&mut *facts, |at, name| &mut at[name]);
        *member = value;
    }
}
