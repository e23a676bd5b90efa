//! TLS configurations.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use rustls_platform_verifier::Verifier;

use crate::upstream::fault::UpstreamError;

/// Creates a configuration that trusts the system's roots and those in `extra`, as PEM.
pub(super) fn with_roots(extra: Option<&[u8]>) -> Result<ClientConfig, UpstreamError> {
    let extra = extra.map_or(Ok(Vec::new()), roots).map_err(UpstreamError::unavailable)?;
    let verifier = Verifier::new_with_extra_roots(extra, provider()).map_err(|why| cannot(&why))?;
    Ok(begun()?.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// Creates a configuration for clients that never use TLS, since loading the system's roots takes milliseconds.
pub(super) fn without_roots() -> Result<ClientConfig, UpstreamError> {
    Ok(begun()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

/// Parses the certificates of a PEM text. The error tells what is missing.
pub(crate) fn roots(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    match CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>() {
        Ok(found) if found.is_empty() => Err("it holds no certificate (expected PEM, -----BEGIN CERTIFICATE-----)".to_owned()),
        Ok(found) => Ok(found),
        Err(why) => Err(format!("its certificates cannot be read: {why}")),
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn begun() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, UpstreamError> {
    ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().map_err(|why| cannot(&why))
}

fn cannot(why: &rustls::Error) -> UpstreamError {
    UpstreamError::unavailable(format!("TLS cannot be set up: {why}"))
}
