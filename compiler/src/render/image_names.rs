//! Names and paths of a container image: labels, and where the files of a config are.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Folder of the binary in the image. Relative paths of the config start there.
pub(super) const HOME: &str = "/app";

/// Returns a name that is valid in DNS and in image registries: lower-case letters, digits and single hyphens, at most `most`
/// characters.
pub(super) fn label(name: &str, most: usize) -> String {
    let words: Vec<String> =
        name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect();
    let label: String = words.join("-").chars().take(most).collect();
    // The name of a Kubernetes service starts with a letter.
    match label.trim_end_matches('-') {
        "" => "deployment".to_owned(),
        label if label.starts_with(|c: char| c.is_ascii_digit()) => format!("d-{label}"),
        label => label.to_owned(),
    }
}

/// Returns `name`, with a number if it is taken.
pub(super) fn unused_name(taken: &BTreeMap<String, String>, name: &str) -> String {
    let mut free = name.to_owned();
    let mut number = 2;
    while taken.contains_key(&free) {
        free = format!("{name}-{number}");
        number += 1;
    }
    free
}

/// Resolves a path of the config to an absolute path in the image, without `.` and `..`.
pub(super) fn path_in_image(path: &str) -> String {
    let mut absolute = PathBuf::new();
    for part in Path::new(HOME).join(path).components() {
        match part {
            Component::ParentDir => {
                absolute.pop();
            }
            Component::CurDir => {}
            part => absolute.push(part),
        }
    }
    absolute.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_dns_labels() {
        for (name, expected) in [
            ("quickstart", "quickstart"),
            ("My Clinic_2", "my-clinic-2"),
            ("9 lives", "d-9-lives"),
            ("🙂", "deployment"),
            ("a--b-", "a-b"),
        ] {
            assert_eq!(label(name, 50), expected);
        }
        assert_eq!(label("abc-def", 4), "abc");
    }

    #[test]
    fn secrets_are_mounted_at_the_paths_that_the_server_reads() {
        for (path, expected) in [
            ("token.txt", "/app/token.txt"),
            ("./s/../t", "/app/t"),
            ("../../etc/x", "/etc/x"),
            ("/run/secrets/t", "/run/secrets/t"),
        ] {
            assert_eq!(path_in_image(path), expected);
        }
    }
}
