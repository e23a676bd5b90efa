//! Tokens of HTTP: names of methods, headers and cookies (RFC 9110, section 5.6.2).

/// Whether a text is a token.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_token_char)
}

/// Whether a character can be part of a token.
pub(crate) fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}
