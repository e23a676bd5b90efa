//! Where an authorization server publishes its metadata.

use url::Url;

/// Returns the URLs at which the metadata of an issuer can be, in the order in which MCP tries them (revision 2025-11-25, "Authorization
/// Server Metadata Discovery"): that of RFC 8414, and those of OpenID Connect with the path of the issuer at the end and at the beginning.
pub fn metadata_urls(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let at = |path: String| {
        let mut url = issuer.clone();
        url.set_path(&path);
        url.set_query(None);
        url
    };
    let mut urls = vec![at(format!("/.well-known/oauth-authorization-server{path}"))];
    if !path.is_empty() {
        urls.push(at(format!("/.well-known/openid-configuration{path}")));
    }
    urls.push(at(format!("{path}/.well-known/openid-configuration")));
    urls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_the_issuer_is_at_the_end_and_at_the_beginning() {
        let urls = |issuer| metadata_urls(&Url::parse(issuer).unwrap()).into_iter().map(String::from).collect::<Vec<_>>();
        let expected =
            ["https://id.example/.well-known/oauth-authorization-server", "https://id.example/.well-known/openid-configuration"];
        assert_eq!(urls("https://id.example"), expected);
        assert_eq!(urls("https://id.example/"), expected);
        let expected = [
            "https://id.example/.well-known/oauth-authorization-server/a/b",
            "https://id.example/.well-known/openid-configuration/a/b",
            "https://id.example/a/b/.well-known/openid-configuration",
        ];
        assert_eq!(urls("https://id.example/a/b/?x=1"), expected);
    }
}
