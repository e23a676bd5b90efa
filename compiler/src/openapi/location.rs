//! Names the files of a document: by their path in the folder of a `schema_file`, or by their URL on the origin of a
//! `schema_url`.

use url::Url;

/// Where the files of a document are.
#[derive(Debug, Clone)]
pub(super) enum Location {
    /// In a folder. The name of a file is its path in that folder, with `/` between its parts.
    Folder,
    /// On the origin of a URL. The name of a file is its URL.
    Origin(Url),
}

/// The file that a `$ref` names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The file that contains the `$ref`.
    Same,
    /// The file with this name.
    File(String),
}

impl Location {
    /// Returns the file that `reference` names, which is a `$ref` without its fragment. The `$ref` is in the file `from`, whose
    /// `$self` is `identity`. Returns `None` for a file outside of the folder or of the origin.
    pub(super) fn target(&self, from: &str, identity: Option<&Url>, reference: &str) -> Option<Target> {
        if reference.is_empty() {
            return Some(Target::Same);
        }
        // References are relative to `$self` (OpenAPI 3.2, section 4.1.2.2), and the files are where they are relative to each
        // other.
        let absolute = identity.and_then(|identity| Some((identity, identity.join(reference).ok()?)));
        if absolute.as_ref().is_some_and(|(identity, target)| *identity == target) {
            return Some(Target::Same);
        }
        let relative = absolute.and_then(|(identity, target)| identity.make_relative(&target));
        let reference = relative.as_deref().unwrap_or(reference);
        let name = match self {
            Location::Folder => in_folder(from, reference),
            Location::Origin(origin) => on_origin(origin, from, reference),
        }?;
        Some(if name == from { Target::Same } else { Target::File(name) })
    }
}

/// Returns the path of a file in the folder, without `.` and `..`.
fn in_folder(from: &str, reference: &str) -> Option<String> {
    let path = percent_decoded(reference);
    let first = path.split('/').next().unwrap_or_default();
    // A colon in the first part is that of a scheme or of a drive.
    if path.starts_with('/') || first.contains(':') || path.contains(['\\', '\0']) {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// Returns the URL of a file on the origin.
fn on_origin(origin: &Url, from: &str, reference: &str) -> Option<String> {
    let url = Url::parse(from).ok()?.join(reference).ok()?;
    let is_plain = url.username().is_empty() && url.password().is_none();
    (is_plain && url.origin() == origin.origin()).then(|| name_of_url(url))
}

/// Returns the name of the file at a URL, as the references of all files give it.
pub fn name_of_url(mut url: Url) -> String {
    url.set_fragment(None);
    url.into()
}

/// Decodes percent-encoding. A text is returned unchanged if it does not encode UTF-8.
pub(super) fn percent_decoded(segment: &str) -> String {
    if segment.contains('%') {
        let bytes = segment.as_bytes();
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let hex = segment.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
            match (byte, hex) {
                (b'%', Some(value)) => {
                    out.push(value);
                    at += 3;
                }
                (byte, _) => {
                    out.push(*byte);
                    at += 1;
                }
            }
        }
        String::from_utf8(out).unwrap_or_else(|_| segment.to_owned())
    } else {
        segment.to_owned()
    }
}

/// Whether the name of a scheme in `security` can only be a URI. Components cannot have such a name.
pub(super) fn is_scheme_uri(name: &str) -> bool {
    name.contains(['#', '/', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_outside_of_the_folder_are_refused() {
        for (from, reference, expected) in [
            ("api.yaml", "pets.yaml", Some("pets.yaml")),
            ("api.yaml", "./paths/pets.yaml", Some("paths/pets.yaml")),
            ("paths/pets.yaml", "../schemas/./pet.yaml", Some("schemas/pet.yaml")),
            ("paths/pets.yaml", "a%20b.yaml", Some("paths/a b.yaml")),
            ("a/b/c.yaml", "../../d.yaml", Some("d.yaml")),
            ("api.yaml", "../pets.yaml", None),
            ("paths/pets.yaml", "../../pets.yaml", None),
            ("paths/pets.yaml", "%2e%2e/%2e%2e/pets.yaml", None),
            ("paths/pets.yaml", "..%2f..%2fpets.yaml", None),
            ("api.yaml", "/etc/passwd", None),
            ("api.yaml", "file:///etc/passwd", None),
            ("api.yaml", "C:/pets.yaml", None),
            ("api.yaml", "..\\pets.yaml", None),
            ("api.yaml", "https://example.com/pets.yaml", None),
            ("api.yaml", "//example.com/pets.yaml", None),
            ("api.yaml", ".", None),
        ] {
            let expected = expected.map(|name| Target::File(name.to_owned()));
            assert_eq!(Location::Folder.target(from, None, reference), expected, "{from} {reference}");
        }
        assert_eq!(Location::Folder.target("paths/a.yaml", None, "../paths/a.yaml"), Some(Target::Same));
    }

    #[test]
    fn references_to_other_origins_are_refused() {
        let root = "https://example.com/v1/api.yaml";
        let location = Location::Origin(Url::parse(root).unwrap());
        for (reference, expected) in [
            ("pets.yaml", Some("https://example.com/v1/pets.yaml")),
            ("/shared/pets.yaml", Some("https://example.com/shared/pets.yaml")),
            ("../../pets.yaml?v=2", Some("https://example.com/pets.yaml?v=2")),
            ("https://EXAMPLE.com:443/pets.yaml", Some("https://example.com/pets.yaml")),
            ("http://example.com/pets.yaml", None),
            ("https://example.com:8443/pets.yaml", None),
            ("https://user@example.com/pets.yaml", None),
            ("//example.org/pets.yaml", None),
            ("file:///etc/passwd", None),
        ] {
            let expected = expected.map(|name| Target::File(name.to_owned()));
            assert_eq!(location.target(root, None, reference), expected, "{reference}");
        }
    }

    #[test]
    fn references_are_resolved_against_the_identity_of_their_file() {
        let identity = Url::parse("https://example.com/apis/shop").unwrap();
        for (reference, expected) in [
            ("https://example.com/apis/shop", Some(Target::Same)),
            ("shop", Some(Target::Same)),
            ("https://example.com/apis/pets.yaml", Some(Target::File("pets.yaml".to_owned()))),
            ("parts/pets.yaml", Some(Target::File("parts/pets.yaml".to_owned()))),
            ("https://example.com/pets.yaml", None),
            ("https://example.org/apis/pets.yaml", None),
        ] {
            assert_eq!(Location::Folder.target("api.yaml", Some(&identity), reference), expected, "{reference}");
        }
    }
}
