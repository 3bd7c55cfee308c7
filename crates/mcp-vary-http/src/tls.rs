//! TLS of the HTTP listener, with files that are read again when they change.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use mcp_vary_base::limited_file::read_setting;
use mcp_vary_base::lock::ScopedLock;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tracing::{info, warn};

use crate::client_certificate::subject_of;

/// The files of a certificate. They are read again when they change.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "the configuration builds it")]
pub struct TlsConfig {
    /// The certificate and those of intermediate authorities, in PEM.
    pub certificate: PathBuf,
    /// The private key, in PEM.
    pub key: PathBuf,
    /// The authorities of client certificates; without them no client is asked for one.
    pub client_ca: Option<ClientCa>,
}

/// The authorities of client certificates.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "the configuration builds it")]
pub struct ClientCa {
    /// Their certificates, in PEM.
    pub certificates: PathBuf,
    /// Whether clients without a certificate are refused.
    pub is_required: bool,
}

/// Accepts TLS connections with the certificate in the files of a configuration.
///
/// # Properties
///
/// A connection gets the certificate that the files have when it begins. If they have become unusable, it gets the last
/// usable one, and the log has the reason once.
#[derive(Debug)]
pub struct TlsAcceptor {
    config: TlsConfig,
    current: ArcSwap<ServerConfig>,
    /// The files as they were when they were last read.
    read: ScopedLock<Vec<Fingerprint>>,
}

/// What changes when a file is written or replaced; `None` if it cannot be looked at.
type Fingerprint = Option<(SystemTime, u64, u64)>;

impl TlsConfig {
    /// Reads the files, as a gateway does when it begins to serve.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or used. The error names it, and contains nothing of it.
    pub fn check(&self) -> io::Result<()> {
        load(self).map(drop).map_err(io::Error::other)
    }
}

impl TlsAcceptor {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// As those of [`TlsConfig::check`].
    pub fn open(config: TlsConfig) -> io::Result<Self> {
        let read = fingerprints(&config);
        let current = load(&config).map_err(io::Error::other)?;
        Ok(Self {
            config,
            current: ArcSwap::from_pointee(current),
            read: ScopedLock::new(read),
        })
    }

    /// Completes the handshake of a connection. The result has the subject of the client's certificate if it sent one.
    pub async fn accept(
        self: &Arc<Self>,
        socket: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<String>)> {
        let refreshing = Arc::clone(self);
        tokio::task::spawn_blocking(move || refreshing.refresh()).await?;
        let acceptor = tokio_rustls::TlsAcceptor::from(self.current.load_full());
        let stream = acceptor.accept(socket).await?;
        let (_, connection) = stream.get_ref();
        let certificate = connection
            .peer_certificates()
            .and_then(|chain| chain.first());
        let read = certificate.map(subject_of).transpose();
        let subject = read.map_err(io::Error::other)?;
        Ok((stream, subject))
    }

    /// Reads the files again if they have changed.
    fn refresh(&self) {
        let now = fingerprints(&self.config);
        let mut read = self.read.lock();
        if *read == now {
            return;
        }
        match load(&self.config) {
            Ok(config) => {
                self.current.store(Arc::new(config));
                info!("the certificate has changed; new connections get the new one");
            }
            Err(error) => {
                warn!(%error, "the files of `tls` have changed and cannot be used; the last certificate stays in use");
            }
        }
        *read = now;
    }
}

fn fingerprints(config: &TlsConfig) -> Vec<Fingerprint> {
    let client_ca = config.client_ca.as_ref().map(|ca| &ca.certificates);
    let files = [&config.certificate, &config.key].into_iter();
    files
        .chain(client_ca)
        .map(|path| fingerprint(path))
        .collect()
}

fn fingerprint(path: &Path) -> Fingerprint {
    let metadata = fs::metadata(path).ok()?;
    Some((
        metadata.modified().ok()?,
        metadata.len(),
        identity(&metadata),
    ))
}

#[cfg(unix)]
fn identity(metadata: &fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    metadata.ino()
}

#[cfg(not(unix))]
fn identity(_: &fs::Metadata) -> u64 {
    0
}

/// The configuration of TLS: versions 1.2 and 1.3, HTTP/1.1 alone.
fn load(config: &TlsConfig) -> Result<ServerConfig, String> {
    let certificates = read_certificates("tls.certificate", &config.certificate)?;
    let text = read_setting("tls.key", &config.key, LONGEST)?;
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|_| {
        let path = config.key.display();
        format!("`tls.key`: {path} has no private key in PEM")
    })?;
    let unusable = |error: rustls::Error| {
        format!("`tls.certificate` and `tls.key` cannot be used together: {error}")
    };
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(unusable)?;
    let builder = match &config.client_ca {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let roots = Arc::new(read_roots(&ca.certificates)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            let policy = if ca.is_required {
                verifier
            } else {
                verifier.allow_unauthenticated()
            };
            let verifier = policy.build().map_err(|error| {
                let path = ca.certificates.display();
                format!("`tls.client-ca`: {path} cannot be used: {error}")
            })?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let configured = builder.with_single_cert(certificates, key);
    let mut server = configured.map_err(unusable)?;
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    if config.client_ca.is_some() {
        // A resumed session would skip the check of a certificate that has expired since.
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
    }
    Ok(server)
}

fn read_roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates("tls.client-ca", path)? {
        let added = roots.add(certificate);
        added.map_err(|error| {
            let path = path.display();
            format!("`tls.client-ca`: {path} has a certificate that cannot be used: {error}")
        })?;
    }
    Ok(roots)
}

fn read_certificates(key: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = read_setting(key, path, LONGEST)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(format!(
            "`{key}`: {} has no certificate in PEM",
            path.display()
        )),
    }
}

/// The most bytes of a file that are read. The certificates of all public authorities are a quarter of it.
const LONGEST: u64 = 1 << 20;
