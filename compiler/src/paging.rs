//! Infers from a tool's schemas how its list is paged.

use ptc_catalog::paging::{self, Argument, Shape};
use ptc_catalog::{By, Paging, Type, Types};

use crate::ir::Arg;
use crate::json::Json;
use crate::json_schema::Schema;

/// Maximum depth of objects in an output schema, and maximum number of members of one object, that are inspected.
const MAX_DEPTH: usize = 4;
const MAX_MEMBERS: usize = 200;

/// Returns how the list of a tool is paged according to its definition, or `None` if its schemas do not show it.
pub fn inferred(definition: &Json) -> Option<Paging> {
    let output = definition.get("outputSchema")?;
    let shape = shape(&Schema::new(output), output, MAX_DEPTH);
    let input = definition.get("inputSchema");
    let args = input.map(|input| Schema::new(input).arguments().0).unwrap_or_default();
    let tool = definition.get("name").and_then(Json::as_str).unwrap_or_default();
    paging::infer(tool, &arguments(input, &args), &shape, definition.get("_ptc").and_then(|ptc| ptc.get("linkHeader")).is_some())
}

/// Converts the paging of a list to the form of configs and lock files.
pub fn json(paging: &Paging) -> Json {
    let value = |name: &str, text: String| match name {
        "first" | "max_size" => Json::Number(text),
        _ => Json::String(text),
    };
    Json::Object(paging.members().into_iter().map(|(name, text)| (name.to_owned(), value(name, text))).collect())
}

/// Returns the paging that the config describes, or `None` for an object that describes none. Without `by` the list is paged by
/// token. If the config has no maximum page size, that of the schemas applies, provided that both name the same argument for the
/// size.
pub fn configured(written: &Json, inferred: Option<&Paging>) -> Option<Paging> {
    let mut paging = Paging::default();
    for (name, value) in written.members() {
        match value.as_str() {
            Some(way) if name == "by" => paging.by = By::named(way)?,
            Some(text) => paging.set(name, text)?,
            None => paging.set(name, &value.canonical())?,
        }
    }
    let same_size = inferred.filter(|inferred| inferred.size.is_some() && inferred.size == paging.size);
    paging.max_size = paging.max_size.or(same_size.and_then(|inferred| inferred.max_size));
    Some(paging)
}

/// Whether the first response of a tool must show how its list is paged: its output schema is not declared, and it has an
/// argument for paging.
pub fn is_decided_by_answer(definition: &Json, args: &[Arg]) -> bool {
    definition.get("outputSchema").is_none() && paging::has_paging_argument(&arguments(definition.get("inputSchema"), args))
}

fn arguments<'a>(input: Option<&'a Json>, args: &'a [Arg]) -> Vec<Argument<'a>> {
    let schema = input.map(Schema::new);
    let members = schema.as_ref().zip(input).map(|(schema, input)| schema.members(input));
    let number = |arg: &Arg, keys: &[&str]| {
        let (schema, node) = (schema.as_ref()?, members.as_ref()?.get(&arg.name)?);
        keys.iter().find_map(|key| schema.keyword(schema.body(node), key)?.canonical().parse::<i64>().ok())
    };
    let said = |arg: &Arg| members.as_ref()?.get(&arg.name)?.get("description")?.as_str();
    let argument = |arg: &'a Arg| Argument {
        name: &arg.name,
        types: arg.types,
        first: number(arg, &["default", "minimum"]).filter(|first| matches!(first, 0 | 1)),
        // The largest number of a type is not a limit of pages.
        maximum: number(arg, &["maximum"]).filter(|most| (1..i64::from(i32::MAX)).contains(most)),
        says: said(arg).unwrap_or_default(),
    };
    args.iter().map(argument).collect()
}

fn shape(schema: &Schema<'_>, node: &Json, depth: usize) -> Shape {
    let node = schema.body(node);
    let types = schema.types(node);
    let is = |wanted: Type| types.admits(wanted);
    let kinds = [Type::Array, Type::Object, Type::String, Type::Boolean].into_iter().filter(|kind| is(*kind)).count();
    let is_number = is(Type::Integer);
    // Many schemas omit the type if a keyword implies it.
    if types == Types::ANY && !schema.members(node).properties.is_empty() {
        return object(schema, node, depth);
    }
    if types == Types::ANY && schema.keyword(node, "items").is_some() {
        return Shape::Array(Box::new(Shape::Any));
    }
    if kinds + usize::from(is_number) != 1 {
        return Shape::Any;
    }
    if is(Type::Array) {
        return Shape::Array(Box::new(Shape::Any));
    }
    if is(Type::String) {
        return Shape::Text;
    }
    if is_number {
        return Shape::Number;
    }
    if is(Type::Boolean) {
        return Shape::Bool;
    }
    object(schema, node, depth)
}

fn object(schema: &Schema<'_>, node: &Json, depth: usize) -> Shape {
    if depth == 0 {
        return Shape::Object(Vec::new());
    }
    let members = schema.members(node);
    let known = members.properties.iter().take(MAX_MEMBERS);
    Shape::Object(known.map(|(name, node)| ((*name).to_owned(), shape(schema, node, depth - 1))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(definition: &str) -> Option<String> {
        let definition = Json::from(&serde_json::from_str::<serde_json::Value>(definition).unwrap());
        super::inferred(&definition.with("name", Json::string("list_things"))).map(|paging| paging.to_string())
    }

    #[test]
    fn first_page_and_largest_size_come_from_the_schema() {
        let definition = r##"{
            "inputSchema": {"properties": {"page": {"type": "integer", "default": 1}, "per_page": {"$ref": "#/$defs/size"}},
                "$defs": {"size": {"type": "integer", "maximum": 200}}},
            "outputSchema": {"properties": {"things": {"type": ["array", "null"]}, "meta": {"$ref": "#/$defs/meta"}}, "type": "object",
                "$defs": {"meta": {"type": "object", "properties": {"total": {"type": "integer"}}}}}}"##;
        let wanted = "by page\nitems things\nargument page\ntotal meta.total\nsize per_page\nfirst 1\nmax_size 200";
        assert_eq!(inferred(definition).as_deref(), Some(wanted));
    }

    #[test]
    fn config_overrides_paging_from_schemas() {
        let json = |text: &str| Json::from(&serde_json::from_str::<serde_json::Value>(text).unwrap());
        let inferred = Paging { size: Some("limit".to_owned()), max_size: Some(50), ..Paging::default() };
        let written = json(r#"{"items": "data", "next": "meta.next_cursor", "argument": "cursor", "size": "limit"}"#);
        let wanted = "by cursor\nitems data\nargument cursor\nnext meta.next_cursor\nsize limit\nmax_size 50";
        assert_eq!(configured(&written, Some(&inferred)).map(|paging| paging.to_string()).as_deref(), Some(wanted));
        let by_page = json(r#"{"by": "page", "items": "", "argument": "p", "first": 0}"#);
        let wanted = "by page\nitems \nargument p\nfirst 0";
        assert_eq!(configured(&by_page, None).map(|paging| paging.to_string()).as_deref(), Some(wanted));
    }

    #[test]
    fn paging_of_published_schemas_is_detected() {
        let object = |members: &str| format!(r#"{{"type": "object", "properties": {{{members}}}}}"#);
        let cases = [
            // If the type is omitted, a keyword implies it. The schema itself may be behind a reference.
            (
                "",
                r##"{"$ref": "#/$defs/R", "$defs": {"R": {"properties": {"value": {"items": {}}, "nextLink": {"type": "string"}}}}}"##.to_owned(),
                Some("by link\nitems value\nnext nextLink"),
            ),
            // The token is passed back in an argument of the same name.
            (
                r#""searchPointer": {"type": "string"}"#,
                object(r#""flagged": {"type": "array"}, "searchPointer": {"type": "string"}"#),
                Some("by cursor\nitems flagged\nargument searchPointer\nnext searchPointer"),
            ),
            // A marker is a token even if it is declared as a number.
            (
                r#""marker": {"type": "string"}"#,
                object(r#""entries": {"type": "array"}, "next_marker": {"type": "integer"}"#),
                Some("by cursor\nitems entries\nargument marker\nnext next_marker"),
            ),
            // Page numbers may be declared as strings if both arguments are.
            (
                r#""page": {"type": "string"}, "pageSize": {"type": "string"}"#,
                r#"{"type": "array"}"#.to_owned(),
                Some("by page\nitems \nargument page\nsize pageSize"),
            ),
            (r#""page": {"type": "string"}"#, r#"{"type": "array"}"#.to_owned(), None),
            // The names of arguments have brackets.
            (
                r#""search[currentPage]": {"type": "integer"}, "search[pageSize]": {"type": "integer"}"#,
                object(r#""items": {"type": "array"}, "total_count": {"type": "integer"}"#),
                Some("by page\nitems items\nargument search[currentPage]\ntotal total_count\nsize search[pageSize]"),
            ),
            // The description of an argument decides if its name does not.
            (
                r#""offset": {"type": "integer", "description": "Page number."}"#,
                r#"{"type": "array"}"#.to_owned(),
                Some("by page\nitems \nargument offset"),
            ),
            (r#""offset": {"type": "integer", "description": "A timestamp."}"#, r#"{"type": "array"}"#.to_owned(), None),
            // A page number is used instead of a token that only a link contains.
            (
                r#""Page": {"type": "integer"}, "PageToken": {"type": "string"}"#,
                object(r#""rows": {"type": "array"}, "meta": {"type": "object", "properties": {"next_page_url": {"type": "string"}}}"#),
                Some("by link\nitems rows\nnext meta.next_page_url"),
            ),
            // The items may be in the member without a declared type.
            (
                r#""offset": {"type": "integer"}, "limit": {"type": "integer"}"#,
                object(r#""data": {}, "agent_hints": {"type": "array"}"#),
                None,
            ),
            (
                r#""offset": {"type": "integer"}, "limit": {"type": "integer", "maximum": 9007199254740991}"#,
                object(r#""ok": {}, "pets": {"type": "array"}"#),
                Some("by offset\nitems pets\nargument offset\nsize limit"),
            ),
            // A cursor is used instead of the link that contains it.
            (
                r#""cursor": {"type": "string"}"#,
                object(
                    r#""data": {"type": "array"}, "links": {"type": "object", "properties": {"next": {"type": "string"}}},
                       "meta": {"type": "object", "properties": {"cursors": {"type": "object", "properties": {"next": {"type": "string"}}}}}"#,
                ),
                Some("by cursor\nitems data\nargument cursor\nnext meta.cursors.next"),
            ),
            (
                r#""SkipPages": {"type": "integer"}"#,
                r#"{"type": "array"}"#.to_owned(),
                Some("by page\nitems \nargument SkipPages\nfirst 0"),
            ),
        ];
        for (arguments, answer, wanted) in cases {
            let definition = format!(r#"{{"inputSchema": {{"properties": {{{arguments}}}}}, "outputSchema": {answer}}}"#);
            assert_eq!(inferred(&definition).as_deref(), wanted, "{definition}");
        }
    }

    #[test]
    fn declared_link_header_announces_further_pages() {
        let with = |ptc: &str| {
            format!(
                r#"{{"inputSchema": {{"properties": {{"startingAfter": {{"type": "string"}}}}}}, "outputSchema": {{"type": "array"}}, "_ptc": {ptc}}}"#
            )
        };
        assert_eq!(inferred(&with(r#"{"linkHeader": true}"#)).as_deref(), Some("by header\nitems \nargument startingAfter"));
        assert_eq!(inferred(&with("{}")), None);
    }

    #[test]
    fn paging_of_an_undeclared_response_is_not_guessed() {
        let definition = r#"{"inputSchema": {"properties": {"page": {"type": "integer"}}}, "outputSchema": {}}"#;
        assert_eq!(inferred(definition), None);
        let no_argument = r#"{"inputSchema": {"properties": {}}, "outputSchema": {"type": "array"}}"#;
        assert_eq!(inferred(no_argument), None);
    }
}
