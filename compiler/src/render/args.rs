//! Renders the argument types of every tool as Rust structs with `serde`, so that a call that lacks an argument, or passes one of
//! another type, does not compile. The output is a separate module and never part of a pinned binary, because rustc needs longer
//! for a thousand structs than for all tables together.

use std::collections::BTreeSet;

use minijinja::AutoEscape;
use ptc_catalog::{Type, Types};
use serde::Serialize;

use super::literal::string;
use super::{RenderError, markdown, rust, template};
use crate::ir::{self, Deployment};
use crate::json::Json;
use crate::json_schema::Schema;

/// Maximum depth to which arrays and objects get types of their own; deeper values are any JSON.
const MAX_LEVELS: usize = 3;
/// Maximum number of variants of an enum; an argument with more allowed values is a string.
const MAX_VARIANTS: usize = 64;

#[derive(Debug, Serialize)]
struct View {
    upstreams: Vec<Upstream>,
}

#[derive(Debug, Serialize)]
struct Upstream {
    ident: String,
    name: String,
    doc: String,
    tools: Vec<Tool>,
}

#[derive(Debug, Serialize)]
struct Tool {
    ident: String,
    name: String,
    doc: String,
    /// Whether every argument is optional, so that the struct implements `Default`.
    default: bool,
    choices: Vec<Choice>,
    structs: Vec<Struct>,
    args: Vec<Arg>,
}

/// An argument that is an object with members of its own.
#[derive(Debug, Serialize)]
struct Struct {
    ident: String,
    doc: String,
    /// Whether every member is optional, so that the struct implements `Default`.
    default: bool,
    args: Vec<Arg>,
}

/// An argument whose value is one of a fixed set of strings.
#[derive(Debug, Serialize)]
struct Choice {
    ident: String,
    doc: String,
    variants: Vec<Variant>,
}

#[derive(Debug, Serialize)]
struct Variant {
    ident: String,
    name: String,
    doc: String,
}

#[derive(Debug, Serialize)]
struct Arg {
    ident: String,
    name: String,
    doc: String,
    optional: bool,
    kind: String,
}

/// Renders `pub mod args`, with a module for each upstream and a struct for each tool. The crate that includes it depends on
/// `serde` with the feature `derive`, and on `serde_json`.
///
/// # Errors
///
/// Returns [`RenderError`] if a template cannot be rendered, or its text is not valid Rust. Both are faults of the compiler.
pub fn args(deployment: &Deployment) -> Result<String, RenderError> {
    let mut names = Names::default();
    let upstreams = deployment.upstreams.iter().map(|upstream| self::upstream(upstream, &mut names)).collect();
    rust(&template("args.rs", include_str!("../../../templates/args.rs.j2"), AutoEscape::None, View { upstreams })?)
}

fn upstream(upstream: &ir::Upstream, modules: &mut Names) -> Upstream {
    let mut types = Names::default();
    Upstream {
        ident: modules.take(&snake(&upstream.name), "_"),
        name: string(&upstream.name),
        doc: string(&format!(" Tools of {}.", markdown::code(&upstream.name))),
        tools: upstream.tools.iter().map(|tool| self::tool(tool, &mut types)).collect(),
    }
}

fn tool(tool: &ir::Tool, types: &mut Names) -> Tool {
    let ident = types.take(&camel(&tool.name), "");
    let definition: serde_json::Value = serde_json::from_str(&tool.definition).unwrap_or_default();
    let input = definition.get("inputSchema").map_or_else(Json::object, Json::from);
    let mut inner = Inner { schema: Schema::new(&input), types, choices: Vec::new(), structs: Vec::new() };
    let args = inner.fields(&ident, &input, &tool.args, 0);
    let Inner { choices, structs, .. } = inner;
    let prose = match tool.description.as_str() {
        "" => format!("Arguments of {}.", markdown::code(&tool.name)),
        said => markdown::text(said),
    };
    Tool {
        name: string(&tool.name),
        doc: string(&format!(" {prose}")),
        default: args.iter().all(|arg| arg.optional),
        choices,
        structs,
        args,
        ident,
    }
}

/// Collects the types that the arguments of one tool need.
struct Inner<'t> {
    schema: Schema<'t>,
    types: &'t mut Names,
    choices: Vec<Choice>,
    structs: Vec<Struct>,
}

impl<'t> Inner<'t> {
    /// Returns the fields of the struct `owner` for the members of `object`.
    fn fields(&mut self, owner: &str, object: &'t Json, args: &[ir::Arg], level: usize) -> Vec<Arg> {
        let members = self.schema.members(object);
        let mut fields = Names::default();
        let field = |arg: &ir::Arg| {
            // No struct has the members of several alternatives.
            let node = match members.schemas(&arg.name) {
                [one] => Some(*one),
                _ => None,
            };
            let kind = self.kind(owner, arg, node, level);
            // `None` means null for a required argument, and absence for an optional one.
            let kind = if arg.required { nullable(arg.types, kind) } else { option(&kind) };
            Arg {
                ident: fields.take(&snake(&arg.name), "_"),
                name: string(&arg.name),
                doc: string(&format!(" {}", markdown::code(&arg.label))),
                optional: !arg.required,
                kind,
            }
        };
        args.iter().map(field).collect()
    }

    /// Returns the Rust type of an argument that is present.
    fn kind(&mut self, owner: &str, arg: &ir::Arg, node: Option<&'t Json>, level: usize) -> String {
        if let Some(choice) = choice(owner, arg, self.types) {
            let ident = choice.ident.clone();
            self.choices.push(choice);
            return ident;
        }
        let plain = || kind(arg.types).to_owned();
        let Some(node) = node.filter(|_| level < MAX_LEVELS).map(|node| self.schema.body(node)) else { return plain() };
        if is_only(arg.types, &[Type::Array])
            && node.get("prefixItems").is_none()
            && let Some(items @ Json::Object(_)) = node.get("items")
        {
            let item = self.schema.argument(&arg.name, items, true);
            let inner = self.kind(owner, &item, Some(items), level + 1);
            return format!("::std::vec::Vec<{}>", nullable(item.types, inner));
        }
        if is_only(arg.types, &[Type::Object]) && has_fixed_members(node) {
            let ident = self.types.take(&format!("{owner}{}", camel(&arg.name)), "");
            let (args, _) = self.schema.arguments_of(node);
            let args = self.fields(&ident, node, &args, level + 1);
            let doc = string(&format!(" What {} holds.", markdown::code(&arg.name)));
            self.structs.push(Struct { doc, default: args.iter().all(|arg| arg.optional), args, ident: ident.clone() });
            return ident;
        }
        plain()
    }
}

/// Whether an object has only its named members. An object with alternatives, or with arbitrary keys, does not.
fn has_fixed_members(node: &Json) -> bool {
    let has_others = match node.get("additionalProperties") {
        None => false,
        Some(others) => others.as_bool() != Some(false),
    };
    let has_alternatives = ["anyOf", "oneOf", "patternProperties"].into_iter().any(|key| node.get(key).is_some());
    !has_others && !has_alternatives && node.get("properties").is_some_and(|properties| !properties.members().is_empty())
}

/// Wraps the type in `Option` if null is an admitted value.
fn nullable(types: Types, kind: String) -> String {
    if types != Types::ANY && types.admits(Type::Null) { option(&kind) } else { kind }
}

fn option(kind: &str) -> String {
    format!("::core::option::Option<{kind}>")
}

/// Returns an enum for an argument that admits only some strings, or `None` if it admits other values too.
fn choice(owner: &str, arg: &ir::Arg, types: &mut Names) -> Option<Choice> {
    let words: Vec<String> =
        arg.allowed.iter().filter(|text| *text != "null").map(|text| serde_json::from_str(text).ok()).collect::<Option<_>>()?;
    if words.is_empty() || words.len() > MAX_VARIANTS {
        return None;
    }
    let mut variants = Names::default();
    let variants = words
        .iter()
        .map(|word| Variant {
            ident: variants.take(&camel(word), ""),
            name: string(word),
            doc: string(&format!(" {}", markdown::code(word))),
        })
        .collect();
    let ident = types.take(&format!("{owner}{}", camel(&arg.name)), "");
    Some(Choice { ident, doc: string(&format!(" What {} can be.", markdown::code(&arg.name))), variants })
}

/// Returns the narrowest Rust type that holds every value of these JSON types.
fn kind(types: Types) -> &'static str {
    let only = |kinds: &[Type]| is_only(types, kinds);
    match types {
        _ if types == Types::ANY => "::serde_json::Value",
        _ if only(&[Type::String]) => "::std::string::String",
        _ if only(&[Type::Integer]) => "::core::primitive::i64",
        _ if only(&[Type::Integer, Type::Number]) => "::core::primitive::f64",
        _ if only(&[Type::Boolean]) => "::core::primitive::bool",
        _ if only(&[Type::Array]) => "::std::vec::Vec<::serde_json::Value>",
        _ if only(&[Type::Object]) => "::serde_json::Map<::std::string::String, ::serde_json::Value>",
        _ => "::serde_json::Value",
    }
}

/// Whether only these types and null are admitted.
fn is_only(types: Types, kinds: &[Type]) -> bool {
    let without_null = types.0 & !(Type::Null as u8);
    types != Types::ANY && without_null & !Types::from_types(kinds).0 == 0
}

/// Identifiers of one scope. Each is handed out once.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    /// Returns a valid Rust identifier for the name, with a number appended if the name is taken.
    fn take(&mut self, name: &str, separator: &str) -> String {
        let mut free = name.to_owned();
        let mut number = 2;
        while !self.0.insert(free.clone()) {
            free = format!("{name}{separator}{number}");
            number += 1;
        }
        // syn accepts `gen` as an identifier, but it is a keyword since the 2024 edition.
        if free != "gen" && syn::parse_str::<syn::Ident>(&free).is_ok() {
            return free;
        }
        // The name is a keyword. These four cannot be raw identifiers.
        if matches!(free.as_str(), "self" | "Self" | "super" | "crate" | "_") { format!("{free}_") } else { format!("r#{free}") }
    }
}

/// Splits a name into lower-case words, so that `getPetById`, `get-pet-by-id` and `get_pet_by_id` give the same words.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() {
            before = ' ';
            continue;
        }
        let starts = before == ' ' || (c.is_ascii_uppercase() && !before.is_ascii_uppercase());
        if starts {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    words
}

fn snake(name: &str) -> String {
    let joined = words(name).join("_");
    if joined.is_empty() {
        "other".to_owned()
    } else if joined.starts_with(|c: char| c.is_ascii_digit()) {
        format!("n{joined}")
    } else {
        joined
    }
}

fn camel(name: &str) -> String {
    let upper =
        |word: &String| word.chars().take(1).map(|c| c.to_ascii_uppercase()).chain(word.chars().skip(1)).collect::<String>();
    let joined: String = words(name).iter().map(upper).collect();
    if joined.is_empty() {
        "Other".to_owned()
    } else if joined.starts_with(|c: char| c.is_ascii_digit()) {
        format!("N{joined}")
    } else {
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_rust_identifiers() {
        for (name, type_name, field) in [
            ("getPetById", "GetPetById", "get_pet_by_id"),
            ("list-pets", "ListPets", "list_pets"),
            ("page_size", "PageSize", "page_size"),
            ("filter[name]", "FilterName", "filter_name"),
            ("2fa", "N2fa", "n2fa"),
            ("HTTPCode", "Httpcode", "httpcode"),
            ("🙂", "Other", "other"),
        ] {
            assert_eq!((camel(name).as_str(), snake(name).as_str()), (type_name, field), "{name}");
        }
        let mut names = Names::default();
        let taken: Vec<String> =
            ["type", "gen", "self", "a", "a", "a_2", "a"].iter().map(|name| names.take(&snake(name), "_")).collect();
        assert_eq!(taken, ["r#type", "r#gen", "self_", "a", "a_2", "a_2_2", "a_3"]);
    }

    #[test]
    fn types_are_the_narrowest_for_all_values() {
        for (types, expected) in [
            (Types::ANY, "::serde_json::Value"),
            (Types::from_types(&[Type::String]), "::std::string::String"),
            (Types::from_types(&[Type::String, Type::Null]), "::std::string::String"),
            (Types::from_types(&[Type::Integer]), "::core::primitive::i64"),
            (Types::from_types(&[Type::Number]), "::core::primitive::f64"),
            (Types::from_types(&[Type::String, Type::Array]), "::serde_json::Value"),
        ] {
            assert_eq!(kind(types), expected);
        }
    }
}
