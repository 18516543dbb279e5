//! Names of variants.

use std::fmt;

use serde::de::value::{Error, StrDeserializer};
use serde::{Deserialize, Serialize};

struct Stored<T>(T);

impl<T: Serialize> fmt::Display for Stored<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.serialize(f)
    }
}

/// The name under which a variant without fields is stored. Reports show the same word.
pub fn stored_name(variant: impl Serialize) -> String {
    Stored(variant).to_string()
}

/// The variant that is stored under a name; `None` if no variant has it.
pub fn from_stored_name<'a, T: Deserialize<'a>>(name: &'a str) -> Option<T> {
    T::deserialize(StrDeserializer::<Error>::new(name)).ok()
}
