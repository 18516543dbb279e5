//! JSON within a message.

use linerate_model::json_path;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::fault::NESTING_MAX;

/// JSON that is not examined here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText(String);

impl JsonText {
    /// A text that can be sent. `None` if it is no JSON, or nested deeper than a message may be
    /// around it.
    pub fn new(text: String) -> Option<Self> {
        let is_flat = json_path::nested_too_deep(text.as_bytes(), NESTING_MAX - 1).is_none();
        is_flat
            .then(|| RawValue::from_string(text).ok())
            .flatten()
            .map(|raw| Self(raw.get().to_owned()))
    }

    /// `null`.
    pub fn null() -> Self {
        Self("null".to_owned())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(&self.0)
            .map_err(serde::ser::Error::custom)?
            .serialize(to)
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(from).map(|raw| Self(raw.get().to_owned()))
    }
}
