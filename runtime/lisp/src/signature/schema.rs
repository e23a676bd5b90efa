//! Converts between signatures and JSON Schema. Schemas are JSON-shaped values, which [`json::encode`](crate::json::encode)
//! converts to text.

use std::fmt;

use super::parse::is_name;
use super::{Field, MAX_DEPTH, Signature, Type, underscored};
use crate::Value;
use crate::print::preview_line;

/// Reports why a JSON Schema cannot be converted to a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    /// The path in the schema, such as `properties.rows.items`. Empty for the root.
    pub path: String,
    /// What was expected and what was found.
    pub message: String,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.path, self.message) }
    }
}

impl std::error::Error for SchemaError {}

/// Keywords that do not constrain values.
const ANNOTATIONS: &[&str] =
    &["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$schema", "$id", "$comment"];

/// The consumer of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// A validator. The schema accepts exactly the values of the type.
    Validator,
    /// A model provider, whose structured output supports few keywords and no unions.
    Provider,
}

impl Type {
    /// The JSON Schema (2020-12) of the type's JSON form. A field with `?` is not required and may be null. A keyword is any
    /// string, and a `:datetime` is a string with `format: date-time`.
    ///
    /// ```
    /// use ptc_lisp::{json, signature::Signature};
    ///
    /// let rows = Signature::parse("[{id :int, at :datetime?}]")?.output;
    /// let expected = r#"{"items":{"properties":{"at":{"format":"date-time","type":["string","null"]},"id":{"type":"integer"}},
    ///     "required":["id"],"type":"object"},"type":"array"}"#;
    /// assert_eq!(rows.to_json_schema(), json::decode(expected.as_bytes())?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_json_schema(&self) -> Value {
        schema(self, Reader::Validator)
    }

    /// Converts a JSON Schema to a type. Supported are `string` (with `format: date-time` a `:datetime`), `integer`, `number`,
    /// `boolean`, `array`, `object`, each also in a list with `null`, and `{}` or `true` for `:any`. A property that is not
    /// required is optional. Annotations such as `description` are ignored.
    ///
    /// # Errors
    ///
    /// Any other keyword is an error: a constraint that a signature cannot express must not be dropped silently.
    pub fn from_json_schema(schema: &Value) -> Result<Type, SchemaError> {
        SchemaReader { path: Vec::new(), lossy: None }.read(schema)
    }
}

impl Signature {
    /// The JSON Schema of the arguments: an object.
    pub fn input_schema(&self) -> Value {
        object(&self.params, false, Reader::Validator)
    }

    /// The JSON Schema of the result.
    pub fn output_schema(&self) -> Value {
        self.output.to_json_schema()
    }

    /// The schema of the result for a provider's structured output. It has plain types only, every map is closed, and `:any` is
    /// an object. A list is the property `items` of an object, since providers require an object at the root.
    pub fn provider_schema(&self) -> Value {
        if matches!(self.output, Type::List(_)) {
            let items = Field { name: "items".to_owned(), of: self.output.clone() };
            return object(&[items], true, Reader::Provider);
        }
        schema(&self.output, Reader::Provider)
    }

    /// Converts the JSON Schemas of a tool's arguments and result to a signature. Without `output` the result is `:any`.
    ///
    /// # Errors
    ///
    /// Returns an error for a keyword that a signature cannot express, and for arguments that are not an object.
    pub fn from_json_schemas(input: &Value, output: Option<&Value>) -> Result<Signature, SchemaError> {
        let params = params(Type::from_json_schema(input)?)?;
        let output = output.map(Type::from_json_schema).transpose()?;
        Ok(Signature { params, output: output.unwrap_or(Type::Any) })
    }

    /// Like [`Signature::from_json_schemas`], but drops the constraints that a signature cannot express. It is for schemas that
    /// are generated from types of a program, whose deserializer checks the arguments again.
    ///
    /// References are followed. `format`, bounds and lists of words are dropped, an object without fixed names is `:map`, and a
    /// union with `null` is optional. Other unions, tuples, and the inner occurrences of recursive types are `:any`.
    ///
    /// # Errors
    ///
    /// Returns an error for arguments that are not an object, and for names of arguments that a signature cannot contain.
    pub fn from_json_schemas_lossy(input: &Value, output: &Value) -> Result<Signature, SchemaError> {
        let read = |root| SchemaReader { path: Vec::new(), lossy: Some(Lossy { root, open: vec!["#"] }) }.read(root);
        Ok(Signature { params: params(read(input)?)?, output: read(output).unwrap_or(Type::Any) })
    }
}

fn params(arguments: Type) -> Result<Vec<Field>, SchemaError> {
    match arguments {
        Type::Fields { fields, .. } => Ok(fields),
        Type::Map => Ok(Vec::new()),
        other => {
            let message = format!("the arguments of a tool are an object, got the schema of {other}");
            Err(SchemaError { path: String::new(), message })
        }
    }
}

/// Finds the schema that a reference such as `#/$defs/Row` names.
pub(super) fn resolve<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    match reference {
        "#" => Some(root),
        name => root.get("$defs")?.get(name.strip_prefix("#/$defs/")?),
    }
}

fn text(text: &str) -> Value {
    Value::string(text)
}

fn schema(of: &Type, reader: Reader) -> Value {
    let plain = |name: &str| Value::map([(text("type"), text(name))]);
    match of {
        Type::String | Type::Keyword => plain("string"),
        Type::Int => plain("integer"),
        Type::Float => plain("number"),
        Type::Bool => plain("boolean"),
        Type::Map => plain("object"),
        Type::Datetime if reader == Reader::Provider => plain("string"),
        Type::Datetime => Value::map([(text("type"), text("string")), (text("format"), text("date-time"))]),
        Type::Any if reader == Reader::Provider => plain("object"),
        Type::Any => Value::map([]),
        Type::List(item) => Value::map([(text("type"), text("array")), (text("items"), schema(item, reader))]),
        Type::Fields { fields, closed } => object(fields, *closed || reader == Reader::Provider, reader),
        Type::Optional(inner) => {
            let mut found = schema(inner, reader);
            if let (Value::Map(members), Reader::Validator) = (&mut found, reader)
                && let Some(name @ Value::Str(_)) = members.get(&text("type")).cloned()
            {
                members.insert(text("type"), Value::vector(vec![name, text("null")]));
            }
            found
        }
    }
}

fn object(fields: &[Field], closed: bool, reader: Reader) -> Value {
    let properties = fields.iter().map(|field| (text(&field.name), schema(&field.of, reader)));
    let required: Vec<Value> = fields.iter().filter(|field| !field.of.is_optional()).map(|field| text(&field.name)).collect();
    let mut members = vec![(text("type"), text("object")), (text("properties"), Value::map(properties))];
    if !required.is_empty() {
        members.push((text("required"), Value::vector(required)));
    }
    if closed {
        members.push((text("additionalProperties"), Value::False));
    }
    Value::map(members)
}

/// Maximum number of references inside each other that are followed.
const MAX_REFERENCES: usize = 16;

/// The state of a conversion that may drop constraints.
struct Lossy<'s> {
    root: &'s Value,
    /// The references that are being read.
    open: Vec<&'s str>,
}

struct SchemaReader<'s> {
    path: Vec<String>,
    lossy: Option<Lossy<'s>>,
}

type Read = Result<Type, SchemaError>;

impl<'s> SchemaReader<'s> {
    fn error<T>(&self, message: impl Into<String>) -> Result<T, SchemaError> {
        Err(SchemaError { path: self.path.join("."), message: message.into() })
    }

    fn inside(&mut self, step: impl Into<String>, schema: &'s Value) -> Read {
        self.path.push(step.into());
        let read = self.read(schema);
        self.path.pop();
        if self.lossy.is_some() { read.or(Ok(Type::Any)) } else { read }
    }

    /// Reads references, unions and constants, which only a lossy conversion accepts.
    fn composed(&mut self, schema: &'s Value) -> Option<Read> {
        let lossy = self.lossy.as_mut()?;
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let is_open = lossy.open.len() > MAX_REFERENCES || lossy.open.contains(&reference);
            let Some(target) = resolve(lossy.root, reference).filter(|_| !is_open) else { return Some(Ok(Type::Any)) };
            lossy.open.push(reference);
            let read = self.read(target);
            self.lossy.as_mut()?.open.pop();
            return Some(read);
        }
        if schema.get("prefixItems").is_some() {
            return Some(Ok(Type::Any));
        }
        if schema.get("type").is_some() {
            return None;
        }
        if let Some(words) = schema.get("enum") {
            let all = words.items()?.all(|word| word.as_str().is_some());
            return Some(Ok(if all { Type::String } else { Type::Any }));
        }
        let options = ["anyOf", "oneOf"].iter().find_map(|union| schema.get(union))?.items()?;
        Some(Ok(self.union(options)))
    }

    /// The type that all options have. Options that are objects differ only in their fields.
    fn union(&mut self, options: impl Iterator<Item = &'s Value>) -> Type {
        let mut common: Option<Type> = None;
        let mut nullable = false;
        for option in options {
            if option.get("type").and_then(Value::as_str) == Some("null") {
                nullable = true;
                continue;
            }
            let of = self.inside("option", option);
            common = match (common, of.unwrap_or(Type::Any)) {
                (None, of) => Some(of),
                (Some(common), of) if common == of => Some(common),
                (Some(Type::Fields { .. } | Type::Map), Type::Fields { .. } | Type::Map) => Some(Type::Map),
                _ => Some(Type::Any),
            };
        }
        let common = common.unwrap_or(Type::Any);
        if nullable { common.optional() } else { common }
    }

    fn read(&mut self, schema: &'s Value) -> Read {
        if self.path.len() as u32 > MAX_DEPTH {
            return self.error(format!("schemas are nested more than {MAX_DEPTH} deep"));
        }
        if let Some(read) = self.composed(schema) {
            return read;
        }
        if *schema == Value::True {
            return Ok(Type::Any);
        }
        let Value::Map(members) = schema else {
            return self.error(format!("expected a schema, an object, got {}", preview_line(schema, 60)));
        };
        let (name, nullable) = match members.get(&text("type")) {
            None => {
                self.only(schema, "a schema without a type", &[])?;
                return Ok(Type::Any);
            }
            Some(Value::Str(name)) => (name.as_str(), false),
            Some(Value::Vector(names)) => {
                let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
                match *names.as_slice() {
                    [name, "null"] | ["null", name] => (name, true),
                    [name] => (name, false),
                    _ => return self.error("a signature has no unions: \"type\" is one type, or one and \"null\""),
                }
            }
            Some(other) => return self.error(format!("\"type\" must be a string or a list, got {}", preview_line(other, 60))),
        };
        let read = match name {
            "string" => match members.get(&text("format")).and_then(Value::as_str) {
                Some("date-time") => {
                    self.only(schema, name, &["format"])?;
                    Type::Datetime
                }
                _ => self.plain(schema, name, Type::String)?,
            },
            "integer" => self.plain(schema, name, Type::Int)?,
            "number" => self.plain(schema, name, Type::Float)?,
            "boolean" => self.plain(schema, name, Type::Bool)?,
            "array" => {
                self.only(schema, name, &["items"])?;
                match members.get(&text("items")) {
                    None => Type::Any.listed(),
                    Some(items) => self.inside("items", items)?.listed(),
                }
            }
            "object" => self.object(schema)?,
            other => return self.error(format!("there is no signature type for \"{other}\"")),
        };
        Ok(if nullable { read.optional() } else { read })
    }

    fn plain(&self, schema: &Value, name: &str, of: Type) -> Read {
        self.only(schema, name, &[]).map(|()| of)
    }

    /// Checks that a schema has no keywords except these and annotations.
    fn only(&self, schema: &Value, of: &str, known: &[&str]) -> Result<(), SchemaError> {
        if self.lossy.is_some() {
            return Ok(());
        }
        let keys = schema.entries().into_iter().flatten().filter_map(|(key, _)| key.as_name());
        let unknown: Vec<&str> =
            keys.filter(|key| *key != "type" && !known.contains(key) && !ANNOTATIONS.contains(key)).collect();
        if unknown.is_empty() { Ok(()) } else { self.error(format!("a signature cannot say {} of {of}", unknown.join(", "))) }
    }

    fn object(&mut self, schema: &'s Value) -> Read {
        self.only(schema, "object", &["properties", "required", "additionalProperties"])?;
        let closed = match schema.get("additionalProperties") {
            None | Some(Value::True) => false,
            // Alternative names of a field are not in its schema.
            Some(_) if self.lossy.is_some() => false,
            Some(Value::False) => true,
            Some(other) => {
                return self.error(format!("additionalProperties must be true or false, got {}", preview_line(other, 60)));
            }
        };
        let required: Vec<&str> = match schema.get("required") {
            None => Vec::new(),
            Some(Value::Vector(names)) if names.iter().all(|name| name.as_str().is_some()) => {
                names.iter().filter_map(Value::as_str).collect()
            }
            Some(other) => return self.error(format!("required must be a list of names, got {}", preview_line(other, 60))),
        };
        let mut fields: Vec<Field> = Vec::new();
        let properties = schema.get("properties");
        match properties {
            None => {}
            Some(Value::Map(properties)) => {
                for (name, of) in properties.iter().filter_map(|(key, of)| Some((key.as_name()?, of))) {
                    let twice = fields.iter().any(|held| underscored(&held.name) == underscored(name));
                    if !is_name(name) || twice {
                        let why =
                            if twice { "is repeated: hyphens and underscores are the same" } else { "is not a valid field name" };
                        return self.error(format!("the property \"{name}\" {why}"));
                    }
                    let of = self.inside(format!("properties.{name}"), of)?;
                    fields.push(Field { name: name.to_owned(), of: if required.contains(&name) { of } else { of.optional() } });
                }
            }
            Some(other) => return self.error(format!("properties must be an object, got {}", preview_line(other, 60))),
        }
        if let Some(name) = required.iter().find(|name| !fields.iter().any(|field| field.name == **name)) {
            return self.error(format!("\"{name}\" is required and no property"));
        }
        if self.lossy.is_some() {
            // Generated schemas list required fields in the order of their declaration.
            fields.sort_by_key(|field| required.iter().position(|name| *name == field.name).unwrap_or(usize::MAX));
        }
        Ok(if properties.is_none() && !closed { Type::Map } else { Type::Fields { fields, closed } })
    }
}
