//! How an object on the wire is declared, read and described: once each.
//!
//! `object!` makes from one declaration the struct, the reader that names every fault by its full
//! path (`matches[0].match_id: got 7, expected a string`), and the JSON schema that tool clients
//! ask for. serde writes. It does not read what comes from outside: derived readers lose the path
//! of a nested field, take arrays for structs, and give no schema. Configuration files are read
//! here too. Read next: `protocol.rs`, which declares the messages.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, marker::PhantomData, sync::Arc};

/// What is wrong with a value, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// The full path of the field, or of several that are missing; empty for the whole value.
    pub path: String,
    /// What came and what was expected.
    pub problem: String,
    /// What sort of fault it is.
    pub kind: FaultKind,
}

/// The three sorts of fault that somebody decides by.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum FaultKind {
    Missing,
    Time,
    Wrong,
}

impl Fault {
    /// The value at hand is not what it must be; null is as if it were not there.
    pub fn new(got: &Value, expected: &str) -> Fault {
        let (kind, came) = if got.is_null() {
            (FaultKind::Missing, "missing".into())
        } else {
            let came = format!("got {}", cut(&got.to_string(), 60));
            (FaultKind::Wrong, came)
        };
        Fault {
            path: String::new(),
            problem: format!("{came}, expected {expected}"),
            kind,
        }
    }

    /// The same fault, seen from the object or array around it.
    pub fn under(mut self, step: &str) -> Fault {
        let dot = if self.path.is_empty() || self.path.starts_with('[') {
            ""
        } else {
            "."
        };
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

/// The first `most` characters of a text, and dots where it is longer: nobody's text is passed on
/// without end.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

/// A value that can stand in a message or a configuration file.
pub trait Wire: Sized {
    /// Reads the value; what is wrong with it is noted in the reader, and `None` comes back.
    fn read_in(value: &Value, reader: &mut Reader) -> Option<Self>;
    /// The JSON schema of what is read.
    fn schema() -> Value;

    /// What is read where a field is absent: as if it were null.
    fn absent(reader: &mut Reader) -> Option<Self> {
        Self::read_in(&Value::Null, reader)
    }

    /// Reads the value, or says what is wrong with it, in optional fields too.
    fn read(value: &Value) -> Result<Self, Fault> {
        let mut reader = Reader::default();
        let read = Self::read_in(value, &mut reader);
        reader.faults.append(&mut reader.ignored);
        reader.end(read)
    }
}

/// Walks through a value and notes every fault with its path.
#[derive(Debug, Default)]
pub struct Reader {
    faults: Vec<Fault>,
    /// What is wrong with optional fields: they count as absent.
    pub ignored: Vec<Fault>,
}

impl Reader {
    /// What was read; or all that is missing, named at once; or the first thing that is wrong.
    pub fn end<T>(&mut self, read: Option<T>) -> Result<T, Fault> {
        let faults = std::mem::take(&mut self.faults);
        let missing = faults.iter().filter(|it| it.kind == FaultKind::Missing);
        let missing: Vec<&str> = missing.map(|fault| &*fault.path).collect();
        if missing.len() > 1 {
            return Err(Fault {
                path: missing.join(", "),
                problem: "missing".into(),
                kind: FaultKind::Missing,
            });
        }
        match faults
            .into_iter()
            .min_by_key(|it| it.kind != FaultKind::Missing)
        {
            Some(fault) => Err(fault),
            None => read.ok_or_else(|| Fault::new(&Value::Null, "a value")),
        }
    }

    /// Notes that the value at hand is not what it must be.
    pub fn wrong<T>(&mut self, got: &Value, expected: &str) -> Option<T> {
        self.note(Fault::new(got, expected))
    }

    /// Notes a fault of the value at hand.
    pub fn note<T>(&mut self, fault: Fault) -> Option<T> {
        self.faults.push(fault);
        None
    }

    /// Reads what stands one step deeper: a field's name, or `[0]`.
    pub fn at<T>(&mut self, step: &str, read: impl FnOnce(&mut Reader) -> Option<T>) -> Option<T> {
        let [faults, ignored] = [self.faults.len(), self.ignored.len()];
        let value = read(self);
        let inside = self.faults[faults..].iter_mut();
        for fault in inside.chain(&mut self.ignored[ignored..]) {
            *fault = fault.clone().under(step); // rare
        }
        value
    }

    /// A field that must be there; where it may be null it may also be absent.
    pub fn field<T: Wire>(&mut self, object: &Value, name: &str) -> Option<T> {
        self.at(name, |reader| match object.get(name) {
            Some(value) => T::read_in(value, reader),
            None => T::absent(reader),
        })
    }

    /// A field that may be absent or null; in a message it counts as absent also where it is wrong.
    pub fn optional<T: Wire>(&mut self, object: &Value, name: &str) -> Option<T> {
        let before = self.faults.len();
        let value = self.field::<Option<T>>(object, name).flatten();
        self.ignored.extend(self.faults.drain(before..));
        value
    }
}

/// The first key in `value` that `schema` does not know.
pub fn unknown_key(value: &Value, schema: &Value) -> Option<Fault> {
    if let Some(items) = value.as_array() {
        return items.iter().enumerate().find_map(|(n, item)| {
            let fault = unknown_key(item, &schema["items"])?;
            Some(fault.under(&format!("[{n}]")))
        });
    }
    let known = schema["properties"].as_object()?;
    value.as_object()?.iter().find_map(|(key, inner)| {
        if let Some(schema) = known.get(key) {
            return unknown_key(inner, schema).map(|fault| fault.under(key));
        }
        let legal: Vec<&str> = known.keys().map(String::as_str).collect();
        Some(Fault {
            path: key.clone(),
            problem: format!("unknown key, expected one of {}", legal.join(", ")),
            kind: FaultKind::Wrong,
        })
    })
}

/// A key of `value` that `schema` does not know and that looks like the missing field at `path`.
pub fn lookalike<'a>(value: &'a Value, schema: &Value, path: &str) -> Option<&'a str> {
    if let Some((step, rest)) = path.split_once('.') {
        return lookalike(value.get(step)?, &schema["properties"][step], rest);
    }
    let letters = |name: &str| name.to_lowercase().replace(['_', '-', ' '], "");
    let wanted = letters(path);
    let unknown = value
        .as_object()?
        .keys()
        .filter(|key| schema["properties"].get(key).is_none());
    unknown.map(String::as_str).find(|key| {
        let key = letters(key);
        let is_part = wanted.contains(&key) || key.contains(&wanted);
        key.len() > 3 && is_part || one_slip(&key, &wanted)
    })
}

/// Whether two words are the same but for one letter, or two that stand side by side: what is typed
/// by mistake.
pub fn one_slip(one: &str, other: &str) -> bool {
    let same = |(a, b): &(u8, u8)| a == b;
    let start = one.bytes().zip(other.bytes()).take_while(same).count();
    let back = one.bytes().rev().zip(other.bytes().rev());
    let end = back.take_while(same).count();
    one.len().max(other.len()) <= start + end + 2
}

/// A number without a sign or a fraction, where the type has room for it.
pub fn whole<T: TryFrom<u64>>(value: &Value) -> Option<T> {
    value.as_u64()?.try_into().ok()
}

macro_rules! plain {
    ($($type:ty, $expected:literal, $schema:tt, $read:expr;)*) => {$(
        impl Wire for $type {
            fn read_in(value: &Value, reader: &mut Reader) -> Option<Self> {
                $read(value).or_else(|| reader.wrong(value, $expected))
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
        |v: &Value| whole(v).map(i32::unsigned_abs);
    u16, "a whole number from 0 to 65535", {"type": "integer", "minimum": 0, "maximum": 65535}, whole;
    u64, "a whole number", {"type": "integer", "minimum": 0}, Value::as_u64;
    usize, "a whole number", {"type": "integer", "minimum": 0}, whole;
    f64, "a number", {"type": "number"}, Value::as_f64;
    Map<String, Value>, "an object", {"type": "object"}, |v: &Value| v.as_object().cloned();
}

impl<T: Wire> Wire for Option<T> {
    fn read_in(value: &Value, reader: &mut Reader) -> Option<Self> {
        if value.is_null() {
            Some(None)
        } else {
            T::read_in(value, reader).map(Some)
        }
    }
    fn schema() -> Value {
        json!({"anyOf": [T::schema(), {"type": "null"}]})
    }
}

impl<T: Wire> Wire for Arc<T> {
    fn read_in(value: &Value, reader: &mut Reader) -> Option<Self> {
        T::read_in(value, reader).map(Arc::new)
    }
    fn schema() -> Value {
        T::schema()
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn read_in(value: &Value, reader: &mut Reader) -> Option<Self> {
        let Some(items) = value.as_array() else {
            return reader.wrong(value, "an array");
        };
        let read = |(n, item)| reader.at(&format!("[{n}]"), |inside| T::read_in(item, inside));
        let all: Vec<T> = items.iter().enumerate().filter_map(read).collect();
        // every item is looked at, also after a faulty one
        (all.len() == items.len()).then_some(all)
    }
    fn schema() -> Value {
        json!({"type": "array", "items": T::schema()})
    }
}

impl<T: Wire> Wire for BTreeMap<String, T> {
    fn read_in(value: &Value, reader: &mut Reader) -> Option<Self> {
        let Some(fields) = value.as_object() else {
            return reader.wrong(value, "an object");
        };
        let read = |(key, item): (&String, &Value)| {
            let item = reader.at(&cut(key, 60), |inside| T::read_in(item, inside))?;
            Some((key.clone(), item))
        };
        fields.iter().map(read).collect()
    }
    fn schema() -> Value {
        json!({"type": "object", "additionalProperties": T::schema()})
    }
}

/// A value that its handler judges, not the reader: any JSON is let in, the schema says what is
/// legal.
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
    fn read_in(value: &Value, _: &mut Reader) -> Option<Self> {
        Some(Unread::new(value.clone()))
    }
    fn absent(reader: &mut Reader) -> Option<Self> {
        T::read_in(&Value::Null, reader).and(None)
    }
    fn schema() -> Value {
        T::schema()
    }
}

/// Declares objects. Fields before the word must be there, though an `Option` may be null or
/// absent. Behind `optional` they may be absent, are not written where there is nothing to say, and
/// never make a message unreadable.
#[macro_export]
macro_rules! object {
    ($($(#[$doc:meta])* $name:ident {
        $($field:ident: $type:ty,)*
        $(; optional $($opt:ident: $opttype:ty,)*)?
    })*) => {$(
        $(#[$doc])*
        #[allow(missing_docs, non_snake_case, reason = "fields are the protocol's, word for word")]
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $(pub $field: $type,)*
            $($(#[serde(default, skip_serializing_if = "Option::is_none")] pub $opt: Option<$opttype>,)*)?
        }
        impl $crate::wire::Wire for $name {
            #[allow(non_snake_case, reason = "fields are the protocol's, word for word")]
            fn read_in(value: &serde_json::Value, reader: &mut $crate::wire::Reader) -> Option<Self> {
                if !value.is_object() {
                    return reader.wrong(value, "an object");
                }
                $(let $field = reader.field(value, $crate::wire::plain_name(stringify!($field)));)*
                $($(let $opt = reader.optional(value, stringify!($opt));)*)?
                Some($name { $($field: $field?,)* $($($opt,)*)? })
            }
            fn schema() -> serde_json::Value {
                let required: &[&str] = &[$($crate::wire::plain_name(stringify!($field))),*];
                let types = [$(<$type>::schema(),)* $($(<$opttype>::schema(),)*)?];
                let names = required.iter().copied().chain([$($(stringify!($opt),)*)?]);
                let properties: serde_json::Map<_, _> = names.map(String::from).zip(types).collect();
                serde_json::json!({"type": "object", "required": required, "properties": properties})
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
            pub const fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }
        impl $crate::wire::Wire for $name {
            fn read_in(value: &serde_json::Value, reader: &mut $crate::wire::Reader) -> Option<Self> {
                match value.as_str() {
                    $(Some($word) => Some($name::$variant),)*
                    _ => reader.wrong(value, &[$(concat!("\"", $word, "\"")),*].join(" or ")),
                }
            }
            fn schema() -> serde_json::Value {
                serde_json::json!({"type": "string", "enum": [$($word),*]})
            }
        }
    )*};
}
