//! The answer of an authorization server that a browser brings to the redirect URI (RFC 6749, section 4.1.2, and RFC 9207).

use std::fmt;

use url::Url;

/// The path of the redirect URI.
pub const PATH: &str = "/callback";
/// Maximum characters of an error that are shown.
const MAX_SHOWN: usize = 300;

/// What an answer must have.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    /// The `state` of the request.
    pub(crate) state: String,
    /// The issuer that was asked.
    pub(crate) issuer: String,
    /// Whether the issuer declares that its answers have `iss`.
    pub(crate) requires_iss: bool,
}

/// Why an answer is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectError {
    /// The path is not that of the redirect URI, as of a browser that asks for an icon.
    OtherPath,
    /// There is no `state`, or not exactly that of the request. Any page can send such an answer, so that the login continues.
    OtherState,
    /// The answer comes from another issuer, or does not name its issuer.
    OtherIssuer,
    /// A parameter occurs twice.
    Repeated,
    /// There is neither a code nor an error.
    NoCode,
    /// The authorization server has refused the request.
    Refused(String),
}

impl RedirectError {
    /// Whether the answer does not belong to the login, which waits for another one.
    pub fn is_foreign(&self) -> bool {
        matches!(self, RedirectError::OtherPath | RedirectError::OtherState)
    }
}

impl fmt::Display for RedirectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RedirectError::OtherPath => "there is nothing at this path",
            RedirectError::OtherState => "the answer does not belong to this login (parameter `state`)",
            RedirectError::OtherIssuer => "the answer is not from the issuer of this login (parameter `iss`)",
            RedirectError::Repeated => "the answer has a parameter twice",
            RedirectError::NoCode => "the answer has no code",
            RedirectError::Refused(why) => return write!(f, "the authorization server refused the login: {why}"),
        })
    }
}

impl std::error::Error for RedirectError {}

impl Expected {
    /// Returns the code of the answer at a request target, such as `/callback?code=…`.
    pub(crate) fn read(&self, target: &str) -> Result<String, RedirectError> {
        // The origin is not part of a request target.
        let url = Url::parse("http://127.0.0.1").and_then(|base| base.join(target)).map_err(|_| RedirectError::OtherPath)?;
        if url.path() != PATH || !target.starts_with(PATH) {
            return Err(RedirectError::OtherPath);
        }
        let value = |name: &str| {
            let mut values = url.query_pairs().filter(|(key, _)| key == name).map(|(_, value)| value.into_owned());
            let first = values.next();
            if values.next().is_some() { Err(RedirectError::Repeated) } else { Ok(first) }
        };
        if value("state").ok().flatten().is_none_or(|state| state != self.state) {
            return Err(RedirectError::OtherState);
        }
        // The issuer is checked before an error is believed (RFC 9207, section 2.4).
        let is_issuer = match value("iss")? {
            Some(issuer) => issuer == self.issuer,
            None => !self.requires_iss,
        };
        if !is_issuer {
            return Err(RedirectError::OtherIssuer);
        }
        if let Some(error) = value("error")? {
            let description = value("error_description")?.map(|text| format!(" ({text})")).unwrap_or_default();
            let shown = format!("{error}{description}");
            return Err(RedirectError::Refused(shown.chars().filter(|c| !c.is_control()).take(MAX_SHOWN).collect()));
        }
        value("code")?.filter(|code| !code.is_empty()).ok_or(RedirectError::NoCode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_answers_are_refused() {
        let with = |requires_iss| Expected { state: "s-1".into(), issuer: "https://id.example".into(), requires_iss };
        let iss = "iss=https%3A%2F%2Fid.example";
        for (target, requires_iss, expected) in [
            (format!("/callback?code=c&state=s-1&{iss}"), true, Ok("c")),
            ("/callback?code=c&state=s-1".to_owned(), false, Ok("c")),
            ("/callback?code=c&state=s-1".to_owned(), true, Err(RedirectError::OtherIssuer)),
            ("/callback?code=c&state=s-1&iss=https://evil.example".to_owned(), false, Err(RedirectError::OtherIssuer)),
            ("/callback?code=c&state=s-1&iss=https://id.example/".to_owned(), false, Err(RedirectError::OtherIssuer)),
            ("/callback?error=x&state=s-1&iss=https://evil.example".to_owned(), false, Err(RedirectError::OtherIssuer)),
            ("/callback?code=c&state=s-2".to_owned(), false, Err(RedirectError::OtherState)),
            ("/callback?code=c&state=".to_owned(), false, Err(RedirectError::OtherState)),
            ("/callback?code=c&state=s-1&state=s-1".to_owned(), false, Err(RedirectError::OtherState)),
            ("/callback?code=c".to_owned(), false, Err(RedirectError::OtherState)),
            ("/callback?state=s-1".to_owned(), false, Err(RedirectError::NoCode)),
            ("/callback?code=&state=s-1".to_owned(), false, Err(RedirectError::NoCode)),
            ("/callback?code=c&code=d&state=s-1".to_owned(), false, Err(RedirectError::Repeated)),
            ("/callback?error=access_denied&state=s-1".to_owned(), false, Err(RedirectError::Refused("access_denied".into()))),
            ("/favicon.ico".to_owned(), false, Err(RedirectError::OtherPath)),
            ("/callback/?code=c&state=s-1".to_owned(), false, Err(RedirectError::OtherPath)),
            ("/x/../callback?code=c&state=s-1".to_owned(), false, Err(RedirectError::OtherPath)),
            ("//evil.example/callback?code=c&state=s-1".to_owned(), false, Err(RedirectError::OtherPath)),
            ("http://evil.example/callback?code=c&state=s-1".to_owned(), false, Err(RedirectError::OtherPath)),
        ] {
            assert_eq!(with(requires_iss).read(&target), expected.map(str::to_owned), "{target}");
        }
    }
}
