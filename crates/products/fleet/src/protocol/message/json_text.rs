//! JSON of another layer within a message.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// JSON that is not examined here: facts and statistics of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText(String);

impl JsonText {
    /// `None` when the text is no JSON. Ends of lines become spaces.
    pub fn new(text: String) -> Option<Self> {
        RawValue::from_string(text)
            .ok()
            .map(|raw| Self::from_raw(&raw))
    }

    /// A message is one line. Strings of JSON have no ends of lines in them, RFC 8259 section 7.
    fn from_raw(raw: &RawValue) -> Self {
        Self(raw.get().replace(['\n', '\r'], " "))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        // The text is written as it is, not as a string with escapes.
        serde_json::from_str::<&RawValue>(&self.0)
            .map_err(serde::ser::Error::custom)?
            .serialize(to)
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(from).map(Self::from_raw)
    }
}
