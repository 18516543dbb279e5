//! The published schema is that of the types.

use std::fs;

use linerate_model::record::RunRecord;
use serde_json::{Map, Value};

const PATH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../docs/schema/linerate.run.1.json"
);

/// With `UPDATE_SNAPSHOTS` set, the file is written.
#[test]
fn the_published_schema_is_that_of_the_types() {
    let mut schema = schemars::schema_for!(RunRecord);
    schema.insert("title".into(), "linerate.run/1".into());
    let Value::Object(mut schema) = schema.to_value() else {
        panic!("an object")
    };
    let Some(Value::Object(types)) = schema.remove("$defs") else {
        panic!("definitions of types")
    };
    let members = lines(&schema, "  ").join(",\n");
    let text = format!(
        "{{\n{members},\n  \"$defs\": {{\n{}\n  }}\n}}\n",
        lines(&types, "    ").join(",\n")
    );

    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(PATH, &text).expect("written");
    }

    let published = fs::read_to_string(PATH).expect("docs/schema/linerate.run.1.json");
    assert!(
        published == text,
        "docs/schema/linerate.run.1.json differs from the types: run with UPDATE_SNAPSHOTS=1"
    );
}

/// One line per member.
fn lines(members: &Map<String, Value>, indent: &str) -> Vec<String> {
    members
        .iter()
        .map(|(name, value)| format!("{indent}{}: {value}", Value::from(name.as_str())))
        .collect()
}
