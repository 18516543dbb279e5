//! Reading JSON the way iperf3 does: keys without regard to case, the first of two equal keys,
//! whole numbers cut and saturated, a value of the wrong type like an absent one, and nothing after
//! the first value.

use std::borrow::Cow;
use std::fmt;

use linerate_model::json_path::nested_too_deep;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use thiserror::Error;

/// Deepest nesting that is accepted; what is kept as text is parsed again by others with this
/// limit.
const MAX_DEPTH: usize = 128;

/// Not JSON, nested too deeply, or with too many elements.
#[derive(Debug, Error)]
#[error("malformed JSON")]
pub(crate) struct Malformed;

/// Members of an object that are kept, some times as many as any peer sends; later ones are
/// ignored.
const MEMBERS_MAX: usize = 128;

/// The members of one object. Values stay text until they are parsed, so an unknown or hostile
/// member costs little.
pub(crate) struct Object<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Object<'a> {
    /// Reads an object. Anything else counts as an empty one.
    pub(crate) fn parse(text: &'a str) -> Result<Self, Malformed> {
        // Skips over the value without recursion, so any depth is safe here.
        let raw = first_value(text)?;
        if nested_too_deep(raw.as_bytes(), MAX_DEPTH).is_some() {
            return Err(Malformed);
        }

        if !raw.starts_with('{') {
            return Ok(Self(Vec::new()));
        }

        let members = serde_json::Deserializer::from_str(raw).deserialize_map(MemberVisitor);
        members.map(Self).map_err(|_| Malformed)
    }

    /// The member as JSON text.
    pub(crate) fn raw(&self, key: &str) -> Option<&'a str> {
        self.0
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(key))
            .map(|(_, value)| *value)
    }

    /// A number, any finite one; saturated at the largest finite ones.
    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        let text = self.raw(key)?;
        // A value of another type counts as absent (iperf_cJSON_GetObjectItemType).
        if !text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            return None;
        }

        let number: f64 = text.parse().ok()?;
        // 1e999 is infinity, and the difference of two of them would be no number.
        Some(number.clamp(f64::MIN, f64::MAX))
    }

    /// A number cut to a whole one, saturated at the ends of the 64-bit range.
    pub(crate) fn integer(&self, key: &str) -> Option<i64> {
        let number = self.number(key)?;
        let exact = self.raw(key)?.parse::<i64>();
        Some(exact.unwrap_or(number as i64))
    }

    /// Like `integer`, for members that may be −1: releases up to 3.13 write that as 2^64−1.
    pub(crate) fn integer_or_minus_one(&self, key: &str) -> Option<i64> {
        self.integer(key)
            .map(|number| if number == i64::MAX { -1 } else { number })
    }

    /// Checks whether the member is `true`. Real servers take `false` for true, which no client
    /// sends.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.raw(key) == Some("true")
    }

    /// A string.
    pub(crate) fn string(&self, key: &str) -> Option<String> {
        serde_json::from_str(self.raw(key)?).ok()
    }

    /// A member object.
    pub(crate) fn object(&self, key: &str) -> Option<Self> {
        let text = self.raw(key).filter(|text| text.starts_with('{'))?;
        Self::parse(text).ok()
    }

    /// The texts of an array of at most `max_len` elements. `None` when the member is no array.
    pub(crate) fn array(
        &self,
        key: &str,
        max_len: usize,
    ) -> Option<Result<Vec<&'a str>, Malformed>> {
        let text = self.raw(key).filter(|text| text.starts_with('['))?;
        let elements =
            serde_json::Deserializer::from_str(text).deserialize_seq(ElementVisitor { max_len });
        Some(elements.map_err(|_| Malformed))
    }
}

/// The first value of the text; what follows it is ignored.
fn first_value(text: &str) -> Result<&str, Malformed> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = <&RawValue>::deserialize(&mut json).map_err(|_| Malformed)?;
    Ok(value.get())
}

#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

struct MemberVisitor;

impl<'de> Visitor<'de> for MemberVisitor {
    type Value = Vec<(Cow<'de, str>, &'de str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(Key(name)) = map.next_key::<Key<'de>>()? {
            if members.len() < MEMBERS_MAX {
                members.push((name, map.next_value::<&'de RawValue>()?.get()));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }

        Ok(members)
    }
}

struct ElementVisitor {
    max_len: usize,
}

impl<'de> Visitor<'de> for ElementVisitor {
    type Value = Vec<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an array of at most {} elements", self.max_len)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element::<&'de RawValue>()? {
            if elements.len() == self.max_len {
                return Err(serde::de::Error::custom("too many elements"));
            }
            elements.push(element.get());
        }

        Ok(elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Object<'_> {
        Object::parse(text).expect("valid JSON")
    }

    #[test]
    fn numbers_are_read_as_the_original_does() {
        let rows = [
            ("1", Some(1)),
            ("-7", Some(-7)),
            ("1.9", Some(1)),
            ("-1.9", Some(-1)),
            ("1e3", Some(1000)),
            ("9223372036854775807", Some(i64::MAX)),
            ("18446744073709551615", Some(i64::MAX)),
            ("-99999999999999999999", Some(i64::MIN)),
            ("1e999", Some(i64::MAX)),
            ("null", None),
            ("true", None),
            ("\"5\"", None),
            ("[5]", None),
        ];
        for (number, expected) in rows {
            let text = format!("{{\"len\":{number}}}");
            assert_eq!(object(&text).integer("len"), expected, "{number}");
        }

        assert_eq!(
            object(r#"{"len":9007199254740993}"#).integer("len"),
            Some(9_007_199_254_740_993)
        );
        assert_eq!(
            object(r#"{"len":18446744073709551615}"#).integer_or_minus_one("len"),
            Some(-1)
        );
        assert_eq!(
            object(r#"{"len":1.8446744073709552e19}"#).integer_or_minus_one("len"),
            Some(-1)
        );
    }

    #[test]
    fn keys_ignore_case_and_the_first_of_two_wins() {
        assert_eq!(object(r#"{"LEN":1,"len":2}"#).integer("len"), Some(1));
        assert_eq!(object(r#"{"l\u0065n":3}"#).integer("len"), Some(3));
    }

    #[test]
    fn what_is_not_an_object_is_an_empty_one() {
        for text in ["[]", "null", "\"x\"", "7", "[{\"len\":1}]"] {
            assert_eq!(object(text).integer("len"), None, "{text}");
        }
    }

    #[test]
    fn bytes_after_the_object_do_not_count() {
        assert_eq!(object("{\"len\":1}\0").integer("len"), Some(1));
        assert_eq!(object("{\"len\":1}}}{[").integer("len"), Some(1));
    }

    #[test]
    fn other_types_are_absent() {
        let o = object(r#"{"tcp":false,"title":5,"sub":[],"list":{}}"#);
        assert!(!o.flag("tcp"));
        assert_eq!(o.string("title"), None);
        assert!(o.object("sub").is_none());
        assert!(o.array("list", 5).is_none());
        assert!(object(r#"{"tcp":true}"#).flag("tcp"));
    }

    #[test]
    fn depth_and_length_are_bounded() {
        let deep = |n: usize| format!("{{\"x\":{}{}}}", "[".repeat(n), "]".repeat(n));
        assert!(Object::parse(&deep(100)).is_ok());
        assert!(Object::parse(&deep(200)).is_err());
        assert!(Object::parse(&deep(1_000_000)).is_err());

        let o = object(r#"{"list":[1,{"len":4},{}]}"#);
        assert_eq!(
            o.array("list", 3)
                .expect("an array")
                .expect("short enough")
                .len(),
            3
        );
        assert!(o.array("list", 2).expect("an array").is_err());

        let wide = format!("{{{}\"len\":1}}", "\"x\":0,".repeat(MEMBERS_MAX));
        assert_eq!(object(&wide).0.len(), MEMBERS_MAX);
    }

    #[test]
    fn broken_text_is_an_error() {
        for text in ["", "{", "{\"len\":}", "nul", "{\"len\" 1}", "\0"] {
            assert!(Object::parse(text).is_err(), "{text:?}");
        }
    }
}
