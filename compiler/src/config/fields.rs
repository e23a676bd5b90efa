//! Reads an object by its table: unknown and missing keys, types and ranges.

use super::model::{Effects, Spanned};
use super::reader::ConfigReader;
use super::table::{Key, Presence, Table, Variants};
use super::{kinds, placeholder};
use crate::diag::{Code, Diagnostic, quoted, suggest};
use crate::source::Span;
use crate::tree::{Member, Node};

/// The object that is read, for messages.
#[derive(Clone)]
pub(super) struct Subject {
    /// The name in messages, such as ``upstream `fs` ``.
    pub(super) name: String,
    /// The position of its name or key, where missing keys are reported.
    pub(super) place: Span,
}

/// The members of an object that are known and have the right type. A member with a misspelt key is included: the key is reported
/// as an error, and the value is still checked.
pub(super) struct Fields<'n> {
    table: &'static Table,
    sound: Vec<(&'static Key, &'n Member)>,
    /// Members that a later one with the same key replaces.
    replaced: Vec<(&'static Key, &'n Member)>,
    /// Members of a wrong type.
    unfit: Vec<(&'static Key, &'n Member)>,
}

impl<'n> Fields<'n> {
    /// Reads an object and reports every violation of its table. Returns `None` for other values.
    ///
    /// `others` are tables of the same family. A key of theirs is reported as misplaced and not as misspelt.
    pub(super) fn read(
        reader: &mut ConfigReader<'_>,
        subject: &Subject,
        table: &'static Table,
        others: &'static [Table],
        node: &'n Node,
    ) -> Option<Fields<'n>> {
        is_object(reader, subject, "", node).then(|| Fields::read_but(reader, subject, table, others, node, &[]))
    }

    /// Like [`Fields::read`] for a value known to be an object. The keys in `reported` may be missing or unknown, because they have
    /// been reported already.
    fn read_but(
        reader: &mut ConfigReader<'_>,
        subject: &Subject,
        table: &'static Table,
        others: &'static [Table],
        node: &'n Node,
        reported: &[&str],
    ) -> Fields<'n> {
        let mut fields = Fields { table, sound: Vec::new(), replaced: Vec::new(), unfit: Vec::new() };
        let mut meant: Vec<&str> = reported.to_vec();
        for (at, member) in node.members().iter().enumerate() {
            if reported.contains(&&*member.key) {
                continue;
            }
            // The last of two equal keys counts; the parser has reported the repetition.
            let repeated = node.members().iter().skip(at + 1).any(|later| later.key == member.key);
            let key = table.key(&member.key).or_else(|| {
                let name = unknown_key(reader, table, others, node, member)?;
                let is_first = !meant.contains(&name);
                meant.push(name);
                table.key(name).filter(|_| is_first)
            });
            let Some(key) = key else { continue };
            let into = match kinds::check(reader, key, &member.value) {
                true if repeated => &mut fields.replaced,
                true => &mut fields.sound,
                false => &mut fields.unfit,
            };
            into.push((key, member));
        }
        for key in table.keys().filter(|key| key.presence == Presence::Required) {
            if node.get(key.name).is_none() && !meant.contains(&key.name) {
                missing_key(reader, subject, key);
            }
        }
        fields
    }

    /// Reads an object whose table is chosen by its tag. An unknown tag is passed to `unknown`, which reports it and may return
    /// the table that was meant, so that the rest is still checked.
    pub(super) fn read_variant(
        reader: &mut ConfigReader<'_>,
        subject: &Subject,
        variants: &'static Variants,
        node: &'n Node,
        unknown: impl FnOnce(&mut ConfigReader<'_>, &'n Node, &'n str) -> Option<&'static Table>,
    ) -> Option<Fields<'n>> {
        if !is_object(reader, subject, variants.example, node) {
            return None;
        }
        let mut reported = Vec::new();
        let wrong = || node.members().iter().find(|m| variants.tag.aliases.contains(&&*m.key));
        if node.get(variants.tag.name).is_none() {
            reported.push(variants.tag.name);
            let guess = guess(variants, node);
            let mut diagnostic =
                Diagnostic::new(Code::MissingKey, format!("{} lacks the key `{}`", subject.name, variants.tag.name))
                    .at(subject.place.clone(), format!("`{}` is missing", variants.tag.name));
            let cases: Vec<String> = variants.tags().map(quoted).collect();
            diagnostic = match guess {
                Some(table) => diagnostic.hint(format!("by its other keys it is \"{}\": \"{}\"", variants.tag.name, table.tag)),
                None => diagnostic.hint(format!("`{}` is one of {}", variants.tag.name, cases.join(", "))),
            };
            if let Some(wrong) = wrong() {
                reported.push(&*wrong.key);
                diagnostic = diagnostic.also(reader.key_place(wrong), format!("the key is called `{}`", variants.tag.name));
            }
            reader.report(diagnostic);
        }
        let table = match node.get(variants.tag.name).or_else(|| Some(&wrong()?.value)) {
            None => guess(variants, node)?,
            Some(tag) => {
                let Some(text) = tag.as_str() else {
                    kinds::check(reader, &variants.tag, tag);
                    return None;
                };
                match variants.case(text) {
                    Some(table) => table,
                    None => unknown(reader, tag, text)?,
                }
            }
        };
        Some(Fields::read_but(reader, subject, table, variants.cases, node, &reported))
    }

    /// Returns the tag of the object's table.
    pub(super) fn tag(&self) -> &'static str {
        self.table.tag
    }

    /// Returns the member of a key if it is present and valid.
    pub(super) fn member(&self, name: &str) -> Option<&'n Member> {
        debug_assert!(self.table.key(name).is_some(), "{} has no key `{name}`", self.table.title);
        self.sound.iter().find(|(key, _)| key.name == name).map(|(_, member)| *member)
    }

    /// Returns the values that a later member with the same key replaces.
    pub(super) fn replaced(&self, name: &str) -> impl Iterator<Item = &'n Node> {
        self.replaced.iter().filter(move |(key, _)| key.name == name).map(|(_, member)| &member.value)
    }

    /// Returns the codes in a list of codes.
    pub(super) fn notes(&self, name: &str) -> Vec<Code> {
        self.nodes(name).iter().filter_map(|node| Code::find(node.as_str()?)).collect()
    }

    /// Returns the value of a key if it has a wrong type.
    pub(super) fn unfit(&self, name: &str) -> Option<&'n Node> {
        self.unfit.iter().find(|(key, _)| key.name == name).map(|(_, member)| &member.value)
    }

    /// Returns the value of a key.
    pub(super) fn node(&self, name: &str) -> Option<&'n Node> {
        self.member(name).map(|member| &member.value)
    }

    /// Returns the code of a value that a key does not accept.
    pub(super) fn code(&self, name: &str) -> Code {
        self.table.key(name).map_or(Code::UnknownScheme, Key::code)
    }

    /// Reports the value of a key with the code of that key. Nothing is reported if the key is absent or its value has a wrong type.
    pub(super) fn fault(&self, reader: &mut ConfigReader<'_>, name: &str, message: impl Into<String>, label: &str, hint: &str) {
        if let Some(node) = self.node(name) {
            reader.fault(self.code(name), node, message, label, hint);
        }
    }

    /// Returns a string.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.node(name)?.as_str().map(str::to_owned)
    }

    /// Returns a string and its position.
    pub(super) fn spanned(&self, reader: &ConfigReader<'_>, name: &str) -> Option<Spanned<String>> {
        reader.spanned(self.node(name)?)
    }

    /// Returns a flag; `false` if it is absent.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.node(name).and_then(Node::as_bool).unwrap_or(false)
    }

    /// Returns the keys `read_only`, `destructive` and `idempotent` of an override.
    pub(super) fn effects(&self) -> Effects {
        let flag = |key| self.node(key).and_then(Node::as_bool);
        Effects { read_only: flag("read_only"), destructive: flag("destructive"), idempotent: flag("idempotent") }
    }

    /// Returns a number, or its default if it is absent.
    pub(super) fn number(&self, name: &str) -> u64 {
        let default = match self.table.key(name).map(|key| key.presence) {
            Some(Presence::Default(value)) => value,
            _ => 0,
        };
        self.node(name).and_then(kinds::whole_number).unwrap_or(default)
    }

    /// Returns a number that has no default.
    pub(super) fn optional_number(&self, name: &str) -> Option<u64> {
        self.node(name).and_then(kinds::whole_number)
    }

    /// Returns an array of strings; empty if it is absent.
    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        self.nodes(name).iter().filter_map(|node| node.as_str().map(str::to_owned)).collect()
    }

    /// Returns an array of strings with their positions.
    pub(super) fn spanned_texts(&self, reader: &ConfigReader<'_>, name: &str) -> Option<Vec<Spanned<String>>> {
        let elements = self.node(name)?.elements()?;
        Some(elements.iter().filter_map(|node| reader.spanned(node)).collect())
    }

    /// Returns the elements of an array; empty if it is absent.
    pub(super) fn nodes(&self, name: &str) -> &'n [Node] {
        self.node(name).and_then(Node::elements).unwrap_or(&[])
    }

    /// Returns the members of an object; empty if it is absent.
    pub(super) fn members(&self, name: &str) -> &'n [Member] {
        self.node(name).map_or(&[], Node::members)
    }
}

/// Checks that a value is an object, and reports it if not. `example` shows such an object.
fn is_object(reader: &mut ConfigReader<'_>, subject: &Subject, example: &str, node: &Node) -> bool {
    let is = matches!(node.value, crate::tree::Tree::Object(_));
    if !is {
        let message = format!("{} must be an object, found {}", subject.name, node.kind());
        reader.fault(Code::WrongType, node, message, "expected an object", example);
    }
    is
}

/// Returns the table of the only case that has a required key which the object contains. Of cases with the same keys, it is the
/// first.
fn guess(variants: &'static Variants, node: &Node) -> Option<&'static Table> {
    let mut fitting = variants.cases.iter().filter(|table| {
        table
            .keys()
            .any(|key| key.name != variants.tag.name && key.presence == Presence::Required && node.get(key.name).is_some())
    });
    let first = fitting.next()?;
    let names = |table: &'static Table| table.keys().map(|key| key.name);
    fitting.all(|other| names(other).eq(names(first))).then_some(first)
}

fn missing_key(reader: &mut ConfigReader<'_>, subject: &Subject, key: &Key) {
    let message = format!("{} lacks the key `{}`", subject.name, key.name);
    let label = format!("`{}` is missing", key.name);
    let hint = format!("`{}` is {}: {}", key.name, kinds::expected(key.kind), key.doc);
    reader.report(Diagnostic::new(Code::MissingKey, message).at(subject.place.clone(), label).hint(hint));
}

/// Reports a key that the table does not have. Returns the key that was meant, if that is clear.
fn unknown_key(
    reader: &mut ConfigReader<'_>,
    table: &'static Table,
    others: &'static [Table],
    node: &Node,
    member: &Member,
) -> Option<&'static str> {
    let wrong: &str = &member.key;
    let free = table.keys().filter(|key| node.get(key.name).is_none());
    let meant = free.clone().find(|key| key.aliases.contains(&wrong)).map(|key| key.name);
    let taken = table.keys().find(|key| key.aliases.contains(&wrong));
    let elsewhere = others.iter().find(|other| other.tag != table.tag && other.key(wrong).is_some());
    let near = suggest::closest_match(wrong, free.map(|key| key.name));
    let given = suggest::closest_match(wrong, table.keys().map(|key| key.name));
    let message = format!("unknown key {} in {}", quoted(wrong), table.title);
    let mut diagnostic = Diagnostic::new(Code::UnknownKey, message).at(reader.key_place(member), "not a key of this object");
    let meant = match (meant, elsewhere, near) {
        (Some(name), _, _) => {
            // A header that is refused under either name is not read: one finding says what to write instead.
            let hints = member
                .value
                .members()
                .iter()
                .map(|header| header.value.as_str().and_then(|value| placeholder::authorization_hint(&header.key, value)));
            if let Some(hint) = hints.collect::<Option<Vec<_>>>().and_then(|hints| hints.into_iter().next()) {
                reader.report(diagnostic.hint(hint));
                return None;
            }
            diagnostic = diagnostic.hint(format!("here it is called `{name}`"));
            Some(name)
        }
        (None, _, _) if taken.is_some() => {
            let name = taken.map_or("", |key| key.name);
            diagnostic = diagnostic.hint(format!("here it is called `{name}`, which is given as well; remove it"));
            None
        }
        (None, Some(other), _) => {
            diagnostic = diagnostic.hint(format!("`{wrong}` is a key of {}", other.title));
            None
        }
        (None, None, Some(name)) => {
            diagnostic = diagnostic.hint(format!("did you mean `{name}`?"));
            Some(name)
        }
        (None, None, None) if given.is_some() => {
            diagnostic = diagnostic.hint(format!("it looks like `{}`, which is given as well; remove it", given.unwrap_or("")));
            None
        }
        (None, None, None) => {
            let keys: Vec<String> = table.keys().map(|key| quoted(key.name)).collect();
            diagnostic = diagnostic.hint(format!("keys of {}: {}", table.title, keys.join(", ")));
            None
        }
    };
    reader.report(diagnostic);
    meant
}
