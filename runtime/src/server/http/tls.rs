//! TLS with the configured certificate.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Creates a TLS acceptor. The error names the file.
pub(super) fn acceptor(certificates: &Path, key: &Path) -> std::io::Result<TlsAcceptor> {
    let wrong = |path: &Path, why: &dyn std::fmt::Display| std::io::Error::other(format!("{}: {why}", path.display()));
    let chain = CertificateDer::pem_file_iter(certificates).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|why| wrong(certificates, &why))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|why| wrong(key, &why))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret));
    Ok(TlsAcceptor::from(Arc::new(config.map_err(|why| wrong(certificates, &why))?)))
}
