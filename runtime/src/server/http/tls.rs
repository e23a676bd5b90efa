//! TLS with the certificates of the settings, which are read again on SIGHUP.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{DistinguishedName, RootCertStore, ServerConfig, ServerConnection};
use tokio_rustls::TlsAcceptor;
use webpki::EndEntityCert;
use x509_cert::der::Decode as _;
use x509_cert::name::Name;

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

/// Returns the identity of a client's certificate, whose owner is its subject. A certificate without a subject identifies no owner.
pub(super) fn identity(connection: &ServerConnection) -> Option<Arc<Identity>> {
    let certificate = EndEntityCert::try_from(connection.peer_certificates()?.first()?).ok()?;
    let subject = certificate.subject();
    (!subject.is_empty()).then(|| Identity::of_owner(&format!("certificate:{}", subject_text(subject))))
}

/// Returns a subject as the text of RFC 4514, which a policy can name. Different subjects have different texts, apart from the type of a
/// string, which does not distinguish names (RFC 5280, section 7.1). A subject that is not a name is `#` and its bytes in hexadecimal.
fn subject_text(subject: &[u8]) -> String {
    let sequence = DistinguishedName::in_sequence(subject);
    let mut text = String::new();
    let name = Name::from_der(sequence.as_ref());
    let is_written = name.is_ok_and(|name| write!(text, "{name}").is_ok()) && !text.is_empty();
    if is_written { text } else { format!("#{}", hex(subject)) }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};

    use super::*;

    fn text_of(attributes: &[(DnType, DnValue)]) -> String {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in attributes {
            params.distinguished_name.push(kind.clone(), value.clone());
        }
        let certificate = params.self_signed(&KeyPair::generate().expect("a key")).expect("a certificate");
        subject_text(EndEntityCert::try_from(certificate.der()).expect("a certificate").subject())
    }

    #[test]
    fn subject_is_an_unambiguous_text() {
        let utf8 = |text: &str| DnValue::Utf8String(text.to_owned());
        let (email, unknown) = (&[1, 2, 840, 113_549, 1, 9, 1], &[1, 3, 6, 1, 4, 1, 99_999, 1]);
        let custom = |oid: &[u64]| DnType::CustomDnType(oid.to_vec());
        for (attributes, expected) in [
            (vec![(DnType::CommonName, utf8("alice"))], "CN=alice"),
            (vec![(DnType::CommonName, DnValue::PrintableString("alice".try_into().expect("ASCII")))], "CN=alice"),
            (
                vec![
                    (DnType::CountryName, utf8("DE")),
                    (DnType::StateOrProvinceName, utf8("Hesse")),
                    (DnType::LocalityName, utf8("Kassel")),
                    (DnType::OrganizationName, utf8("Acme")),
                    (DnType::OrganizationalUnitName, utf8("Sales")),
                    (DnType::CommonName, utf8("Zoë")),
                ],
                "CN=Zoë,OU=Sales,O=Acme,L=Kassel,ST=Hesse,C=DE",
            ),
            (vec![(custom(email), DnValue::Ia5String("a@acme.example".try_into().expect("ASCII")))], "EMAIL=a@acme.example"),
            // A value cannot imitate another attribute.
            (vec![(DnType::CommonName, utf8("alice,O=Acme"))], r"CN=alice\,O=Acme"),
            (vec![(DnType::CommonName, utf8("#04"))], r"CN=\#04"),
            (vec![(DnType::CommonName, utf8(" a\0+"))], r"CN=\ a\00\+"),
            (vec![(custom(unknown), utf8("a"))], "1.3.6.1.4.1.99999.1=#0c0161"),
        ] {
            assert_eq!(text_of(&attributes), expected);
        }
        assert_eq!(subject_text(b"not a name"), "#6e6f742061206e616d65");
        // A part of a name without attributes.
        assert_eq!(subject_text(&[0x31, 0]), "#3100");
    }
}
