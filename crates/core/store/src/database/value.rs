//! Values of statements and rows.

use linerate_model::record::RunId;

use crate::StoreError;

/// A value of a column or a parameter.
#[derive(Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

/// A row of a result.
#[derive(Debug)]
pub(crate) struct Row(pub Vec<Value>);

/// A list of parameters.
macro_rules! params {
    ($($value:expr),* $(,)?) => { [$($crate::database::Value::from($value)),*] };
}
pub(crate) use params;

impl Row {
    /// The value of a column, from 0.
    pub(crate) fn get<T: FromValue>(&self, column: usize) -> Result<T, StoreError> {
        let value = self.0.get(column).and_then(T::from_value);
        value.ok_or_else(|| {
            StoreError::damaged(format!("column {column}"), "another type than stored")
        })
    }
}

/// A type that columns are read as.
pub(crate) trait FromValue: Sized {
    /// `None` where the value has another type or is outside the range.
    fn from_value(value: &Value) -> Option<Self>;
}

impl FromValue for i64 {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Integer(number) = value {
            Some(*number)
        } else {
            None
        }
    }
}

/// Times and sizes; SQLite has signed integers alone.
impl FromValue for u64 {
    fn from_value(value: &Value) -> Option<Self> {
        i64::from_value(value).map(i64::cast_unsigned)
    }
}

impl FromValue for RunId {
    fn from_value(value: &Value) -> Option<Self> {
        String::from_value(value)?.parse().ok()
    }
}

impl FromValue for u32 {
    fn from_value(value: &Value) -> Option<Self> {
        i64::from_value(value)?.try_into().ok()
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Option<Self> {
        Some(i64::from_value(value)? != 0)
    }
}

impl FromValue for f64 {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Real(number) = value {
            Some(*number)
        } else {
            None
        }
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Text(text) = value {
            Some(text.clone())
        } else {
            None
        }
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Blob(bytes) = value {
            Some(bytes.clone())
        } else {
            None
        }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Self> {
        if *value == Value::Null {
            Some(None)
        } else {
            T::from_value(value).map(Some)
        }
    }
}

macro_rules! from {
    ($($type:ty, $value:ident => $made:expr;)*) => {
        $(impl From<$type> for Value {
            fn from($value: $type) -> Self {
                $made
            }
        })*
    };
}
from! {
    i64, number => Self::Integer(number);
    u64, number => Self::Integer(number.cast_signed());
    RunId, run => Self::Text(run.to_string());
    u32, number => Self::Integer(number.into());
    bool, is_true => Self::Integer(is_true.into());
    f64, number => Self::Real(number);
    &str, text => Self::Text(text.to_owned());
    String, text => Self::Text(text);
    &String, text => Self::Text(text.clone());
    &Option<String>, text => text.as_ref().map_or(Self::Null, Self::from);
    Vec<u8>, bytes => Self::Blob(bytes);
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
