//! Writes a deployment into an image, and reads it back.
//!
//! An image begins with a head, which is read when the program starts: what the deployment contains apart from tools, and where the
//! parts are. Each part follows: the tools of one upstream, which are read when they are first needed, and the search index, which
//! is read in place.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `ptc-img1` |
//! | 32 | SHA-256 of the head |
//! | 4 | length of the head, little endian |
//! | … | SHA-256 of the sources of the runtime as text, and the head, as `postcard` writes them |
//! | … | the parts |
//!
//! The format has no names of fields, so an image can only be read by a runtime with the same sources. The head has their digest.

use std::fmt;
use std::sync::OnceLock;

use ptc_catalog::{Binding, Catalog, Deferred, Deployment, Policy, StoredProgram, Tool, ToolFacts, Tools, Transport, Upstream};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The name of the section in an executable. Names in Mach-O have at most 16 bytes.
pub const SECTION: &str = "ptc_catalog";

/// The first bytes of an image.
const MAGIC: &[u8; 8] = b"ptc-img1";

/// The length of a SHA-256.
const DIGEST_BYTES: usize = 32;

/// The length of what precedes the head.
const PREFIX_BYTES: usize = MAGIC.len() + DIGEST_BYTES + 4;

/// Why an image cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageError {
    /// The first bytes are not those of an image.
    NotAnImage,
    /// The content has another digest than the image says: the file is damaged.
    DigestMismatch,
    /// It was made for a runtime with other sources.
    OtherRuntime,
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ImageError::NotAnImage => "the section of the catalog has another format",
            ImageError::DigestMismatch => "the catalog does not have the digest that was computed when it was added",
            ImageError::OtherRuntime => "the catalog was made for a runtime with other sources",
        })
    }
}

impl std::error::Error for ImageError {}

/// The head. Lists are slices when it is written and vectors when it is read.
#[derive(Serialize, Deserialize)]
struct Head<Credentials, Programs, Rules> {
    name: &'static str,
    server_name: &'static str,
    compiler: &'static str,
    config_digest: &'static str,
    catalog_digest: &'static str,
    credentials: Credentials,
    programs: Programs,
    policy: Option<Rules>,
    upstreams: Vec<Entry>,
    search_index: Part,
}

/// An upstream without its tools.
#[derive(Serialize, Deserialize)]
struct Entry {
    name: &'static str,
    description: &'static str,
    transport: Transport,
    /// Number of tools.
    count: usize,
    facts: ToolFacts,
    tools: Part,
}

/// The place of a part, counted from the end of the head.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Part {
    start: usize,
    length: usize,
    digest: [u8; DIGEST_BYTES],
}

impl Part {
    /// Appends the bytes of a part.
    fn append(bytes: &[u8], parts: &mut Vec<u8>) -> Part {
        let start = parts.len();
        parts.extend_from_slice(bytes);
        Part { start, length: bytes.len(), digest: Sha256::digest(bytes).into() }
    }

    fn slice(self, parts: &'static [u8]) -> Result<&'static [u8], ImageError> {
        let end = self.start.checked_add(self.length).ok_or(ImageError::DigestMismatch)?;
        parts.get(self.start..end).ok_or(ImageError::DigestMismatch)
    }
}

/// Returns the image of a deployment for the runtime whose sources have the digest `runtime`. Equal deployments give equal bytes.
///
/// # Panics
///
/// Never for a deployment whose image is smaller than 4 GiB.
#[expect(clippy::expect_used, reason = "a vector grows, and each type of a deployment has a known length")]
pub fn encode(deployment: &Deployment, runtime: &str) -> Vec<u8> {
    let mut parts = Vec::new();
    let catalog = deployment.catalog;
    let entry = |upstream: &Upstream| {
        let tools = postcard::to_stdvec(upstream.tools.all()).expect("tools can be written");
        Entry {
            name: upstream.name,
            description: upstream.description,
            transport: upstream.transport.clone(),
            count: upstream.tools.len(),
            facts: upstream.tools.facts(),
            tools: Part::append(&tools, &mut parts),
        }
    };
    let head = Head {
        name: deployment.name,
        server_name: deployment.server_name,
        compiler: deployment.compiler,
        config_digest: deployment.config_digest,
        catalog_digest: catalog.digest,
        credentials: deployment.credentials,
        programs: deployment.programs,
        policy: deployment.policy,
        upstreams: catalog.upstreams.iter().map(entry).collect(),
        search_index: Part::append(catalog.search_index, &mut parts),
    };
    let head = postcard::to_stdvec(&(runtime, head)).expect("a deployment can be written");
    let length = u32::try_from(head.len()).expect("the head is small");
    [MAGIC.as_slice(), &Sha256::digest(&head), &length.to_le_bytes(), &head, &parts].concat()
}

/// The deployment of an image.
pub struct Image {
    /// The tables of the runtime.
    pub deployment: &'static Deployment,
    /// Number of bytes of the head with what precedes it.
    head: usize,
    parts: Vec<Part>,
}

impl Image {
    /// Reads the head of an image for a runtime whose sources have the digest `runtime`. Texts stay in the image; lists are
    /// allocated and never freed.
    ///
    /// `damaged` is called when a part that is needed later does not have its digest.
    ///
    /// # Errors
    ///
    /// Returns [`ImageError`] if the bytes are not an image, the head is damaged, or the image belongs to another runtime.
    pub fn read(image: &'static [u8], runtime: &str, damaged: fn(ImageError) -> !) -> Result<Image, ImageError> {
        let rest = image.strip_prefix(MAGIC).ok_or(ImageError::NotAnImage)?;
        let (digest, rest) = rest.split_at_checked(DIGEST_BYTES).ok_or(ImageError::DigestMismatch)?;
        let (length, rest) = rest.split_first_chunk().ok_or(ImageError::DigestMismatch)?;
        let length = u32::from_le_bytes(*length) as usize;
        let (head, parts) = rest.split_at_checked(length).ok_or(ImageError::DigestMismatch)?;
        if Sha256::digest(head).as_slice() != digest {
            return Err(ImageError::DigestMismatch);
        }
        let (made_for, head) = postcard::take_from_bytes::<&str>(head).map_err(|_| ImageError::DigestMismatch)?;
        if made_for != runtime {
            return Err(ImageError::OtherRuntime);
        }
        let head: Head<Vec<Binding>, Vec<StoredProgram>, Policy> =
            postcard::from_bytes(head).map_err(|_| ImageError::DigestMismatch)?;
        let index = head.search_index;
        let all: Vec<Part> = head.upstreams.iter().map(|entry| entry.tools).chain([index]).collect();
        let upstream = |entry: Entry| {
            let bytes = entry.tools.slice(parts)?;
            let (digest, read) = (entry.tools.digest, OnceLock::new());
            let tools = DeferredTools { bytes, digest, count: entry.count, facts: entry.facts, damaged, read };
            let tools = Tools::deferred(Box::leak(Box::new(tools)));
            Ok(Upstream { name: entry.name, description: entry.description, transport: entry.transport, tools })
        };
        let upstreams: Result<Vec<Upstream>, ImageError> = head.upstreams.into_iter().map(upstream).collect();
        let catalog: &'static Catalog = Box::leak(Box::new(Catalog {
            digest: head.catalog_digest,
            upstreams: upstreams?.leak(),
            search_index: index.slice(parts)?,
        }));
        let deployment = Box::leak(Box::new(Deployment {
            name: head.name,
            server_name: head.server_name,
            compiler: head.compiler,
            config_digest: head.config_digest,
            credentials: head.credentials.leak(),
            catalog,
            programs: head.programs.leak(),
            policy: head.policy.map(|policy| &*Box::leak(Box::new(policy))),
        }));
        Ok(Image { deployment, head: PREFIX_BYTES + length, parts: all })
    }

    /// Compares every part with its digest. `read` fills a buffer with the bytes of the image from a position on.
    ///
    /// # Errors
    ///
    /// Returns [`ImageError::DigestMismatch`] if a part has another digest or cannot be read.
    pub fn verify(&self, mut read: impl FnMut(usize, &mut [u8]) -> std::io::Result<()>) -> Result<(), ImageError> {
        let mut buffer = vec![0; 64 * 1024];
        for part in &self.parts {
            let mut digest = Sha256::new();
            let mut done = 0;
            while done < part.length {
                let length = buffer.len().min(part.length - done);
                let chunk = buffer.get_mut(..length).ok_or(ImageError::DigestMismatch)?;
                read(self.head + part.start + done, chunk).map_err(|_| ImageError::DigestMismatch)?;
                digest.update(chunk);
                done += length;
            }
            if digest.finalize().as_slice() != part.digest {
                return Err(ImageError::DigestMismatch);
            }
        }
        Ok(())
    }
}

/// The tools of an upstream in an image.
struct DeferredTools {
    bytes: &'static [u8],
    digest: [u8; DIGEST_BYTES],
    count: usize,
    facts: ToolFacts,
    damaged: fn(ImageError) -> !,
    read: OnceLock<&'static [Tool]>,
}

impl Deferred for DeferredTools {
    fn len(&self) -> usize {
        self.count
    }

    fn facts(&self) -> ToolFacts {
        self.facts
    }

    fn all(&self) -> &'static [Tool] {
        self.read.get_or_init(|| {
            if Sha256::digest(self.bytes).as_slice() != self.digest {
                (self.damaged)(ImageError::DigestMismatch)
            }
            match postcard::from_bytes::<Vec<Tool>>(self.bytes) {
                Ok(tools) if tools.len() == self.count => Box::leak(tools.into_boxed_slice()),
                _ => (self.damaged)(ImageError::DigestMismatch),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use ptc_catalog::{Condition, Grant, McpStdio, PermittedValues, Rule};

    use super::*;

    static DEPLOYMENT: Deployment = Deployment {
        name: "notes",
        compiler: "0.1.0+abc",
        catalog: &Catalog {
            digest: "sha256:00",
            search_index: &[1, 2, 3],
            upstreams: &[Upstream {
                name: "notes",
                description: "Notes – größere auch.",
                transport: Transport::McpStdio(McpStdio::new("notes-server")),
                tools: Tools::table(&[Tool { name: "add", ..Tool::EMPTY }]),
            }],
        },
        policy: Some(&Policy {
            rules: &[Rule {
                name: "readers",
                when: &[Condition::Scope("notes:read")],
                allow: &[Grant {
                    upstream: "notes",
                    tools: &["get_*"],
                    arguments: &[PermittedValues { name: "region", values: &["\"eu\""] }],
                }],
                calls_per_program: Some(20),
                calls_per_minute: None,
            }],
        }),
        ..Deployment::EMPTY
    };

    fn panic_if_damaged(error: ImageError) -> ! {
        panic!("{error}")
    }

    fn read(image: Vec<u8>) -> Result<(&'static [u8], Image), ImageError> {
        let image: &'static [u8] = image.leak();
        Image::read(image, "sha256:runtime", panic_if_damaged).map(|read| (image, read))
    }

    fn verify(bytes: &[u8], image: &Image) -> Result<(), ImageError> {
        image.verify(|at, buffer| {
            let length = buffer.len();
            bytes.get(at..at + length).map(|part| buffer.copy_from_slice(part)).ok_or(std::io::ErrorKind::UnexpectedEof.into())
        })
    }

    #[test]
    fn deployment_round_trips_through_its_image() {
        let (bytes, image) = read(encode(&DEPLOYMENT, "sha256:runtime")).expect("an image of this runtime");
        assert_eq!(bytes, encode(&DEPLOYMENT, "sha256:runtime"), "equal deployments give equal bytes");
        assert_eq!(verify(bytes, &image), Ok(()));
        let deployment = image.deployment;
        assert_eq!(deployment.catalog.tool_count(), 1);
        assert_eq!(format!("{deployment:?}"), format!("{DEPLOYMENT:?}"));
        let tool = deployment.catalog.tools().next().expect("one tool").1;
        for text in [deployment.name, tool.name] {
            assert!(bytes.as_ptr_range().contains(&text.as_ptr()), "texts are not copied");
        }
    }

    #[test]
    fn image_of_another_runtime_is_refused() {
        assert_eq!(read(encode(&DEPLOYMENT, "sha256:other")).err(), Some(ImageError::OtherRuntime));
    }

    #[test]
    fn damage_of_each_byte_is_found() {
        let image = encode(&DEPLOYMENT, "sha256:runtime");
        for at in 0..image.len() {
            let mut damaged = image.clone();
            damaged[at] ^= 1;
            let found = match read(damaged) {
                Ok((bytes, image)) => verify(bytes, &image),
                Err(error) => Err(error),
            };
            let expected = if at < MAGIC.len() { ImageError::NotAnImage } else { ImageError::DigestMismatch };
            assert_eq!(found, Err(expected), "byte {at}");
            assert!(read(image[..at].to_vec()).is_err(), "the first {at} bytes");
        }
    }

    #[test]
    #[should_panic(expected = "does not have the digest")]
    fn damaged_tools_are_not_used() {
        let mut image = encode(&DEPLOYMENT, "sha256:runtime");
        let at = image.windows(3).rposition(|window| window == b"add").expect("a tool");
        image[at] = b'A';
        let (_, image) = read(image).expect("the head is whole");
        image.deployment.catalog.tools().count();
    }
}
