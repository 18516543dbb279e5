//! A plan file with a comment for every key.

/// The default plan. Keys without a default are commented out, with an example.
pub(super) const TEMPLATE: &str = include_str!("plan.toml");
/// Column of the comments.
const COMMENT_AT: usize = 44;

/// The template with the values of `bare`, a plan of keys and values alone.
pub(super) fn explained(bare: &str) -> String {
    let mut table = "";
    let mut out = String::new();

    for line in TEMPLATE.lines() {
        table = table_of(line).unwrap_or(table);
        let key = line
            .trim_start_matches("# ")
            .split_once(" = ")
            .map(|(key, _)| key);
        let value = key.and_then(|key| value_line(bare, table, key));

        let comment = line.rsplit_once(" # ").map(|(_, comment)| comment);
        match (value, comment) {
            (Some(value), Some(comment)) => {
                let width = COMMENT_AT.max(value.chars().count() + 1);
                out.push_str(&format!("{value:<width$}# {comment}"));
            }
            (Some(value), None) => out.push_str(value),
            (None, _) => out.push_str(line),
        }

        out.push('\n');
    }

    out
}

fn value_line<'a>(bare: &'a str, table: &str, key: &str) -> Option<&'a str> {
    let mut current = "";
    bare.lines().find(|line| {
        current = table_of(line).unwrap_or(current);
        current == table && line.split_once(" = ").is_some_and(|(name, _)| name == key)
    })
}

/// `phase3.idle` of `[phase3.idle]  # idle connections`
fn table_of(line: &str) -> Option<&str> {
    line.strip_prefix('[')?
        .split_once(']')
        .map(|(name, _)| name)
}
