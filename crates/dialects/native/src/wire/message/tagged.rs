//! Reads a message by its `type` directly from the text, so that an error has a place in it.
//!
//! Serde's own reader of tagged enumerations copies all members first, which takes memory and loses
//! the places.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, VariantAccess,
    Visitor,
};
use serde_json::error::Category;

use super::fault::{Fault, member_at, or_message};

/// Members of all messages.
#[derive(Deserialize)]
pub(super) struct Tag<'a> {
    #[serde(rename = "type", borrow)]
    pub kind: Cow<'a, str>,
    #[serde(rename = "n", default)]
    pub number: u64,
    #[serde(rename = "got", default)]
    pub received: u64,
}

/// Reads a whole text.
pub(super) fn whole<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Fault> {
    let mut from = serde_json::Deserializer::from_str(text);
    T::deserialize(&mut from)
        .and_then(|value| from.end().map(|()| value))
        .map_err(|error| fault(text, &error))
}

/// Reads the members of the message that `kind` names.
pub(super) fn message<M: DeserializeOwned>(kind: &str, text: &str) -> Result<M, Fault> {
    let mut from = serde_json::Deserializer::from_str(text);
    M::deserialize(Tagged {
        kind,
        members: &mut from,
    })
    .map_err(|error| fault(text, &error))
}

/// Names the member that an error is about.
fn fault(text: &str, error: &serde_json::Error) -> Fault {
    let cause = error.to_string();
    if error.line() == 0 {
        // Only the name of the type is read outside of the text.
        return Fault::new("type", cause);
    }

    let around = member_at(text.as_bytes(), offset(text, error));
    let named = ["missing field `", "duplicate field `"]
        .iter()
        .find_map(|start| cause.strip_prefix(start));
    let field = named
        .and_then(|rest| rest.split('`').next())
        .filter(|_| error.classify() == Category::Data);
    let is_duplicate = cause.starts_with("duplicate");
    let member = match field {
        // The place of a duplicate is the member itself.
        Some(_) if is_duplicate && !around.is_empty() => around,
        Some(field) if around.is_empty() => field.to_owned(),
        Some(field) => format!("{around}.{field}"),
        None => or_message(&around).to_owned(),
    };

    Fault::new(&member, cause)
}

/// Bytes before the place of an error.
fn offset(text: &str, error: &serde_json::Error) -> usize {
    let before: usize = text
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    before.saturating_add(error.column())
}

/// An object as the variant of an enumeration.
struct Tagged<'k, D> {
    kind: &'k str,
    members: D,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Tagged<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, D::Error> {
        Err(D::Error::custom("not an enumeration"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        visitor.visit_enum(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de, D: Deserializer<'de>> EnumAccess<'de> for Tagged<'_, D> {
    type Error = D::Error;
    type Variant = Members<D>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Members<D>), D::Error> {
        Ok((
            seed.deserialize(StrDeserializer::new(self.kind))?,
            Members(self.members),
        ))
    }
}

/// The members of a variant.
struct Members<D>(D);

impl<'de, D: Deserializer<'de>> VariantAccess<'de> for Members<D> {
    type Error = D::Error;

    fn unit_variant(self) -> Result<(), D::Error> {
        IgnoredAny::deserialize(self.0).map(|_| ())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, D::Error> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, D::Error> {
        Err(D::Error::custom("a message has named members"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct("message", fields, visitor)
    }
}
