//! What all operations of a document share.

use super::reference::References;
use super::secret_parameter::Credentials;
use crate::config::model::Spanned;

/// The document of an operation, and the entry that includes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a, 'c> {
    pub(super) references: References<'a>,
    /// Empty where any server is accepted.
    pub(super) base_url: &'c str,
    /// Further origins that operations may have.
    pub(super) server_origins: &'c [Spanned<String>],
    pub(super) credentials: &'c Credentials<'a>,
}
