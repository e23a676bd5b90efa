//! The credentials that calls of an operation need, as its document declares them.

use crate::json::Json;

/// The credentials that calls of an operation need, and those that the entry sends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Security {
    /// The alternatives, each with all schemes that it needs. An empty alternative needs none. `None` if the document declares
    /// nothing.
    pub any_of: Option<Vec<Vec<Scheme>>>,
    /// Parameters of the operation that the entry sends: place and name.
    pub sent: Vec<(String, String)>,
}

/// A use of one security scheme of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheme {
    /// The name in `securitySchemes`. A lock file has it as `scheme` and the kind as `type`; in `auth` of a config, `scheme` is the
    /// kind.
    pub name: String,
    /// The kind of the scheme.
    pub kind: SchemeKind,
    /// The scopes or roles that the credential must have.
    pub scopes: Vec<String>,
}

/// The kinds of security schemes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SchemeKind {
    /// A secret in a header, query parameter or cookie.
    ApiKey {
        /// `in`
        place: String,
        /// `name`
        name: String,
    },
    /// `Authorization: Bearer`
    Bearer,
    /// A bearer token that an OAuth 2.0 flow gives.
    OAuth2,
    /// A bearer token that OpenID Connect gives.
    OpenIdConnect,
    /// `Authorization: Basic`
    Basic,
    /// A client certificate.
    MutualTls,
    /// A scheme that the client does not support, in words of its document.
    Other(String),
}

impl SchemeKind {
    /// Whether a bearer token satisfies the scheme.
    pub fn is_bearer(&self) -> bool {
        matches!(self, SchemeKind::Bearer | SchemeKind::OAuth2 | SchemeKind::OpenIdConnect)
    }

    /// Returns the member that says in the lock file which kind this is. Words of a document have a key of their own, so that
    /// they cannot be mistaken for one of the names.
    fn member(&self) -> (&'static str, &str) {
        let name = match self {
            SchemeKind::ApiKey { .. } => "api_key",
            SchemeKind::Bearer => "bearer",
            SchemeKind::OAuth2 => "oauth2",
            SchemeKind::OpenIdConnect => "openIdConnect",
            SchemeKind::Basic => "basic",
            SchemeKind::MutualTls => "mtls",
            SchemeKind::Other(words) => return ("unsupported", words),
        };
        ("type", name)
    }
}

impl Security {
    /// Whether nothing is known and nothing is sent.
    pub fn is_empty(&self) -> bool {
        self.any_of.is_none() && self.sent.is_empty()
    }

    /// Returns the form in the lock file.
    pub fn to_json(&self) -> Json {
        let mut out = Json::object();
        if let Some(any_of) = &self.any_of {
            let all_of = |schemes: &Vec<Scheme>| Json::Array(schemes.iter().map(Scheme::to_json).collect());
            out.set("any_of", Json::Array(any_of.iter().map(all_of).collect()));
        }
        if !self.sent.is_empty() {
            out.set("sent", Json::Array(self.sent.iter().map(|(place, name)| parameter(place, name)).collect()));
        }
        out
    }

    /// Reads the form in the lock file. `None` if it has another shape.
    pub fn from_json(json: &Json) -> Option<Security> {
        let Json::Object(_) = json else { return None };
        let alternative = |schemes: &Json| schemes.elements().iter().map(Scheme::from_json).collect::<Option<Vec<Scheme>>>();
        let any_of = match json.get("any_of") {
            None => None,
            Some(Json::Array(any_of)) if !any_of.is_empty() => Some(any_of.iter().map(alternative).collect::<Option<_>>()?),
            Some(_) => return None,
        };
        let sent = json.get("sent").map(Json::elements).unwrap_or_default();
        let sent = sent.iter().map(|sent| Some((text(sent, "in")?, text(sent, "name")?))).collect::<Option<_>>()?;
        Some(Security { any_of, sent })
    }
}

impl Scheme {
    fn to_json(&self) -> Json {
        let mut out = match &self.kind {
            SchemeKind::ApiKey { place, name } => parameter(place, name),
            _ => Json::object(),
        };
        out.set("scheme", Json::string(&*self.name));
        let (key, kind) = self.kind.member();
        out.set(key, Json::string(kind));
        if !self.scopes.is_empty() {
            out.set("scopes", Json::Array(self.scopes.iter().map(|scope| Json::string(&**scope)).collect()));
        }
        out
    }

    fn from_json(json: &Json) -> Option<Scheme> {
        let kind = match (text(json, "unsupported"), &*text(json, "type").unwrap_or_default()) {
            (Some(words), _) => SchemeKind::Other(words),
            (None, "api_key") => SchemeKind::ApiKey { place: text(json, "in")?, name: text(json, "name")? },
            (None, "bearer") => SchemeKind::Bearer,
            (None, "oauth2") => SchemeKind::OAuth2,
            (None, "openIdConnect") => SchemeKind::OpenIdConnect,
            (None, "basic") => SchemeKind::Basic,
            (None, "mtls") => SchemeKind::MutualTls,
            (None, "") => return None,
            // Older compilers wrote the words of an unsupported scheme as `type`.
            (None, words) => SchemeKind::Other(words.to_owned()),
        };
        let scopes = json.get("scopes").map(Json::elements).unwrap_or_default();
        let scopes = scopes.iter().map(|scope| scope.as_str().map(str::to_owned)).collect::<Option<_>>()?;
        Some(Scheme { name: text(json, "scheme")?, kind, scopes })
    }
}

fn text(json: &Json, key: &str) -> Option<String> {
    json.get(key)?.as_str().map(str::to_owned)
}

fn parameter(place: &str, name: &str) -> Json {
    Json::object().with("in", Json::string(place)).with("name", Json::string(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_security_scheme_round_trips_through_the_lock_file() {
        let words = ["basic", "bearer", "mtls", "api_key", "oauth2", "openIdConnect", "unsupported", "http digest", ""];
        let unsupported = words.map(|words| SchemeKind::Other(words.to_owned()));
        let key = SchemeKind::ApiKey { place: "query".to_owned(), name: "key".to_owned() };
        let supported =
            [key, SchemeKind::Bearer, SchemeKind::OAuth2, SchemeKind::OpenIdConnect, SchemeKind::Basic, SchemeKind::MutualTls];
        for kind in unsupported.into_iter().chain(supported) {
            let scheme = Scheme { name: "own".to_owned(), kind, scopes: vec!["read".to_owned()] };
            let security = Security { any_of: Some(vec![vec![scheme], Vec::new()]), sent: Vec::new() };
            assert_eq!(Security::from_json(&security.to_json()), Some(security.clone()), "{security:?}");
        }
    }
}
