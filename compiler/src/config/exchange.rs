//! Reads the keys of the grants that exchange a token of a caller or of the platform.

use ptc_catalog::{ClientAuth, GrantType, IdentityProvider, TokenType};

use super::credentials::Bindings;
use super::fields::{Fields, Subject};
use super::reader::ConfigReader;
use super::{auth, keys, oauth};
use crate::diag::{Code, Diagnostic};

/// The keys that only the grants `token_exchange` and `jwt_bearer` have.
pub(super) struct Exchange {
    /// The type of the token that is exchanged.
    pub(super) subject_type: TokenType,
    /// Where an assertion is requested.
    pub(super) identity_provider: Option<IdentityProvider<String>>,
}

/// Whether a grant exchanges a token.
pub(super) fn is_exchange(grant: GrantType) -> bool {
    matches!(grant, GrantType::TokenExchange | GrantType::JwtBearer)
}

/// Reads the keys, and reports those that have no effect with the grant of the element.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    subject: &Subject,
    fields: &Fields<'_>,
    bindings: &Bindings,
    grant: Option<GrantType>,
) -> Exchange {
    let has_assertion = grant.is_none_or(|grant| grant == GrantType::JwtBearer);
    let provider = fields.member("identity_provider").filter(|_| has_assertion);
    let is_exchanged = grant == Some(GrantType::TokenExchange) || provider.is_some();
    for (name, has_effect, needed) in [
        ("subject", grant.is_none_or(is_exchange), "the grants `token_exchange` and `jwt_bearer`"),
        ("identity_provider", has_assertion, "the grant `jwt_bearer`"),
        (
            "subject_token_type",
            grant.is_none() || is_exchanged,
            "a token exchange: the grant `token_exchange`, or `identity_provider`",
        ),
        ("audience", grant.is_none() || is_exchanged, "a token exchange: the grant `token_exchange`, or `identity_provider`"),
    ] {
        if !has_effect {
            let hint = match (name, grant) {
                ("audience", Some(GrantType::ClientCredentials)) => {
                    "remove it; `resource` names the service that the token is for"
                }
                _ => "remove it",
            };
            fields.fault(reader, name, format!("`{name}` is a part of {needed}"), "without effect", hint);
        }
    }
    check_subject(reader, fields, bindings);
    let identity_provider = provider.and_then(|member| {
        let subject = Subject { name: format!("`identity_provider` of {}", subject.name), place: reader.key_place(member) };
        let inner = Fields::read(reader, &subject, &keys::IDENTITY_PROVIDER, &[], &member.value)?;
        let has = |name: &str| fields.member(name).is_some() || fields.unfit(name).is_some();
        if !has("issuer") && !has("audience") {
            let message = "the assertion of `identity_provider` is for one authorization server, which has no name here";
            let hint = "write its `issuer`, or beside `token_url` its `audience`";
            fields.fault(reader, "identity_provider", message, "", hint);
        }
        read_provider(reader, &subject, &inner, bindings)
    });
    let subject_type = fields.text("subject_token_type").and_then(|name| TokenType::named(&name));
    Exchange { subject_type: subject_type.unwrap_or(TokenType::AccessToken), identity_provider }
}

/// Reports a token that is not in a file: it is replaced from time to time, and is read again for each request.
fn check_subject(reader: &mut ConfigReader<'_>, fields: &Fields<'_>, bindings: &Bindings) {
    let Some(binding) = fields.spanned(reader, "subject") else { return };
    auth::check_binding(reader, "oauth2", &binding, bindings, binding.place.clone(), "change the credential's `scheme_hint`");
    let message = "`subject` is read again for each request, and the credential is not a file";
    oauth::check_file(reader, bindings, &binding.value, binding.place, message);
}

fn read_provider(
    reader: &mut ConfigReader<'_>,
    subject: &Subject,
    fields: &Fields<'_>,
    bindings: &Bindings,
) -> Option<IdentityProvider<String>> {
    let has = |name: &str| fields.member(name).is_some() || fields.unfit(name).is_some();
    if !has("token_url") && !has("issuer") {
        let diagnostic = Diagnostic::new(Code::MissingKey, format!("{} lacks the key `issuer`", subject.name));
        let hint = "`issuer` is the URL of the identity provider, whose metadata has the URL that exchanges tokens; `token_url` in its place is \
                    that URL";
        reader.report(diagnostic.at(subject.place.clone(), "`issuer` or `token_url` is missing").hint(hint));
    }
    if let Some(binding) = fields.spanned(reader, "binding") {
        auth::check_binding(reader, "oauth2", &binding, bindings, binding.place.clone(), "change the credential's `scheme_hint`");
    }
    let client_auth = oauth::client_auth(fields, false);
    oauth::check_client(reader, subject, fields, client_auth);
    oauth::check_assertion(reader, fields, bindings, client_auth, has("token_url"));
    oauth::check_issuer(reader, fields);
    oauth::check_client_id(reader, fields);
    Some(IdentityProvider {
        token_url: fields.text("token_url").unwrap_or_default(),
        client_id: fields.text("client_id")?,
        client_auth: client_auth.unwrap_or(ClientAuth::None),
        binding: fields.text("binding").unwrap_or_default(),
        key_id: fields.text("key_id").unwrap_or_default(),
        issuer: fields.text("issuer").unwrap_or_default(),
    })
}
