//! Sockets with and without TLS: the trusted certificates, and the errors of others.

use std::error::Error;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use mcp_vary_base::io_error;
use rustls::client::WantsClientCert;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ConfigBuilder, InvalidMessage, RootCertStore,
};

use crate::client_certificate::{ClientCertificate, ReloadedCertificate};
use crate::origin::origin;
use crate::proxy::{Proxy, ProxyConnector};
use crate::resolver::Resolver;
use crate::tls_failure;

/// A builder of which only the certificate of the client is missing.
type Trusting = ConfigBuilder<ClientConfig, WantsClientCert>;

/// The files that the TLS of one server needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct TlsFiles<'a> {
    /// Further authorities to trust.
    pub ca: Option<&'a Path>,
    /// The certificate of Vary.
    pub client: Option<&'a ClientCertificate>,
}

/// What opens the sockets of a client, with and without TLS.
pub type Connector = HttpsConnector<ProxyConnector>;

/// The connector for `url`, whose names `resolver` looks up.
///
/// # Errors
///
/// Why there is none: a file or an address cannot be used.
pub fn connector(
    url: &Uri,
    connect: Duration,
    files: TlsFiles<'_>,
    proxy: Option<Proxy>,
    resolver: Resolver,
) -> Result<Connector, String> {
    let mut http = HttpConnector::new_with_resolver(resolver);
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(connect));
    http.set_keepalive(Some(KEEPALIVE));
    let trusting = match (url.scheme_str(), url.host()) {
        (Some("https"), Some(_)) => match files.ca {
            Some(ca) => added_roots(ca)?,
            None => system_roots()?,
        },
        (Some("http"), Some(_)) => builder()?.with_root_certificates(RootCertStore::empty()),
        _ => {
            return Err(format!(
                "its address `{}` is neither http:// nor https:// with a host",
                origin(url)
            ));
        }
    };
    let tls = match files.client {
        None => trusting.with_no_client_auth(),
        Some(files) => {
            trusting.with_client_cert_resolver(Arc::new(ReloadedCertificate::open(files)?))
        }
    };
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls);
    let http1 = builder.https_or_http().enable_http1();
    Ok(http1.wrap_connector(ProxyConnector { http, proxy }))
}

/// The system's root certificates, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name. They are read once, since
/// there are hundreds, and clients may have dedicated connections.
fn system_roots() -> Result<Trusting, String> {
    static SYSTEM: OnceLock<Trusting> = OnceLock::new();
    if let Some(trusting) = SYSTEM.get() {
        return Ok(trusting.clone());
    }
    let trusting = builder()?.with_native_roots().map_err(|error| {
        format!(
            "the system's root certificates cannot be read: {error}; install them (`ca-certificates`), \
             or name a file of them in SSL_CERT_FILE"
        )
    })?;
    Ok(SYSTEM.get_or_init(|| trusting).clone())
}

/// The certificates of the system, and those in the file `ca`.
fn added_roots(ca: &Path) -> Result<Trusting, String> {
    let mut roots = RootCertStore::empty();
    // Servers with certificates of public authorities are of no interest here.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let unusable = |why: String| format!("`ca`: {} {why}", ca.display());
    let text = std::fs::read(ca)
        .map_err(|error| unusable(format!("cannot be read: {}", io_error::describe(&error))))?;
    let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates = parsed.unwrap_or_default();
    if certificates.is_empty() {
        return Err(unusable(without_certificate(&text)));
    }
    for certificate in certificates {
        let added = roots.add(certificate);
        added.map_err(|error| unusable(format!("cannot be used: {error}")))?;
    }
    Ok(builder()?.with_root_certificates(roots))
}

/// What a file is that has no certificate in PEM, and what to do.
fn without_certificate(text: &[u8]) -> String {
    let has = |label: &str| String::from_utf8_lossy(text).contains(label);
    match text {
        // A sequence with a length of two bytes, in DER.
        [0x30, 0x82, ..] => {
            "is a certificate in DER; `openssl x509 -inform der -in FILE -out ca.pem` makes one in PEM of it"
        }
        _ if has("PRIVATE KEY-----") => {
            "has a private key and no certificate; name the certificate of the authority"
        }
        _ => "has no certificate in PEM, which begins with `-----BEGIN CERTIFICATE-----`",
    }
    .to_owned()
}

fn builder() -> Result<ConfigBuilder<ClientConfig, rustls::WantsVerifier>, String> {
    let provider = rustls::crypto::ring::default_provider();
    ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())
}

/// The advice for an error that TLS caused, if there is any. `ca` is the file of further authorities.
pub fn advice(error: &(dyn Error + 'static), ca: Option<&Path>) -> Option<String> {
    let why = tls_failure::find(error)?;
    let is_of_unknown = matches!(
        why,
        rustls::Error::InvalidCertificate(why)
            if *why == CertificateError::UnknownIssuer || tls_failure::is_of_other_authority(why)
    );
    match ca {
        Some(ca) if is_of_unknown => Some(format!(
            "that authority is not among those in {}, which `ca` names; write its certificate there (`openssl s_client -connect \
             HOST:PORT` prints its name)",
            ca.display()
        )),
        _ => {
            let advice = known_advice(why)?;
            let unread = is_of_unknown.then(rustls_native_certs::load_native_certs);
            Some(match unread.as_ref().and_then(|all| all.errors.first()) {
                Some(error) => {
                    format!("{advice}; authorities of this machine cannot be read: {error}")
                }
                None => advice.to_owned(),
            })
        }
    }
}

fn known_advice(why: &rustls::Error) -> Option<&'static str> {
    match why {
        rustls::Error::InvalidCertificate(why) => match why {
            _ if *why == CertificateError::UnknownIssuer
                || tls_failure::is_of_other_authority(why) =>
            {
                Some(
                    "if you trust it, name its file: `--ca FILE` on the command line, `ca: FILE` of the server in a configuration, \
                     or SSL_CERT_FILE, which replaces the system's authorities",
                )
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Some(
                    "reach the server by a name that its certificate is for, or make it again with \
                     `-addext subjectAltName=DNS:HOST` (`IP:ADDRESS` for an address)",
                )
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => {
                Some("the server needs another certificate, or this machine's clock is wrong")
            }
            _ if tls_failure::is_authority(why) => Some(
                "make it again with `openssl req -x509 -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:HOST` \
                 (`IP:ADDRESS` for an address), and name it with `--ca` or `ca`",
            ),
            _ => None,
        },
        rustls::Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateRequired => Some(
                "the server demands a client certificate; name its files in `certificate` and `key`",
            ),
            AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::DecryptError
            | AlertDescription::UnknownCA => {
                Some("the server refuses the client certificate; check the file in `certificate`")
            }
            _ => None,
        },
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            Some("if that port speaks plain HTTP, write http:// in its address")
        }
        _ => None,
    }
}

const KEEPALIVE: Duration = Duration::from_secs(60);
