//! The certificate that Vary shows to a server that demands one, from files that are read again when they change.

use std::path::PathBuf;
use std::sync::Arc;

use mcp_vary_base::limited_file::read_setting;
use mcp_vary_base::lock::ScopedLock;
use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// The files of a client certificate, in PEM.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClientCertificate {
    /// The certificate, followed by those of intermediate authorities.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The certificate of the files for each new socket.
///
/// # Properties
///
/// If the files have become unusable, the last usable certificate stays in use, and the log has the reason once.
pub(crate) struct ReloadedCertificate {
    files: ClientCertificate,
    current: ScopedLock<Current>,
}

struct Current {
    /// What was last read.
    text: Result<PemFiles, String>,
    certified: Arc<CertifiedKey>,
}

/// The contents of the two files.
#[derive(Eq, PartialEq)]
struct PemFiles {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl ReloadedCertificate {
    /// Reads the files; the error names the file and contains nothing of it.
    pub(crate) fn open(files: &ClientCertificate) -> Result<Self, String> {
        let text = read(files)?;
        let certified = parse(files, &text)?;
        Ok(Self {
            files: files.clone(),
            current: ScopedLock::new(Current {
                text: Ok(text),
                certified: Arc::new(certified),
            }),
        })
    }
}

impl ResolvesClientCert for ReloadedCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        // Two small files for each new socket, which is a handshake anyway.
        let text = read(&self.files);
        let mut current = self.current.lock();
        if current.text != text {
            let certified = text.as_ref().map_err(String::clone);
            match certified.and_then(|text| parse(&self.files, text)) {
                Ok(certified) => current.certified = Arc::new(certified),
                Err(error) => {
                    tracing::warn!(
                        error,
                        "a client certificate has changed and cannot be used; the last one stays in use"
                    );
                }
            }
            current.text = text;
        }
        Some(Arc::clone(&current.certified))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

// Leaves out the key.
mcp_vary_base::debug_by_name!(ReloadedCertificate);

fn read(files: &ClientCertificate) -> Result<PemFiles, String> {
    Ok(PemFiles {
        certificate: read_setting("certificate", &files.certificate, MAX_FILE)?,
        key: read_setting("key", &files.key, MAX_FILE)?,
    })
}

fn parse(files: &ClientCertificate, text: &PemFiles) -> Result<CertifiedKey, String> {
    let ClientCertificate { certificate, key } = files;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text.certificate).collect();
    let chain = chain.unwrap_or_default();
    if chain.is_empty() {
        let path = certificate.display();
        return Err(format!(
            "`certificate`: {path} has no certificate in PEM; name the file of the client certificate"
        ));
    }
    let private = PrivateKeyDer::from_pem_slice(&text.key).map_err(|_| {
        let path = key.display();
        format!("`key`: {path} has no private key in PEM; name the file of the certificate's key, without a password")
    })?;
    CertifiedKey::from_der(chain, private, &ring::default_provider()).map_err(|error| {
        let (certificate, key) = (certificate.display(), key.display());
        format!("`certificate` and `key`: {certificate} and {key} cannot be used together: {error}")
    })
}

/// The most bytes of a file that are read.
const MAX_FILE: u64 = 1 << 20;
