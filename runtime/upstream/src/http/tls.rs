//! The certificates that the client trusts.

use reqwest::{Certificate, ClientBuilder};

use crate::fault::UpstreamError;

/// Sets up TLS. The client trusts the system's roots and the PEM certificates in `extra`. Without TLS, no roots are loaded,
/// because that takes milliseconds.
pub(super) fn configure(builder: ClientBuilder, uses_tls: bool, extra: Option<&[u8]>) -> Result<ClientBuilder, UpstreamError> {
    // `reqwest` uses the provider of the process. If an embedding program has installed one, that one stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if !uses_tls {
        return Ok(builder.tls_certs_only([]));
    }
    let extra = extra.map_or(Ok(Vec::new()), roots).map_err(UpstreamError::unavailable)?;
    Ok(builder.tls_certs_merge(extra))
}

/// Reads the certificates in a PEM text.
///
/// # Errors
///
/// Returns a clause that says what is wrong with the text.
pub(crate) fn roots(pem: &[u8]) -> Result<Vec<Certificate>, String> {
    match Certificate::from_pem_bundle(pem) {
        Ok(found) if found.is_empty() => Err("it holds no certificate (expected PEM, -----BEGIN CERTIFICATE-----)".to_owned()),
        Ok(found) => Ok(found),
        Err(why) => Err(format!("its certificates cannot be read: {why}")),
    }
}
