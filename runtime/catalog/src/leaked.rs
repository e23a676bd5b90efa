//! Reads lists and values from an image into memory that is never freed. Texts stay where they are in the image.

use serde::{Deserialize, Deserializer};

use crate::EnvPart;

/// Reads a list.
pub(crate) fn list<'de: 'static, D, T>(input: D) -> Result<&'static [T], D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Vec::deserialize(input).map(|items| &*Box::leak(items.into_boxed_slice()))
}

/// Reads a value behind a reference, or none.
pub(crate) fn option<'de: 'static, D, T>(input: D) -> Result<Option<&'static T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(input).map(|value: Option<T>| value.map(|value| &*Box::leak(Box::new(value))))
}

/// A list in a list.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
struct Parts(#[serde(deserialize_with = "list")] &'static [EnvPart]);

/// Reads the variables of a child process.
pub(crate) fn pairs<'de: 'static, D>(input: D) -> Result<&'static [(&'static str, &'static [EnvPart])], D::Error>
where
    D: Deserializer<'de>,
{
    let pairs: Vec<(&'static str, Parts)> = Vec::deserialize(input)?;
    let pairs: Vec<(&'static str, &'static [EnvPart])> = pairs.into_iter().map(|(name, parts)| (name, parts.0)).collect();
    Ok(Box::leak(pairs.into_boxed_slice()))
}
