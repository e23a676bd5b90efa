//! The Secret Service of a Linux desktop. Entries are in its default collection, with the attributes that programs with the crate
//! `keyring` use too.
//!
//! Each access has a connection of its own: accesses are rare, and the service may be started again between them.

use std::collections::HashMap;

use secret_service::{Collection, EncryptionType, Error as ServiceError, Item, SecretService};
use zeroize::Zeroizing;

use super::{Error, SERVICE, Secret};

const CONTENT_TYPE: &str = "application/json";

impl From<ServiceError> for Error {
    fn from(error: ServiceError) -> Error {
        match error {
            ServiceError::Locked | ServiceError::Prompt => Error::Locked,
            ServiceError::NoResult => Error::NoCollection,
            ServiceError::Unavailable => Error::Absent("there is no session bus".to_owned()),
            other => Error::Failed(other.to_string()),
        }
    }
}

async fn connect() -> Result<SecretService<'static>, Error> {
    SecretService::connect(EncryptionType::Dh).await.map_err(|error| match error {
        ServiceError::Unavailable => error.into(),
        other => Error::Absent(other.to_string()),
    })
}

/// Returns the default collection, unlocked. The service asks the person if it must.
async fn collection<'s>(service: &'s SecretService<'_>) -> Result<Collection<'s>, Error> {
    let collection = service.get_default_collection().await?;
    if collection.is_locked().await? {
        collection.unlock().await?;
    }
    Ok(collection)
}

fn attributes(user: &str) -> HashMap<&str, &str> {
    HashMap::from([("service", SERVICE), ("username", user)])
}

/// Returns the entry, if there is one.
async fn entry<'c>(collection: &'c Collection<'_>, user: &str) -> Result<Option<Item<'c>>, Error> {
    Ok(collection.search_items(attributes(user)).await?.into_iter().next())
}

pub(super) async fn check() -> Result<(), Error> {
    let service = connect().await?;
    collection(&service).await.map(drop)
}

pub(super) async fn read(user: &str) -> Result<Option<Secret>, Error> {
    let service = connect().await?;
    let collection = collection(&service).await?;
    let Some(item) = entry(&collection, user).await? else { return Ok(None) };
    Ok(Some(Zeroizing::new(item.get_secret().await?)))
}

pub(super) async fn write(user: &str, label: &str, secret: Secret) -> Result<(), Error> {
    let service = connect().await?;
    let collection = collection(&service).await?;
    match entry(&collection, user).await? {
        // GNOME Keyring logs a warning if an item is created in the place of another one.
        Some(item) => item.set_secret(&secret, CONTENT_TYPE).await?,
        None => collection.create_item(label, attributes(user), &secret, true, CONTENT_TYPE).await.map(drop)?,
    }
    Ok(())
}

pub(super) async fn remove(user: &str) -> Result<(), Error> {
    let service = connect().await?;
    let collection = collection(&service).await?;
    let Some(item) = entry(&collection, user).await? else { return Ok(()) };
    Ok(item.delete().await?)
}
