//! Derives the JSON schema of a type from its serde implementation. Skip this file at first
//! reading.
//!
//! A type that serde decodes asks a `Deserializer` for what it needs: an object with these fields,
//! a string, an optional number. The `Recorder` is a `Deserializer` without any JSON: it records
//! what it is asked for, and answers with a sample value.

use serde::de::value::{Error, MapDeserializer, SeqDeserializer};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde_json::{Value, json};
use std::iter;

/// Returns the JSON schema of a type. In each schema, `description` says what is expected.
///
/// # Panics
/// If the type rejects the sample values below.
pub fn schema_of<T: DeserializeOwned>() -> Value {
    let mut recorder = Recorder::default();
    T::deserialize(&mut recorder).expect("a type that can be decoded from sample values");
    recorder.schema
}

/// Decodes a field that must be valid where it is present, and that is written as null where there
/// is nothing: `#[serde(default, deserialize_with = "nullable")]`.
pub fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    #[derive(serde::Deserialize)]
    struct Nullable<T>(Option<T>);

    Nullable::deserialize(deserializer).map(|field| field.0)
}

/// Records what one value must be.
#[derive(Default)]
struct Recorder {
    schema: Value,
    /// True if the field may be absent.
    is_optional: bool,
}

impl<'de> IntoDeserializer<'de> for &mut Recorder {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Implements the methods for numbers, strings and `Value`: name, schema, visitor's method, sample.
macro_rules! simple_types {
    ($($method:ident $schema:tt $visit:ident($($sample:expr)?);)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.schema = json!($schema);
            visitor.$visit($($sample)?)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Recorder {
    type Error = Error;

    simple_types! {
        deserialize_any {"description": "any value"} visit_unit();
        deserialize_bool {"type": "boolean", "description": "true or false"} visit_bool(true);
        deserialize_i32 {
            "type": "integer", "minimum": i32::MIN, "maximum": i32::MAX,
            "description": "a 32-bit integer"
        } visit_i32(1);
        deserialize_u32 {
            "type": "integer", "minimum": 0, "maximum": u32::MAX,
            "description": "a whole number from 0 to 4294967295"
        } visit_u32(1);
        deserialize_u64 {
            "type": "integer", "minimum": 0, "description": "a whole number"
        } visit_u64(1);
        deserialize_f64 {"type": "number", "description": "a number"} visit_f64(1.0);
        deserialize_string {
            "type": "string", "description": "a string"
        } visit_str("2025-01-15T10:30:00Z"); // it may be a timestamp
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let value = visitor.visit_some(&mut *self)?;
        self.schema = json!({"anyOf": [self.schema.take(), {"type": "null"}]});
        self.is_optional = true;
        Ok(value)
    }

    /// The name of a newtype is the format of its string, except that of the helper above.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let value = visitor.visit_newtype_struct(&mut *self)?;
        if name == "Nullable" {
            self.is_optional = false;
        } else {
            self.schema["format"] = name.into();
        }

        if name == "date-time" {
            self.schema["description"] = "a UTC time like \"2025-01-15T10:30:00Z\"".into();
        }
        Ok(value)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut item = Recorder::default();
        let value = visitor.visit_seq(SeqDeserializer::new(iter::once(&mut item)))?;
        self.schema = json!({"type": "array", "description": "an array", "items": item.schema});
        Ok(value)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut entry = Recorder::default();
        let entries = iter::once(("key", &mut entry));
        let value = visitor.visit_map(MapDeserializer::new(entries))?;
        self.schema = json!({
            "type": "object", "description": "an object", "additionalProperties": entry.schema
        });
        Ok(value)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        // Record every field.
        let mut fields: Vec<Recorder> = names.iter().map(|_| Recorder::default()).collect();
        let named = names.iter().copied().zip(&mut fields);
        let value = visitor.visit_map(MapDeserializer::new(named))?;

        // Put them together.
        self.schema = json!({
            "type": "object", "description": "an object", "required": [], "properties": {}
        });
        for (name, mut field) in names.iter().zip(fields) {
            if field.is_optional {
                field.schema = field.schema["anyOf"][0].take();
            } else if let Some(required) = self.schema["required"].as_array_mut() {
                required.push(json!(name));
            }
            self.schema["properties"][name] = field.schema;
        }
        Ok(value)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let quoted: Vec<String> = variants.iter().map(|word| format!("{word:?}")).collect();
        self.schema =
            json!({"type": "string", "enum": variants, "description": quoted.join(" or ")});
        visitor.visit_enum(variants[0].into_deserializer())
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i64 u8 u16 f32 char str bytes byte_buf unit unit_struct tuple tuple_struct
        identifier ignored_any
    }
}
