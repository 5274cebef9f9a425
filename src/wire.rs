//! How an object on the wire is declared, read and described: once each.
//!
//! `object!` makes from one declaration the struct, the reader that names any fault by its full path
//! (`matches[0].match_id: got 7, expected a string`), and the JSON schema that tool clients ask for.
//! serde writes. It does not read what comes from outside: derived readers lose the path of a nested
//! field, take arrays for structs, and give no schema. Configuration files are read here too.
//!
//! Pure: no I/O. Read next: `protocol.rs`, which declares the messages.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, marker::PhantomData};

/// What is wrong with a value, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// The full path of the field; empty for the whole value.
    pub path: String,
    /// What came and what was expected.
    pub problem: String,
    /// Whether a well-placed timestamp says nonsense (E021) or the field itself is at fault (E003).
    pub is_time: bool,
}

impl Fault {
    /// The value at hand is not what it must be.
    pub fn new(got: &Value, expected: &str) -> Fault {
        let text = got.to_string();
        let cut: String = text.chars().take(60).collect();
        let dots = if cut.len() < text.len() { "…" } else { "" };
        Fault { path: String::new(), problem: format!("got {cut}{dots}, expected {expected}"), is_time: false }
    }

    /// The field is not there.
    pub fn missing(field: &str) -> Fault {
        Fault { path: field.into(), problem: "missing".into(), is_time: false }
    }

    /// The same fault, seen from the object or array around it.
    pub fn under(mut self, step: &str) -> Fault {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{step}{dot}{}", self.path);
        self
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let colon = if self.path.is_empty() { "" } else { ": " };
        write!(f, "{}{colon}{}", self.path, self.problem)
    }
}

/// A value that can stand in a message or a configuration file.
pub trait Wire: Sized {
    /// Reads the value, or says what is wrong with it.
    fn read(value: &Value) -> Result<Self, Fault>;
    /// The JSON schema of what `read` takes.
    fn schema() -> Value;
}

/// Takes a required field out of an object.
pub fn field<T: Wire>(object: &Map<String, Value>, name: &str) -> Result<T, Fault> {
    let value = object.get(name).ok_or_else(|| Fault::missing(name))?;
    T::read(value).map_err(|fault| fault.under(name))
}

/// Takes a field that may be absent or null out of an object.
pub fn optional<T: Wire>(object: &Map<String, Value>, name: &str) -> Result<Option<T>, Fault> {
    if object.contains_key(name) { field(object, name) } else { Ok(None) }
}

/// `value` as an object, or the fault.
pub fn object_of(value: &Value) -> Result<&Map<String, Value>, Fault> {
    value.as_object().ok_or_else(|| Fault::new(value, "an object"))
}

/// The first key in `value` that `schema` does not know.
pub fn unknown_key(value: &Value, schema: &Value) -> Option<Fault> {
    match (value, schema["properties"].as_object(), schema.get("items")) {
        (Value::Object(object), Some(known), _) => object.iter().find_map(|(key, value)| match known.get(key) {
            Some(schema) => unknown_key(value, schema).map(|fault| fault.under(key)),
            None => {
                let legal: Vec<&str> = known.keys().map(String::as_str).collect();
                let problem = format!("unknown key, expected one of {}", legal.join(", "));
                Some(Fault { path: key.clone(), problem, is_time: false })
            }
        }),
        (Value::Array(items), _, Some(schema)) => {
            let find = |(n, item)| unknown_key(item, schema).map(|fault| fault.under(&format!("[{n}]")));
            items.iter().enumerate().find_map(find)
        }
        _ => None,
    }
}

macro_rules! plain {
    ($($type:ty, $expected:literal, $schema:tt, $read:expr;)*) => {$(
        impl Wire for $type {
            fn read(value: &Value) -> Result<Self, Fault> {
                $read(value).ok_or_else(|| Fault::new(value, $expected))
            }
            fn schema() -> Value {
                json!($schema)
            }
        }
    )*};
}
plain! {
    String, "a string", {"type": "string"}, |v: &Value| v.as_str().map(String::from);
    bool, "true or false", {"type": "boolean"}, Value::as_bool;
    i32, "a 32-bit integer", {"type": "integer", "minimum": i32::MIN, "maximum": i32::MAX},
        |v: &Value| v.as_i64().and_then(|n| n.try_into().ok());
    u32, "a whole number from 0 to 2147483647", {"type": "integer", "minimum": 0, "maximum": i32::MAX},
        |v: &Value| v.as_u64().and_then(|n| i32::try_from(n).ok()).map(i32::unsigned_abs);
    u16, "a whole number from 0 to 65535", {"type": "integer", "minimum": 0, "maximum": 65535},
        |v: &Value| v.as_u64().and_then(|n| n.try_into().ok());
    f64, "a number", {"type": "number"}, Value::as_f64;
    Map<String, Value>, "an object", {"type": "object"}, |v: &Value| v.as_object().cloned();
}

impl<T: Wire> Wire for Option<T> {
    fn read(value: &Value) -> Result<Self, Fault> {
        if value.is_null() { Ok(None) } else { T::read(value).map(Some) }
    }
    fn schema() -> Value {
        json!({"anyOf": [T::schema(), {"type": "null"}]})
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn read(value: &Value) -> Result<Self, Fault> {
        let items = value.as_array().ok_or_else(|| Fault::new(value, "an array"))?;
        let read = |(n, item)| T::read(item).map_err(|fault| fault.under(&format!("[{n}]")));
        items.iter().enumerate().map(read).collect()
    }
    fn schema() -> Value {
        json!({"type": "array", "items": T::schema()})
    }
}

impl<T: Wire> Wire for BTreeMap<String, T> {
    fn read(value: &Value) -> Result<Self, Fault> {
        let read = |(key, value): (&String, &Value)| match T::read(value) {
            Ok(value) => Ok((key.clone(), value)),
            Err(fault) => Err(fault.under(key)),
        };
        object_of(value)?.iter().map(read).collect()
    }
    fn schema() -> Value {
        json!({"type": "object", "additionalProperties": T::schema()})
    }
}

/// A value that its handler judges, not the reader: any JSON is let in, the schema says what is legal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent, bound = "")]
pub struct Unread<T>(pub Value, #[serde(skip)] PhantomData<T>);

impl<T: Wire> Unread<T> {
    /// Wraps a value as it came, or is to go out.
    pub fn new(value: impl Into<Value>) -> Unread<T> {
        Unread(value.into(), PhantomData)
    }
    /// Judges it.
    pub fn get(&self) -> Result<T, Fault> {
        T::read(&self.0)
    }
}

impl<T: Wire> Wire for Unread<T> {
    fn read(value: &Value) -> Result<Self, Fault> {
        Ok(Unread::new(value.clone()))
    }
    fn schema() -> Value {
        T::schema()
    }
}

/// Declares objects. Fields after `nullable` may be absent on reading and are written as null when there is
/// nothing to say; fields after `optional` may be absent and are then left out. An `Option` before them is
/// a field that must be there, and may be null.
#[macro_export]
macro_rules! object {
    ($($(#[$doc:meta])* $name:ident {
        $($field:ident: $type:ty,)*
        $(; nullable $($null:ident: $nulltype:ty,)*)?
        $(; optional $($opt:ident: $opttype:ty,)*)?
    })*) => {$(
        $(#[$doc])*
        #[allow(missing_docs, non_snake_case, reason = "fields are the spec's, word for word")]
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $(pub $field: $type,)*
            $($(#[serde(default)] pub $null: Option<$nulltype>,)*)?
            $($(#[serde(default, skip_serializing_if = "Option::is_none")] pub $opt: Option<$opttype>,)*)?
        }
        impl $crate::wire::Wire for $name {
            fn read(value: &serde_json::Value) -> Result<Self, $crate::wire::Fault> {
                #[allow(unused_variables, reason = "an object may have no fields")]
                let object = $crate::wire::object_of(value)?;
                Ok($name {
                    $($field: $crate::wire::field(object, $crate::wire::plain_name(stringify!($field)))?,)*
                    $($($null: $crate::wire::optional(object, stringify!($null))?,)*)?
                    $($($opt: $crate::wire::optional(object, stringify!($opt))?,)*)?
                })
            }
            fn schema() -> serde_json::Value {
                let required: &[&str] = &[$($crate::wire::plain_name(stringify!($field))),*];
                serde_json::json!({"type": "object", "required": required, "properties": {
                    $($crate::wire::plain_name(stringify!($field)): <$type>::schema(),)*
                    $($(stringify!($null): <Option<$nulltype>>::schema(),)*)?
                    $($(stringify!($opt): <$opttype>::schema(),)*)?
                }})
            }
        }
    )*};
}

/// A field's name without the `r#` that a Rust keyword needs.
pub fn plain_name(field: &'static str) -> &'static str {
    field.strip_prefix("r#").unwrap_or(field)
}

/// Declares closed sets of words.
#[macro_export]
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[allow(missing_docs, reason = "the words are the spec's and say it themselves")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name { $(#[serde(rename = $word)] $variant,)* }
        impl $name {
            /// The word as it stands on the wire.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }
        impl $crate::wire::Wire for $name {
            fn read(value: &serde_json::Value) -> Result<Self, $crate::wire::Fault> {
                match value.as_str() {
                    $(Some($word) => Ok($name::$variant),)*
                    _ => Err($crate::wire::Fault::new(value, &[$(concat!("\"", $word, "\"")),*].join(" or "))),
                }
            }
            fn schema() -> serde_json::Value {
                serde_json::json!({"type": "string", "enum": [$($word),*]})
            }
        }
    )*};
}
