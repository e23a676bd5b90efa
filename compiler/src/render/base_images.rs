//! The images from which the stages of a `Dockerfile` start, and references that pin them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A stage of the `Dockerfile`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Compiles the binary.
    Build,
    /// Provides uv, if an upstream needs it.
    Uv,
    /// Runs the server.
    Runtime,
}

impl Stage {
    /// All stages with their names, in the order of the file.
    pub const ALL: [(Stage, &'static str); 3] = [(Stage::Build, "build"), (Stage::Uv, "uv"), (Stage::Runtime, "runtime")];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(stage, _)| *stage == self).map_or("", |(_, name)| name)
    }
}

/// A stage with the reference of its image, which includes a digest: `build=rust:1.91-slim-trixie@sha256:…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseImage {
    stage: Stage,
    reference: String,
}

impl FromStr for BaseImage {
    type Err = String;

    fn from_str(text: &str) -> Result<BaseImage, String> {
        let expected =
            "expected STAGE=IMAGE@sha256:DIGEST, such as `build=rust:slim@sha256:…`, where STAGE is build, uv or runtime";
        let (stage, reference) = text.split_once('=').ok_or(expected)?;
        let stage = Stage::ALL.iter().find(|(_, name)| *name == stage).map(|(stage, _)| *stage).ok_or(expected)?;
        let (name, digest) = reference.split_once("@sha256:").ok_or(expected)?;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/:".contains(&byte));
        let is_digest = digest.len() == 64 && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_name || name.starts_with(['-', ':', '/']) {
            return Err(format!("`{name}` is not the name of an image: {expected}"));
        }
        if !is_digest {
            return Err("the digest of an image has 64 hexadecimal digits after `sha256:`".to_owned());
        }
        Ok(BaseImage { stage, reference: reference.to_owned() })
    }
}

/// The images of a `Dockerfile`: a tag for each stage, or the reference that replaces it.
#[derive(Debug, Clone)]
pub struct BaseImages {
    stages: BTreeMap<Stage, String>,
    pinned: BTreeMap<Stage, String>,
}

/// A pinned image for a stage that the `Dockerfile` does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoSuchStage(pub Stage);

impl fmt::Display for NoSuchStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`--base-image {0}=…`: the Dockerfile of this config has no stage `{0}`; leave the option out", self.0.name())
    }
}

impl BaseImages {
    /// Replaces the tags of stages by pinned images. The last image of a stage counts.
    pub(super) fn new(tags: impl IntoIterator<Item = (Stage, &'static str)>, pinned: &[BaseImage]) -> Result<Self, NoSuchStage> {
        let stages: BTreeMap<Stage, String> = tags.into_iter().map(|(stage, tag)| (stage, tag.to_owned())).collect();
        if let Some(image) = pinned.iter().find(|image| !stages.contains_key(&image.stage)) {
            return Err(NoSuchStage(image.stage));
        }
        let pinned = pinned.iter().map(|image| (image.stage, image.reference.clone())).collect();
        Ok(BaseImages { stages, pinned })
    }

    /// Returns the image of a stage, if there is such a stage.
    pub(super) fn get(&self, stage: Stage) -> Option<&str> {
        self.pinned.get(&stage).or_else(|| self.stages.get(&stage)).map(String::as_str)
    }

    /// Iterates over the stages that start from a tag, with the tag.
    pub fn unpinned(&self) -> impl Iterator<Item = (Stage, &str)> {
        self.stages.iter().filter(|(stage, _)| !self.pinned.contains_key(stage)).map(|(stage, tag)| (*stage, tag.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn reference_needs_stage_name_and_digest() {
        let parse = |text: &str| text.parse::<BaseImage>();
        let image = parse(&format!("build=registry.example:5000/rust:1.91@sha256:{DIGEST}")).expect("a reference");
        assert_eq!((image.stage, image.reference.starts_with("registry.example:5000/rust:1.91@sha256:")), (Stage::Build, true));
        for wrong in [
            format!("rust@sha256:{DIGEST}"),
            format!("first=rust@sha256:{DIGEST}"),
            "build=rust:1.91".to_owned(),
            format!("build=@sha256:{DIGEST}"),
            format!("build=a b@sha256:{DIGEST}"),
            format!("build=rust\nRUN evil@sha256:{DIGEST}"),
            format!("build=--platform/x@sha256:{DIGEST}"),
            format!("build=rust@sha256:{DIGEST}0"),
            format!("build=rust@sha256:{}", DIGEST.to_uppercase()),
        ] {
            assert!(parse(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn pinned_image_replaces_the_tag_of_its_stage() {
        let pinned = [format!("runtime=debian@sha256:{DIGEST}").parse().expect("a reference")];
        let images = BaseImages::new([(Stage::Build, "rust:1"), (Stage::Runtime, "debian:13")], &pinned).expect("both stages");
        assert_eq!(images.get(Stage::Runtime), Some(&*format!("debian@sha256:{DIGEST}")));
        assert_eq!((images.get(Stage::Build), images.get(Stage::Uv)), (Some("rust:1"), None));
        assert_eq!(images.unpinned().collect::<Vec<_>>(), [(Stage::Build, "rust:1")]);
        let error = BaseImages::new([(Stage::Build, "rust:1")], &pinned).expect_err("no such stage");
        assert_eq!(error, NoSuchStage(Stage::Runtime));
    }
}
