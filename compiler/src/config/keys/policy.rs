//! The keys of `policy`.

use super::key;
use crate::config::table::Presence::{Optional, Required};
use crate::config::table::{Kind, Table};

/// `policy`
pub static POLICY: Table = Table {
    tag: "",
    title: "a policy",
    groups: &[&[key(
        "rules",
        Kind::List,
        Required,
        "the rules; the first one that applies to a caller and permits a call decides, and a call that none permits is refused",
    )]],
};

/// An element of `rules`.
pub static RULE: Table = Table {
    tag: "",
    title: "a rule",
    groups: &[&[
        key("name", Kind::Text, Required, "name in messages and traces").or(&["id"]),
        key("when", Kind::Record(&WHEN), Optional, "the callers to whom it applies; every caller where left out")
            .or(&["if", "callers", "subjects"]),
        key("allow", Kind::List, Required, "what it permits").or(&["grants", "permit"]),
        key("limits", Kind::Record(&LIMITS), Optional, "how many calls it permits").or(&["limit"]),
    ]],
};

/// The `when` of a rule.
pub static WHEN: Table = Table {
    tag: "",
    title: "a `when`",
    groups: &[&[
        key(
            "owner",
            Kind::Text,
            Optional,
            "name in the tokens file, or an owner of another kind, such as `stdio` or `oauth:ISSUER SUBJECT`",
        )
        .or(&["user", "name"]),
        key("scope", Kind::Text, Optional, "scope of the access token").or(&["scopes"]),
        key("group", Kind::Text, Optional, "element of the claim `groups` of the access token").or(&["groups", "role"]),
        key("claim", Kind::Object, Optional, "claims of the access token by name, each with its value or one of its elements")
            .or(&["claims"]),
    ]],
};

/// An element of the `allow` of a rule.
pub static GRANT: Table = Table {
    tag: "",
    title: "an element of `allow`",
    groups: &[&[
        key("upstream", Kind::Text, Required, "the upstream").or(&["server"]),
        key(
            "tools",
            Kind::Names,
            Optional,
            "names of its tools as programs write them, in which `*` matches any characters; all where left out",
        )
        .or(&["tool", "operations"]),
        key(
            "arguments",
            Kind::Object,
            Optional,
            "permitted values by argument, each a list; `null` in it permits that the argument is left out",
        )
        .or(&["args"]),
    ]],
};

/// The `limits` of a rule.
pub static LIMITS: Table = Table {
    tag: "",
    title: "a `limits`",
    groups: &[&[
        key("calls_per_program", CALLS, Optional, "calls of one program that the rule permits").or(&["per_program"]),
        key("calls_per_minute", CALLS, Optional, "calls of one owner in a minute that the rule permits, over all programs")
            .or(&["per_minute"]),
    ]],
};

const CALLS: Kind = Kind::Number { min: 1, max: 1_000_000, unit: "calls" };
