//! Values in the text form that programs print.

use ptc_compiler::json::Json;
use ptc_lisp::form::{Form, FormKind};
use ptc_lisp::reader;
use serde_json::value::RawValue;

/// A value. Vectors and lists are equal in Clojure.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Edn {
    /// A value without parts, as text.
    Atom(String),
    /// A keyword, without the colon.
    Keyword(String),
    /// A string.
    String(String),
    /// A vector or a list.
    Sequence(Vec<Edn>),
    /// A map, in the order of the text.
    Map(Vec<(Edn, Edn)>),
    /// A set.
    Set(Vec<Edn>),
}

impl Edn {
    /// Parses a text with one value. `None` if it is not one, such as the printed form of a function.
    pub(super) fn parse(text: &str) -> Option<Edn> {
        let forms = reader::read(text).ok()?;
        match forms.as_slice() {
            [form] => Edn::from_form(text, form),
            _ => None,
        }
    }

    fn from_form(text: &str, form: &Form<'_>) -> Option<Edn> {
        let all = |forms: &[Form<'_>]| forms.iter().map(|form| Edn::from_form(text, form)).collect::<Option<Vec<_>>>();
        Some(match &form.kind {
            FormKind::Keyword(name) => Edn::Keyword((*name).to_owned()),
            FormKind::String(text) => Edn::String(text.clone().into_owned()),
            FormKind::List(items) | FormKind::Vector(items) => Edn::Sequence(all(items)?),
            FormKind::Set(items) => Edn::Set(all(items)?),
            FormKind::Map(items) => {
                let mut items = all(items)?.into_iter();
                let mut entries = Vec::new();
                while let (Some(key), Some(value)) = (items.next(), items.next()) {
                    entries.push((key, value));
                }
                Edn::Map(entries)
            }
            FormKind::Nil | FormKind::Bool(_) | FormKind::Int(_) | FormKind::BigInt(_) | FormKind::Double(_) => {
                Edn::Atom(text.get(form.span.start as usize..form.span.end as usize)?.to_owned())
            }
            FormKind::Symbol(_) | FormKind::ShortFn(_) | FormKind::Regex(_) | FormKind::Var(_) | FormKind::Quote(_) => {
                return None;
            }
        })
    }

    /// Returns the value as text.
    pub(super) fn text(&self) -> String {
        let all = |items: &[Edn]| items.iter().map(Edn::text).collect::<Vec<_>>().join(" ");
        match self {
            Edn::Atom(text) => text.clone(),
            Edn::Keyword(name) => format!(":{name}"),
            Edn::String(text) => ptc_lisp::print::readable(&ptc_lisp::Value::from(text.as_str())),
            Edn::Sequence(items) => format!("[{}]", all(items)),
            Edn::Set(items) => format!("#{{{}}}", all(items)),
            Edn::Map(entries) => {
                let entry = |(key, value): &(Edn, Edn)| format!("{} {}", key.text(), value.text());
                format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(" "))
            }
        }
    }

    /// Returns the value as JSON, with keywords as strings, for the arguments of a program.
    pub(super) fn to_json(&self) -> Json {
        match self {
            Edn::Atom(text) => number(text),
            Edn::Keyword(text) | Edn::String(text) => Json::string(&**text),
            Edn::Sequence(items) | Edn::Set(items) => Json::Array(items.iter().map(Edn::to_json).collect()),
            Edn::Map(entries) => {
                let key = |key: &Edn| match key {
                    Edn::Keyword(text) | Edn::String(text) => text.clone(),
                    other => other.text(),
                };
                Json::Object(entries.iter().map(|(name, value)| (key(name), value.to_json())).collect())
            }
        }
    }

    /// Returns the value as JSON in which arrays have a tag for what JSON does not have. [`DECODE`] reverses this.
    pub(super) fn tagged(&self) -> Json {
        let tagged = |tag: &str, items: &mut dyn Iterator<Item = Json>| {
            Json::Array(std::iter::once(Json::string(tag)).chain(items).collect())
        };
        match self {
            Edn::Atom(text) => match number(text) {
                Json::String(text) => tagged("d", &mut std::iter::once(Json::String(text))),
                number => number,
            },
            Edn::Keyword(name) => tagged("k", &mut std::iter::once(Json::string(&**name))),
            Edn::String(text) => Json::string(&**text),
            Edn::Sequence(items) => tagged("v", &mut items.iter().map(Edn::tagged)),
            Edn::Set(items) => tagged("s", &mut items.iter().map(Edn::tagged)),
            Edn::Map(entries) => tagged("m", &mut entries.iter().flat_map(|(key, value)| [key.tagged(), value.tagged()])),
        }
    }
}

impl From<&Json> for Edn {
    /// Converts the value to what a program reads: keys are strings.
    fn from(json: &Json) -> Edn {
        match json {
            Json::Null => Edn::Atom("nil".to_owned()),
            Json::Bool(value) => Edn::Atom(value.to_string()),
            Json::Number(text) => Edn::Atom(text.clone()),
            Json::String(text) => Edn::String(text.clone()),
            Json::Array(items) => Edn::Sequence(items.iter().map(Edn::from).collect()),
            Json::Object(members) => {
                Edn::Map(members.iter().map(|(key, value)| (Edn::String(key.clone()), Edn::from(value))).collect())
            }
        }
    }
}

/// Returns the JSON value of an atom, with the digits of a number as written, or its text if JSON does not have the number.
fn number(text: &str) -> Json {
    let digits = text.strip_suffix('N').unwrap_or(text);
    match text {
        "nil" => Json::Null,
        "true" | "false" => Json::Bool(text == "true"),
        _ if serde_json::from_str::<&RawValue>(digits).is_ok() => Json::Number(digits.to_owned()),
        _ => Json::string(text),
    }
}

/// The definition of the function that decodes tagged values. It is on one line, since it precedes the text of a test.
pub(super) const DECODE: &str = "(defn ptc-test-decode [x] (if (vector? x) (let [more (rest x)] (case (first x) \"k\" (keyword (first more)) \
    \"v\" (mapv ptc-test-decode more) \"s\" (set (map ptc-test-decode more)) \"m\" (into {} (map (fn [[k v]] [(ptc-test-decode k) \
    (ptc-test-decode v)]) (partition 2 more))) \"d\" (case (first more) \"##Inf\" ##Inf \"##-Inf\" ##-Inf \"##NaN\" ##NaN \
    nil))) x))";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_printed_and_encoded() {
        let text = r#"{:a [1 -2.5 "x\ny" nil] "b" #{:k true} 3 {}}"#;
        let value = Edn::parse(text).expect("a value");
        assert_eq!(value.text(), text);
        assert_eq!(value.to_json().canonical(), r#"{"3":{},"a":[1,-2.5,"x\ny",null],"b":["k",true]}"#);
        let tagged = r#"["m",["k","a"],["v",1,-2.5,"x\ny",null],"b",["s",["k","k"],true],3,["m"]]"#;
        assert_eq!(value.tagged().canonical(), tagged);
        assert_eq!(Edn::parse("##Inf").expect("a number").tagged().canonical(), r###"["d","##Inf"]"###);
        let big = "123456789012345678901234567890";
        assert_eq!(Edn::parse(big).expect("a number").tagged().canonical(), big);
        for text in ["", "1 2", "#(inc %)", "inc"] {
            assert_eq!(Edn::parse(text), None, "{text}");
        }
    }
}
