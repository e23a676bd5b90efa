//! Describes every key of `upstreams.json` as a row of a table.
//!
//! - `upstream`: the entries of `upstreams`.
//! - `credentials`: the entries of `credentials`, and the elements of `auth`.
//! - `policy`: the rules of `policy`.

mod credentials;
mod policy;
mod upstream;

pub use credentials::{AUTH, CREDENTIAL, IDENTITY_PROVIDER};
pub use policy::{GRANT, LIMITS, POLICY, RULE, WHEN};
pub use upstream::{OVERRIDE, PROXY, SANDBOX, TOOL_OVERRIDE, UPSTREAM};

use super::table::Presence::{self, Optional, Required};
use super::table::{Key, Kind, Table};
use crate::diag::{Code, suggest};
use crate::tree::{Member, Node};

/// Maximum of every limit in milliseconds: one day.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const MILLISECONDS: Kind = Kind::Number { min: 1, max: DAY_MS, unit: "milliseconds" };
/// At most 1 GiB, because responses are held in memory.
const BYTES: Kind = Kind::Number { min: 1, max: 1 << 30, unit: "bytes" };

const fn key(name: &'static str, kind: Kind, presence: Presence, doc: &'static str) -> Key {
    Key { name, kind, presence, doc, aliases: &[], own_code: None }
}

impl Key {
    const fn or(mut self, aliases: &'static [&'static str]) -> Key {
        self.aliases = aliases;
        self
    }

    const fn reported_as(mut self, code: Code) -> Key {
        self.own_code = Some(code);
        self
    }
}

/// The config itself.
pub static CONFIG: Table = Table {
    tag: "",
    title: "a config",
    groups: &[&[
        key("name", Kind::Text, Optional, "name of the server for clients, and in manifests, logs and metrics")
            .or(&["server_name"]),
        key("upstreams", Kind::Object, Required, "upstream tool servers by name").or(&["mcpServers", "servers"]),
        key("credentials", Kind::Object, Optional, "where secrets come from, by binding name").or(&["secrets", "bindings"]),
        key("programs", Kind::Object, Optional, "programs that clients call as tools, by the tool's name")
            .or(&["stored_programs"]),
        key("read_only", Kind::Flag, Optional, "refuses every tool and operation that is not a read"),
        key(
            "policy",
            Kind::Record(&POLICY),
            Optional,
            "which callers may call which tools; without it every caller may call every tool",
        )
        .or(&["access", "authorization", "permissions"]),
        key("$schema", Kind::AnyText, Optional, "a JSON Schema for editors; not read"),
    ]],
};

/// Whether a key of the config is `upstreams`, one of its aliases, or a misspelling of it.
pub(super) fn is_upstreams(key: &str) -> bool {
    let row = CONFIG.key("upstreams");
    row.is_some_and(|row| row.name == key || row.aliases.contains(&key))
        || suggest::closest_match(key, CONFIG.keys().map(|row| row.name)) == Some("upstreams")
}

/// Returns every entry of the upstreams, even if the key of the object is misspelt.
pub(super) fn upstreams(root: &Node) -> impl Iterator<Item = &Member> {
    root.members().iter().filter(|member| is_upstreams(&member.key)).flat_map(|member| member.value.members())
}

/// An entry of `programs`.
pub static PROGRAM: Table = Table {
    tag: "",
    title: "a program",
    groups: &[&[
        key("file", Kind::Text, Required, "path of the PTC-Lisp source").or(&["path", "source", "program"]),
        key("description", Kind::AnyText, Optional, "description shown to clients").or(&["doc"]),
        key("args", Kind::Object, Optional, "JSON Schema of its arguments, which it reads as `data/name`; none where left out")
            .or(&["input_schema", "inputSchema"]),
        key("output_schema", Kind::Object, Optional, "JSON Schema of its result; any where left out").or(&["outputSchema"]),
        key("silence", Kind::Notes, Optional, "codes of notes about the program that are not shown any more").or(&["ignore"]),
    ]],
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn tables() -> Vec<&'static Table> {
        let cases = [&UPSTREAM, &CREDENTIAL, &AUTH].into_iter().flat_map(|variants| variants.cases);
        [&CONFIG, &GRANT, &IDENTITY_PROVIDER, &LIMITS, &OVERRIDE, &POLICY, &PROGRAM, &PROXY, &RULE, &SANDBOX, &WHEN]
            .into_iter()
            .chain(cases)
            .collect()
    }

    #[test]
    fn names_of_keys_are_unique_within_an_object() {
        for table in tables() {
            let mut seen = BTreeSet::new();
            for key in table.keys() {
                assert!(!key.doc.is_empty(), "{}: {} has no doc", table.title, key.name);
                for name in key.aliases.iter().chain([&key.name]) {
                    // `credentials` is also a key of the config, and `url` a key of another transport.
                    assert!(seen.insert(*name), "{}: `{name}` is given twice", table.title);
                }
            }
        }
    }

    #[test]
    fn defaults_are_within_their_ranges() {
        for key in tables().into_iter().flat_map(Table::keys) {
            if let Presence::Default(value) = key.presence {
                let Kind::Number { min, max, .. } = key.kind else { panic!("{} has a default and is not a number", key.name) };
                assert!((min..=max).contains(&value), "{}", key.name);
            }
        }
    }

    #[test]
    fn every_case_has_the_key_that_selects_it() {
        for variants in [&UPSTREAM, &CREDENTIAL, &AUTH] {
            for table in variants.cases {
                assert!(table.key(variants.tag.name).is_some(), "{}", table.title);
            }
        }
    }
}
