//! The owners that rules of a policy name.

/// The prefix of an owner whose name is in the file of tokens.
const NAME: &str = "name:";

/// A caller that a rule names, by the kind of its credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerName<'n> {
    /// The client on standard input.
    Stdio,
    /// Any client over HTTP without a credential.
    Loopback,
    /// The name of a token in the file of tokens.
    Name(&'n str),
    /// The single token of a server, by its SHA-256 in lower-case hexadecimal.
    Token(&'n str),
    /// The subject of a certificate, as RFC 4514 writes it.
    Certificate(&'n str),
    /// The claims `iss` and `sub` of an access token.
    AccessToken {
        /// The issuer.
        issuer: &'n str,
        /// The subject.
        subject: &'n str,
    },
}

impl<'n> OwnerName<'n> {
    /// Reads the name of an owner in a rule. Internal names begin with the kind of credential and a colon, apart from `stdio` and
    /// `loopback`. A rule may leave out `name:`.
    ///
    /// # Errors
    ///
    /// Returns the form that was expected, if no caller can have the name.
    pub fn parse(name: &'n str) -> Result<OwnerName<'n>, &'static str> {
        let Some((kind, rest)) = name.split_once(':') else {
            return match name {
                "stdio" => Ok(OwnerName::Stdio),
                "loopback" => Ok(OwnerName::Loopback),
                name => Ok(OwnerName::Name(name)),
            };
        };
        match kind {
            "name" if !rest.is_empty() => Ok(OwnerName::Name(rest)),
            "name" => Err("`name:NAME` with a name in the tokens file"),
            "token" if is_digest(rest) => Ok(OwnerName::Token(rest)),
            "token" => Err("`token:DIGEST` with the SHA-256 of the token in lower-case hexadecimal"),
            // Every attribute of a subject has a type and a value.
            "certificate" if rest.split_once('=').is_some_and(|(attribute, _)| is_attribute_type(attribute)) => {
                Ok(OwnerName::Certificate(rest))
            }
            "certificate" => Err("`certificate:SUBJECT` with a subject like `CN=alice,O=Acme`"),
            "oauth" => match rest.split_once(' ') {
                Some((issuer, subject)) if !issuer.is_empty() && !subject.is_empty() => {
                    Ok(OwnerName::AccessToken { issuer, subject })
                }
                _ => Err("`oauth:ISSUER SUBJECT` with the claims `iss` and `sub` of an access token"),
            },
            _ => Err(
                "a text with a colon that begins with `certificate:`, `name:` (for a name in the tokens file), `oauth:` or `token:`",
            ),
        }
    }

    /// Whether callers of this kind can have an access token, and therefore scopes, groups and claims.
    pub fn has_claims(self) -> bool {
        matches!(self, OwnerName::AccessToken { .. })
    }
}

/// Returns the internal name of the owner that a rule names.
pub fn owner_id(name: &str) -> String {
    let is_internal = name.contains(':') || matches!(name, "stdio" | "loopback");
    format!("{}{name}", if is_internal { "" } else { NAME })
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a text is the type of an attribute in RFC 4514: a short name or a dotted number.
fn is_attribute_type(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_of_each_kind_is_read() {
        let digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        let token = format!("token:{digest}");
        for (name, owner, id) in [
            ("alice", OwnerName::Name("alice"), "name:alice"),
            ("name:stdio", OwnerName::Name("stdio"), "name:stdio"),
            ("name:team:bob", OwnerName::Name("team:bob"), "name:team:bob"),
            ("stdio", OwnerName::Stdio, "stdio"),
            ("loopback", OwnerName::Loopback, "loopback"),
            (&token, OwnerName::Token(digest), &token),
            ("certificate:CN=a,O=Acme", OwnerName::Certificate("CN=a,O=Acme"), "certificate:CN=a,O=Acme"),
            ("certificate:2.5.4.3=a", OwnerName::Certificate("2.5.4.3=a"), "certificate:2.5.4.3=a"),
            (
                "oauth:https://id.example carol c",
                OwnerName::AccessToken { issuer: "https://id.example", subject: "carol c" },
                "oauth:https://id.example carol c",
            ),
        ] {
            assert_eq!((OwnerName::parse(name), owner_id(name).as_str()), (Ok(owner), id), "{name}");
        }
    }

    #[test]
    fn name_that_no_caller_can_have_is_refused_with_its_form() {
        for (name, form) in [
            ("token:abc", "`token:DIGEST`"),
            ("token:9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08", "`token:DIGEST`"),
            ("certificate:garbage", "`certificate:SUBJECT`"),
            ("certificate:=a", "`certificate:SUBJECT`"),
            ("oauth:https://x.example", "`oauth:ISSUER SUBJECT`"),
            ("oauth: carol", "`oauth:ISSUER SUBJECT`"),
            ("oauth:https://x.example ", "`oauth:ISSUER SUBJECT`"),
            ("name:", "`name:NAME`"),
            ("ldap:alice", "begins with"),
        ] {
            assert!(OwnerName::parse(name).is_err_and(|why| why.contains(form)), "{name}");
        }
    }
}
