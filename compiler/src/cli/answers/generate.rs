//! Generates answers that match an output schema, with edge cases, from a seed.
//!
//! Keywords that describe a value are followed; what they do not cover (`not`, `if`, `dependentRequired`, …) is left to the
//! validation of the answer, after which another one is generated.

use fastrand::Rng;
use ptc_catalog::{Tool, Type, Types};
use ptc_compiler::json::{Json, digest};
use ptc_compiler::json_schema::Schema;

use super::declared_output::DeclaredOutput;
use super::{pages, patterns};

/// Maximum number of answers that are generated until one matches.
const MAX_TRIES: usize = 40;
/// The depth from which optional parts are left out.
const MAX_DEPTH: usize = 6;
/// The depth at which a value is given up: a schema that requires itself has none.
const TOO_DEEP: usize = 24;
/// The integers beyond which JSON parsers lose digits.
const MAX_SAFE: i64 = 9_007_199_254_740_991;

/// Strings with edge cases.
const STRINGS: [&str; 12] =
    ["", "a", "Ann", "two words", "Zoë 日本 🙂", "\"quoted\"", "line\nbreak", "null", "0", "e\u{301}", " padded ", "a/b?c=d&e"];

/// Returns the seed that a text stands for, which is the same on every machine.
pub(crate) fn seed_from(text: &str) -> u64 {
    let digest = digest::sha256(text.as_bytes());
    let hex = digest.rsplit(':').next().unwrap_or_default();
    hex.get(..16).and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or_default()
}

/// Generates an answer to a request, as [`answer`] does. The answer to a request for a further page announces no page, so that no
/// program reads pages without end. `request` is the canonical text of the arguments.
pub(crate) fn answer_to(tool: &Tool, declared: &DeclaredOutput, seed: u64, request: &str) -> Option<Json> {
    let json = answer(declared, seed)?;
    Some(match pages::paging(tool, &json) {
        Some(paging) if pages::is_for_further_page(&paging, request) => {
            pages::ended(&paging, &json, &|json| declared.permits(json))
        }
        _ => json,
    })
}

/// Generates an answer. `None` if none that matches was found.
pub(crate) fn answer(declared: &DeclaredOutput, seed: u64) -> Option<Json> {
    let mut rng = Rng::with_seed(seed);
    let bias = Bias::ALL.get(rng.usize(..Bias::ALL.len())).copied().unwrap_or(Bias::Mixed);
    biased(declared, bias, rng)
}

/// Generates an answer with its optional members, and with null only where nothing else is permitted.
pub(crate) fn full_answer(declared: &DeclaredOutput, seed: u64) -> Option<Json> {
    biased(declared, Bias::Full, Rng::with_seed(seed))
}

fn biased(declared: &DeclaredOutput, bias: Bias, rng: Rng) -> Option<Json> {
    let root = declared.schema()?;
    let mut generator = Generator { schema: Schema::new(root), bias, rng };
    (0..MAX_TRIES).find_map(|_| generator.value(root, 0).filter(|answer| declared.permits(answer)))
}

/// What an answer prefers. Without it, edge cases of several members would seldom meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bias {
    /// Each choice is random.
    Mixed,
    /// Optional members are absent, and lists are short.
    Sparse,
    /// Optional members are present.
    Full,
    /// Values are null where permitted.
    Null,
    /// Lists are empty.
    Empty,
}

impl Bias {
    const ALL: [Bias; 6] = [Bias::Mixed, Bias::Mixed, Bias::Sparse, Bias::Full, Bias::Null, Bias::Empty];
}

struct Generator<'a> {
    schema: Schema<'a>,
    bias: Bias,
    rng: Rng,
}

impl<'a> Generator<'a> {
    fn value(&mut self, node: &'a Json, depth: usize) -> Option<Json> {
        if depth > TOO_DEEP || *node == Json::Bool(false) {
            return None;
        }
        let parts = self.parts(node);
        if let Some(value) = keyword(&parts, "const") {
            return Some(value.clone());
        }
        if let Some(values) = keyword(&parts, "enum").map(Json::elements).filter(|values| !values.is_empty()) {
            return self.choice(values).cloned();
        }
        let kinds = self.kinds(node, &parts);
        let kind = if kinds.contains(&Type::Null) && kinds.len() > 1 {
            let is_null = match self.bias {
                Bias::Null => self.rng.u8(..4) > 0,
                Bias::Full => false,
                _ => self.rng.u8(..5) == 0,
            };
            let others: Vec<Type> = kinds.into_iter().filter(|kind| *kind != Type::Null).collect();
            if is_null { Type::Null } else { self.choice(&others).copied()? }
        } else {
            self.choice(&kinds).copied()?
        };
        match kind {
            Type::Null => Some(Json::Null),
            Type::Boolean => Some(Json::Bool(self.rng.bool())),
            Type::Integer => Some(self.integer(&parts)),
            Type::Number => Some(if self.rng.bool() { self.integer(&parts) } else { self.fraction(&parts) }),
            Type::String => self.string(&parts, depth),
            Type::Array => self.array(&parts, depth),
            Type::Object => self.object(node, &parts, depth),
        }
    }

    /// Returns the schemas that a value must match together: the schema, what it refers to, and one of its alternatives.
    fn parts(&mut self, node: &'a Json) -> Vec<&'a Json> {
        let (mut parts, mut pending) = (Vec::new(), vec![node]);
        while let Some(node) = pending.pop() {
            if parts.len() > 64 {
                break;
            }
            parts.push(node);
            pending.extend(self.schema.target(node));
            pending.extend(node.get("allOf").map(Json::elements).unwrap_or_default());
            for key in ["anyOf", "oneOf"] {
                let branches: Vec<&'a Json> = node.get(key).map(Json::elements).unwrap_or_default().iter().collect();
                let is_null = |branch: &&'a Json| branch.get("type").and_then(Json::as_str) == Some("null");
                let nulls: Vec<&'a Json> = branches.iter().copied().filter(|branch| is_null(branch)).collect();
                let chosen = match (self.bias, nulls.as_slice()) {
                    (Bias::Null, [null, ..]) if self.rng.u8(..4) > 0 => Some(*null),
                    _ => self.choice(&branches).copied(),
                };
                pending.extend(chosen);
            }
        }
        parts
    }

    fn choice<'c, T>(&mut self, all: &'c [T]) -> Option<&'c T> {
        if all.is_empty() { None } else { all.get(self.rng.usize(..all.len())) }
    }

    /// Returns the types of the value. A schema without a type is one for the type that its keywords are about.
    fn kinds(&mut self, node: &'a Json, parts: &[&'a Json]) -> Vec<Type> {
        let mut types = parts
            .iter()
            .fold(Types::ANY.0, |bits, part| bits & self.schema.types(part).0 | extra_integer(bits, self.schema.types(part).0));
        types &= self.schema.types(node).0 | extra_integer(types, self.schema.types(node).0);
        if types == Types::ANY.0 {
            let has = |key: &str| parts.iter().any(|part| part.get(key).is_some());
            if has("properties") || has("required") {
                return vec![Type::Object];
            }
            if has("items") || has("prefixItems") {
                return vec![Type::Array];
            }
            if has("pattern") || has("format") || has("minLength") {
                return vec![Type::String];
            }
            if has("minimum") || has("maximum") {
                return vec![Type::Integer];
            }
            return vec![Type::Null, Type::Boolean, Type::Integer, Type::String, Type::Array, Type::Object];
        }
        let types = Types(types);
        Type::ALL.iter().map(|(kind, _)| *kind).filter(|kind| types.admits(*kind)).collect()
    }

    fn integer(&mut self, parts: &[&'a Json]) -> Json {
        let least = bound(parts, "minimum").or_else(|| bound(parts, "exclusiveMinimum").map(|bound| bound.floor() + 1.0));
        let most = bound(parts, "maximum").or_else(|| bound(parts, "exclusiveMaximum").map(|bound| bound.ceil() - 1.0));
        let (least, most) = (least.map(|least| least.ceil() as i64), most.map(|most| most.floor() as i64));
        let (low, high) = match (least, most) {
            (Some(least), Some(most)) => (least, most.max(least)),
            (Some(least), None) => (least, least.saturating_add(MAX_SAFE)),
            (None, Some(most)) => (most.saturating_sub(MAX_SAFE), most),
            (None, None) => (-MAX_SAFE, MAX_SAFE),
        };
        let edges = [0, 1, -1, 2, 42, 1000, low, high];
        let number = edges.get(self.rng.usize(..12)).copied().unwrap_or_else(|| self.rng.i64(-100..1000));
        let number = number.clamp(low, high);
        let multiple = bound(parts, "multipleOf").map(|multiple| multiple as i64).filter(|multiple| *multiple > 1);
        let number = multiple.map_or(number, |multiple| number.div_euclid(multiple) * multiple);
        Json::Number(number.to_string())
    }

    fn fraction(&mut self, parts: &[&'a Json]) -> Json {
        let low = bound(parts, "minimum").or_else(|| bound(parts, "exclusiveMinimum"));
        let high = bound(parts, "maximum").or_else(|| bound(parts, "exclusiveMaximum"));
        let low = low.unwrap_or_else(|| high.map_or(-1000.0, |high| high - 1000.0));
        let high = high.unwrap_or(low + 2000.0).max(low);
        let number = low + (high - low) * self.rng.f64();
        let number = (number * 100.0).round() / 100.0;
        Json::Number(format!("{:?}", number.clamp(low, high)))
    }

    fn string(&mut self, parts: &[&'a Json], depth: usize) -> Option<Json> {
        if let (Some("application/json"), Some(content)) =
            (keyword(parts, "contentMediaType").and_then(Json::as_str), keyword(parts, "contentSchema"))
        {
            return self.value(content, depth + 1).map(|json| Json::String(json.canonical()));
        }
        if let Some(pattern) = keyword(parts, "pattern").and_then(Json::as_str) {
            return patterns::text(pattern, &mut self.rng).map(Json::String);
        }
        if let Some(format) = keyword(parts, "format").and_then(Json::as_str)
            && let Some(text) = self.formatted(format)
        {
            return Some(Json::String(text));
        }
        let mut text = match self.rng.u8(..16) {
            0 => "long ".repeat(60),
            _ => self.choice(&STRINGS).copied().unwrap_or_default().to_owned(),
        };
        let least = length(parts, "minLength").unwrap_or(0).min(100_000);
        let count = text.chars().count();
        text.extend(std::iter::repeat_n('a', least.saturating_sub(count)));
        if let Some(most) = length(parts, "maxLength") {
            text = text.chars().take(most).collect();
        }
        Some(Json::String(text))
    }

    /// Returns a text of a format. `None` for formats that any text may have.
    fn formatted(&mut self, format: &str) -> Option<String> {
        let texts: &[&str] = match format {
            "date" => &["2024-02-29", "1970-01-01", "2026-12-31", "1999-06-15"],
            "date-time" => &["2024-02-29T23:59:59Z", "1970-01-01T00:00:00Z", "2026-12-31T12:30:00.123+02:00"],
            "time" => &["00:00:00Z", "23:59:59Z"],
            "duration" => &["P1D", "PT0S", "P1Y2M3DT4H"],
            "uuid" => &["00000000-0000-0000-0000-000000000000", "3f2b8c1e-5d6a-4c7b-9e8f-0a1b2c3d4e5f"],
            "email" => &["ann@example.com", "a.b+c@sub.example.org"],
            "hostname" => &["example.com", "localhost"],
            "ipv4" => &["127.0.0.1", "255.255.255.255"],
            "ipv6" => &["::1", "2001:db8::1"],
            "uri" | "url" | "iri" => &["https://example.com/", "https://example.com/a?b=c#d"],
            "uri-reference" => &["/", "a/b", "https://example.com/"],
            "byte" => &["", "AA==", "aGVsbG8="],
            _ => return None,
        };
        self.choice(texts).map(|text| (*text).to_owned())
    }

    fn array(&mut self, parts: &[&'a Json], depth: usize) -> Option<Json> {
        let least = length(parts, "minItems").unwrap_or(0);
        let most = length(parts, "maxItems").unwrap_or(usize::MAX);
        let wanted = match (self.bias, self.rng.u8(..8)) {
            _ if depth > MAX_DEPTH => 0,
            (Bias::Empty, _) | (_, 0) => 0,
            (Bias::Sparse, _) | (_, 1 | 2) => 1,
            (_, 7) if depth < 3 => 30,
            (_, choice) => usize::from(choice) - 1,
        };
        let count = wanted.clamp(least.min(most), most).min(10_000);
        let prefix = keyword(parts, "prefixItems").map(Json::elements).unwrap_or_default();
        let items = keyword(parts, "items").filter(|items| **items != Json::Bool(false));
        let is_unique = keyword(parts, "uniqueItems").and_then(Json::as_bool) == Some(true);
        let mut all: Vec<Json> = Vec::new();
        for at in 0..count.max(if least > 0 { prefix.len().min(least) } else { 0 }) {
            static ANY: Json = Json::Bool(true);
            let Some(node) = prefix.get(at).or(items).or(if prefix.is_empty() { Some(&ANY) } else { None }) else { break };
            match self.value(node, depth + 1) {
                Some(item) if !is_unique || !all.contains(&item) => all.push(item),
                Some(_) => {}
                None if all.len() >= least => break,
                None => return None,
            }
        }
        Some(Json::Array(all))
    }

    fn object(&mut self, node: &'a Json, parts: &[&'a Json], depth: usize) -> Option<Json> {
        let mut object = Json::object();
        let mut declared: Vec<(&'a str, &'a Json)> = Vec::new();
        let mut required: Vec<&'a str> = self.schema.members(node).required;
        for part in parts {
            for (name, schema) in part.get("properties").map(Json::members).unwrap_or_default() {
                if !declared.iter().any(|(known, _)| known == name) {
                    declared.push((name, schema));
                }
            }
            required.extend(part.get("required").map(Json::elements).unwrap_or_default().iter().filter_map(Json::as_str));
        }
        for (name, schema) in &declared {
            let is_present = required.contains(name)
                || depth <= MAX_DEPTH
                    && match self.bias {
                        Bias::Sparse => self.rng.u8(..8) == 0,
                        Bias::Full => true,
                        _ => self.rng.u8(..3) > 0,
                    };
            if !is_present {
                continue;
            }
            match self.value(schema, depth + 1) {
                Some(value) => object.set(*name, value),
                None if required.contains(name) => return None,
                None => {}
            }
        }
        for name in required {
            if object.get(name).is_none() {
                object.set(name, Json::string("a"));
            }
        }
        // Objects with any names are maps.
        let others = keyword(parts, "additionalProperties").filter(|others| matches!(others, Json::Object(_)));
        if let Some(others) = others
            && depth <= MAX_DEPTH
            && self.bias != Bias::Empty
        {
            for name in ["a", "Zoë", "two words"].into_iter().take(self.rng.usize(..4)) {
                if let (Some(value), None) = (self.value(others, depth + 1), object.get(name)) {
                    object.set(name, value);
                }
            }
        }
        Some(object)
    }
}

/// Returns a keyword that one of the schemas has.
fn keyword<'a>(parts: &[&'a Json], key: &str) -> Option<&'a Json> {
    parts.iter().find_map(|part| part.get(key))
}

/// Returns a number that one of the schemas has.
fn bound(parts: &[&Json], key: &str) -> Option<f64> {
    parts.iter().find_map(|part| match part.get(key) {
        Some(Json::Number(text)) => text.parse().ok(),
        _ => None,
    })
}

/// Returns a length that one of the schemas has.
fn length(parts: &[&Json], key: &str) -> Option<usize> {
    bound(parts, key).map(|bound| if bound.is_sign_negative() { 0 } else { bound as usize })
}

/// Returns the bit of integers if one side admits numbers, which include them, and the other only integers.
fn extra_integer(one: u8, other: u8) -> u8 {
    let has = |bits: u8, kind: Type| bits & kind as u8 != 0;
    let is_mixed = has(one, Type::Number) && has(other, Type::Integer) || has(one, Type::Integer) && has(other, Type::Number);
    if is_mixed { Type::Integer as u8 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(schema: &str) -> DeclaredOutput {
        let definition = format!(r#"{{"outputSchema":{schema}}}"#).leak();
        DeclaredOutput::new(&ptc_catalog::Tool { definition, ..ptc_catalog::Tool::EMPTY })
    }

    const SCHEMA: &str = r##"{"type":"object","required":["rows","kind"],"additionalProperties":false,"properties":{
        "rows":{"type":"array","minItems":1,"maxItems":4,"items":{"$ref":"#/$defs/row"}},
        "kind":{"enum":["a","b"]},"next":{"type":["string","null"]},"count":{"type":"integer","minimum":3,"maximum":5},
        "ratio":{"type":"number","exclusiveMinimum":0,"maximum":1},"code":{"type":"string","pattern":"^[A-Z]{2}-\\d{3}$"},
        "born":{"type":"string","format":"date"},"either":{"oneOf":[{"type":"integer"},{"type":"string","minLength":3,"maxLength":5}]},
        "tree":{"$ref":"#/$defs/tree"}},
        "$defs":{"row":{"allOf":[{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}},
            {"properties":{"name":{"type":"string"}}}]},
            "tree":{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}}}"##;

    #[test]
    fn generated_answers_match_the_schema_and_depend_on_the_seed_alone() {
        let declared = declared(SCHEMA);
        let answers: Vec<Json> = (0..200).map(|seed| answer(&declared, seed).unwrap_or_else(|| panic!("seed {seed}"))).collect();
        assert!(answers.iter().all(|answer| declared.permits(answer)));
        assert_eq!(answer(&declared, 7), answers.get(7).cloned());
        let with = |test: &dyn Fn(&Json) -> bool| answers.iter().filter(|answer| test(answer)).count();
        assert!(with(&|answer| answer.get("next") == Some(&Json::Null)) > 10);
        assert!(with(&|answer| answer.get("next").is_none()) > 10);
        assert!(with(&|answer| answer.get("count") == Some(&Json::Number("3".into()))) > 5);
        assert!(with(&|answer| answer.get("count") == Some(&Json::Number("5".into()))) > 5);
        assert!(with(&|answer| !answer.canonical().is_ascii()) > 10);
        assert!(with(&|answer| answer.get("either").is_some_and(|either| either.as_str().is_some())) > 10);
        let distinct: std::collections::HashSet<String> = answers.iter().map(Json::canonical).collect();
        assert!(distinct.len() > 150, "{}", distinct.len());
    }

    #[test]
    fn schema_without_answers_gives_none() {
        assert_eq!(answer(&declared("false"), 1), None);
        let endless = r##"{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}}"##;
        assert_eq!(answer(&declared(endless), 1), None);
    }
}
