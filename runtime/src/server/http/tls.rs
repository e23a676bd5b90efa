//! TLS with the certificates of the settings, which are read again on SIGHUP.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use tokio_rustls::TlsAcceptor;
use webpki::EndEntityCert;

use super::route::Surface;
use crate::digest::hex;
use crate::server::identity::Identity;
use crate::settings::HttpSettings;

/// The TLS of a listener.
pub(super) struct Tls {
    files: Files,
    acceptors: Mutex<Acceptors>,
}

/// The files of the settings.
struct Files {
    certificates: PathBuf,
    key: PathBuf,
    client_authorities: Option<PathBuf>,
    /// Whether a client may have no certificate, because it can send a token.
    certificate_is_optional: bool,
}

/// The acceptors of the listeners. Probes at the admin listener have no certificate.
#[derive(Clone)]
struct Acceptors {
    clients: TlsAcceptor,
    admin: TlsAcceptor,
}

impl Tls {
    /// Reads the files. Returns `None` if the listener does not use TLS.
    ///
    /// # Errors
    ///
    /// Returns a sentence with the path of an invalid file.
    pub(super) fn new(settings: &HttpSettings) -> Result<Option<Tls>, String> {
        let (Some(certificates), Some(key)) = (&settings.tls_cert, &settings.tls_key) else { return Ok(None) };
        let files = Files {
            certificates: certificates.clone(),
            key: key.clone(),
            client_authorities: settings.tls_client_ca.clone(),
            certificate_is_optional: settings.accepts_tokens(),
        };
        let acceptors = Mutex::new(files.read()?);
        Ok(Some(Tls { files, acceptors }))
    }

    /// Reads the files again. Connections that are open keep their certificates.
    ///
    /// # Errors
    ///
    /// Returns a sentence with the path of an invalid file. The earlier certificates stay in use.
    pub(super) fn reload(&self) -> Result<(), String> {
        let acceptors = self.files.read()?;
        *self.acceptors.lock().unwrap_or_else(PoisonError::into_inner) = acceptors;
        Ok(())
    }

    /// Returns the acceptor for a new connection.
    pub(super) fn acceptor(&self, surface: Surface) -> TlsAcceptor {
        let acceptors = self.acceptors.lock().unwrap_or_else(PoisonError::into_inner);
        match surface {
            Surface::Clients => acceptors.clients.clone(),
            Surface::Admin => acceptors.admin.clone(),
        }
    }
}

impl Files {
    fn read(&self) -> Result<Acceptors, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = certificates(&self.certificates)?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|why| wrong(&self.key, &why))?;
        let builder = || ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let invalid = |why: rustls::Error| wrong(&self.certificates, &why);
        let admin = builder().and_then(|config| config.with_no_client_auth().with_single_cert(chain.clone(), key.clone_key()));
        let admin = TlsAcceptor::from(Arc::new(admin.map_err(invalid)?));
        let Some(path) = &self.client_authorities else { return Ok(Acceptors { clients: admin.clone(), admin }) };
        let mut roots = RootCertStore::empty();
        for authority in certificates(path)? {
            roots.add(authority).map_err(|why| wrong(path, &why))?;
        }
        let roots = Arc::new(roots);
        let acceptor = |is_optional: bool| -> Result<TlsAcceptor, String> {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
            let verifier = if is_optional { verifier.allow_unauthenticated() } else { verifier };
            let verifier = verifier.build().map_err(|why| wrong(path, &why))?;
            let config = builder()
                .and_then(|config| config.with_client_cert_verifier(verifier).with_single_cert(chain.clone(), key.clone_key()));
            Ok(TlsAcceptor::from(Arc::new(config.map_err(invalid)?)))
        };
        // `/health` of the admin listener needs no certificate, and its metrics accept one.
        Ok(Acceptors { clients: acceptor(self.certificate_is_optional)?, admin: acceptor(true)? })
    }
}

/// Reads the certificates of a PEM file.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = found.map_err(|why| wrong(path, &why))?;
    if found.is_empty() { Err(wrong(path, &"expected a certificate (-----BEGIN CERTIFICATE-----)")) } else { Ok(found) }
}

fn wrong(path: &Path, why: &dyn std::fmt::Display) -> String {
    format!("{}: {why}", path.display())
}

/// Returns the identity of a client's certificate, whose owner is its subject. The subject is compared as it is encoded, as in a chain of
/// certificates. A certificate without a subject identifies no owner.
pub(super) fn identity(connection: &ServerConnection) -> Option<Arc<Identity>> {
    let certificate = EndEntityCert::try_from(connection.peer_certificates()?.first()?).ok()?;
    let subject = certificate.subject();
    (!subject.is_empty()).then(|| Identity::of_owner(&format!("certificate:{}", hex(subject))))
}
