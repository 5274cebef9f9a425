//! Decodes JSON that comes from outside: messages, arguments of tools, configuration files.
//!
//! All objects are declared with plain serde derives. serde alone stops at the first error and does
//! not say in which nested field it is. Therefore a value is first checked against the JSON schema
//! of its type, and then decoded by serde. The check names every missing field at once, and an
//! invalid one by its full path, with what was received and what is expected. The schema is derived
//! from the type (`json/schema.rs`); tool clients are shown the same one.
//!
//! A required field must be present and valid. An optional field (an `Option`) may be absent or
//! null. In a message, an optional field that is invalid counts as absent.

mod schema;

pub use schema::{nullable, schema_of};

use crate::values::{Timestamp, truncate};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A field that is missing or invalid.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// The full path of the field, like `matches[0].match_id`, or of all missing fields; empty for
    /// the whole value.
    pub path: String,
    /// The received value and the expected one, in words.
    pub problem: String,
    /// The kind of error, on which the error code depends.
    pub kind: FieldErrorKind,
}

/// The kinds of errors in a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FieldErrorKind {
    /// The field is absent or null.
    Missing,
    /// The field is absent, and another one has a similar name.
    Similar,
    /// A string is not a UTC time.
    InvalidTimestamp,
    /// The field has another type or value than expected.
    Invalid,
}

impl FieldError {
    /// Returns the error of a value that is not as expected; null counts as missing.
    pub fn new(received: &Value, expected: &str) -> FieldError {
        let (kind, received) = if received.is_null() {
            (FieldErrorKind::Missing, "missing".to_string())
        } else {
            let text = truncate(&received.to_string(), 60);
            (FieldErrorKind::Invalid, format!("got {text}"))
        };

        FieldError {
            path: String::new(),
            problem: format!("{received}, expected {expected}"),
            kind,
        }
    }

    /// Returns the same error with the name of the surrounding field before its path.
    pub fn in_field(mut self, name: &str) -> FieldError {
        let separator = if self.path.is_empty() || self.path.starts_with('[') {
            ""
        } else {
            "."
        };
        self.path = format!("{name}{separator}{}", self.path);
        self
    }

    fn is_missing(&self) -> bool {
        use FieldErrorKind::{Missing, Similar};
        matches!(self.kind, Missing | Similar)
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let colon = if self.path.is_empty() { "" } else { ": " };
        write!(f, "{}{colon}{}", self.path, self.problem)
    }
}

/// Decodes a value. Invalid optional fields are errors.
pub fn decode<T: DeserializeOwned>(value: &Value) -> Result<T, FieldError> {
    // A number or a text has no fields to check.
    if !is_container(value)
        && let Ok(decoded) = T::deserialize(value)
    {
        return Ok(decoded);
    }

    let mut value = value.clone();
    let mut result = check(&mut value, &schema_of::<T>());
    result.errors.append(&mut result.ignored);
    result.into_result()?;
    deserialize(&value)
}

/// Decodes a value that has been checked.
pub fn deserialize<T: DeserializeOwned>(value: &Value) -> Result<T, FieldError> {
    T::deserialize(value).map_err(|error| FieldError {
        path: String::new(),
        problem: error.to_string(),
        kind: FieldErrorKind::Invalid,
    })
}

/// The result of a check.
#[derive(Debug, Default)]
pub struct CheckResult {
    /// Errors in required fields.
    pub errors: Vec<FieldError>,
    /// Errors in optional fields, which were removed.
    pub ignored: Vec<FieldError>,
}

impl CheckResult {
    /// Returns an error that names all missing fields, else the first invalid field.
    pub fn into_result(mut self) -> Result<(), FieldError> {
        let missing = self.errors.iter().filter(|error| error.is_missing());
        let paths: Vec<&str> = missing.map(|error| error.path.as_str()).collect();
        if paths.len() > 1 {
            let mut errors = self.errors.iter();
            let similar = errors.find(|error| error.kind == FieldErrorKind::Similar);
            return Err(FieldError {
                path: paths.join(", "),
                problem: similar.map_or("missing".into(), |error| error.problem.clone()),
                kind: FieldErrorKind::Missing,
            });
        }

        self.errors.sort_by_key(|error| !error.is_missing());
        self.errors.into_iter().next().map_or(Ok(()), Err)
    }

    /// Adds what was found in a field.
    fn add(&mut self, name: &str, found: CheckResult) {
        for error in found.errors {
            self.errors.push(error.in_field(name));
        }
        for error in found.ignored {
            self.ignored.push(error.in_field(name));
        }
    }
}

/// Checks a value against the schema of its type, and removes the optional fields that are invalid.
pub fn check(value: &mut Value, schema: &Value) -> CheckResult {
    let mut result = CheckResult::default();

    // A value that may be null, or that its handler checks.
    if let Some(types) = schema.get("anyOf") {
        if value.is_null() {
            return result;
        }

        return check(value, &types[0]);
    }
    if schema.get("$comment").is_some() {
        return result;
    }

    // The value itself.
    if !is_valid(value, schema) {
        let mut error = FieldError::new(value, description(schema));
        if value.is_string() && schema["format"] == "date-time" {
            error.kind = FieldErrorKind::InvalidTimestamp;
        }
        result.errors.push(error);
        return result;
    }

    // The values in it.
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                result.add(&format!("[{index}]"), check(item, &schema["items"]));
            }
        }
        Value::Object(object) => check_fields(object, schema, &mut result),
        _ => {}
    }
    result
}

/// Checks the fields of an object, or the entries of a map.
fn check_fields(object: &mut Map<String, Value>, schema: &Value, result: &mut CheckResult) {
    // Required fields. One that may be null may also be absent.
    for name in required_fields(schema) {
        let field = &schema["properties"][name];
        if let Some(value) = object.get_mut(name) {
            result.add(name, check(value, field));
        } else if field.get("anyOf").is_none() {
            let error = missing_field(object, schema, name);
            result.errors.push(error.in_field(name));
        }
    }

    // Optional fields.
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let Some(value) = object.get_mut(name) else {
            continue;
        };
        if value.is_null() || required_fields(schema).any(|required| required == name) {
            continue;
        }

        let mut found = check(value, field);
        if !found.errors.is_empty() {
            found.ignored.append(&mut found.errors);
            object.remove(name);
        }
        result.add(name, found);
    }

    // Entries of a map.
    if let Some(entry) = schema.get("additionalProperties") {
        for (name, value) in object {
            result.add(&truncate(name, 60), check(value, entry));
        }
    }
}

/// Returns true if no array stands where the schema has an object: serde would take its items for
/// the fields.
pub fn has_objects(value: &Value, schema: &Value) -> bool {
    match value {
        Value::Array(items) => {
            schema["type"] != "object"
                && items.iter().all(|item| has_objects(item, &schema["items"]))
        }
        Value::Object(fields) => {
            let mut fields = fields.iter().filter(|(_, value)| is_container(value));
            fields.all(|(name, value)| has_objects(value, field_schema(schema, name)))
        }
        _ => true,
    }
}

/// Removes the optional fields that are null. Fields that must be present stay as null.
pub fn remove_absent(value: &mut Value, schema: &Value) {
    match value {
        Value::Array(items) => {
            for item in items {
                remove_absent(item, &schema["items"]);
            }
        }
        Value::Object(fields) => {
            fields.retain(|name, value| {
                !value.is_null()
                    || schema["properties"].get(name).is_none()
                    || required_fields(schema).any(|required| required == name)
            });

            for (name, value) in fields {
                if is_container(value) {
                    remove_absent(value, field_schema(schema, name));
                }
            }
        }
        _ => {}
    }
}

fn is_container(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

/// Returns the schema of a field, or of an entry of a map.
fn field_schema<'a>(schema: &'a Value, name: &str) -> &'a Value {
    let field = schema["properties"].get(name);
    let field = field.unwrap_or(&schema["additionalProperties"]);
    field.get("anyOf").map_or(field, |types| &types[0])
}

/// Returns the names of the required fields, in the order of their declaration.
fn required_fields(schema: &Value) -> impl Iterator<Item = &str> {
    let names = schema["required"].as_array().into_iter().flatten();
    names.filter_map(Value::as_str)
}

/// Returns true if a value has the type that its schema names. Does not look into it.
fn is_valid(value: &Value, schema: &Value) -> bool {
    if let Some(constant) = schema.get("const") {
        return value == constant;
    }
    if let Some(variants) = schema["enum"].as_array() {
        return variants.contains(value);
    }

    match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("boolean") => value.is_boolean(),
        Some("number") => value.is_number(),
        Some("integer") => {
            let minimum = schema["minimum"].as_f64().unwrap_or(f64::MIN);
            let maximum = schema["maximum"].as_f64().unwrap_or(f64::MAX);
            let number = value.as_f64().unwrap_or(f64::NAN);
            !value.is_f64() && minimum <= number && number <= maximum
        }
        Some("string") => value.as_str().is_some_and(|text| {
            schema["format"] != "date-time" || Timestamp::parse(text).is_some()
        }),
        _ => true,
    }
}

/// Describes what a schema allows.
fn description(schema: &Value) -> &str {
    schema["description"].as_str().unwrap_or_default()
}

/// Returns the error for a missing field. Names a similar field that the schema does not know.
fn missing_field(object: &Map<String, Value>, schema: &Value, name: &str) -> FieldError {
    let error = FieldError::new(&Value::Null, description(&schema["properties"][name]));

    for key in object.keys() {
        let is_known = schema["properties"].get(key).is_some();
        if !is_known && is_similar_field(key, name) {
            return FieldError {
                kind: FieldErrorKind::Similar,
                problem: format!("has {:?}, expected {name:?}", truncate(key, 60)),
                ..error
            };
        }
    }
    error
}

/// Returns true if a key is probably meant to be the field `name`: `matchId` or `match` for
/// `match_id`.
fn is_similar_field(key: &str, name: &str) -> bool {
    let key = key.to_lowercase().replace(['_', '-', ' '], "");
    let name = name.to_lowercase().replace('_', "");
    let is_part = key.len() > 3 && name.contains(&key) || name.len() > 5 && key.contains(&name);
    is_part || is_similar(&key, &name)
}

/// Returns true if two words differ in one letter, or in two letters side by side.
pub fn is_similar(one: &str, other: &str) -> bool {
    let start = common_prefix(one.bytes(), other.bytes());
    let end = common_prefix(one.bytes().rev(), other.bytes().rev());
    one.len().abs_diff(other.len()) < 2 && one.len().max(other.len()) <= start + end + 2
}

/// Returns the number of equal bytes at the start of both.
fn common_prefix(one: impl Iterator<Item = u8>, other: impl Iterator<Item = u8>) -> usize {
    one.zip(other).take_while(|(a, b)| a == b).count()
}
