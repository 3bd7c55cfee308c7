//! TLS of the HTTP listener: files that are replaced, and certificates of clients.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use mcp_vary_gateway::settings::listener::{ClientCa, TlsConfig};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::*;

pub(super) type Authority = CertifiedIssuer<'static, KeyPair>;

pub(super) fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(DnType::CommonName, "authority");
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate and its key.
pub(super) struct Pair {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Pair {
    fn of(authority: &Authority) -> Self {
        Self::named(authority, "localhost")
    }

    pub(super) fn named(authority: &Authority, host: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, authority).unwrap();
        Self { certificate, key }
    }

    pub(super) fn write(&self, files: &TlsConfig) {
        std::fs::write(&files.certificate, self.certificate.pem()).unwrap();
        std::fs::write(&files.key, self.key.serialize_pem()).unwrap();
    }
}

/// Paths in a directory of this test.
pub(super) fn files(test: &str) -> TlsConfig {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("tls-{test}"));
    std::fs::create_dir_all(&directory).unwrap();
    TlsConfig {
        certificate: directory.join("tls.crt"),
        key: directory.join("tls.key"),
        client_ca: None,
    }
}

/// A gateway with these files.
async fn start(files: &TlsConfig) -> Harness {
    start_with(files, limits()).await
}

async fn start_with(files: &TlsConfig, limits: Limits) -> Harness {
    let tls = files.clone();
    Harness::with(|mut config| {
        config.listener.tls = Some(tls);
        config.with_limits(limits)
    })
    .await
}

/// A client that trusts `server`, and shows the certificate of `identity`.
fn client(server: &Authority, identity: Option<&Pair>, protocols: &[&str]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(server.der().clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let key = PrivateKeyDer::try_from(pair.key.serialize_der()).unwrap();
            let chain = vec![pair.certificate.der().clone()];
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    TlsConnector::from(Arc::new(config))
}

async fn connect(address: SocketAddr, client: &TlsConnector) -> io::Result<TlsStream<TcpStream>> {
    let socket = TcpStream::connect(address).await?;
    soon(client.connect(ServerName::try_from("localhost").unwrap(), socket)).await
}

fn certificate(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    stream.get_ref().1.peer_certificates().unwrap()[0].clone()
}

/// The status line of the answer to a request.
async fn status_line(stream: &mut TlsStream<TcpStream>) -> io::Result<String> {
    stream
        .write_all(&HttpRequest::modern_request("tools/list", json!({})).bytes())
        .await?;
    let mut line = vec![0; "HTTP/1.1 200".len()];
    soon(stream.read_exact(&mut line)).await?;
    Ok(String::from_utf8(line).unwrap())
}

#[tokio::test]
async fn a_replaced_certificate_is_served_to_the_next_connection_and_a_broken_one_is_not() {
    let authority = authority();
    let (first, second) = (Pair::of(&authority), Pair::of(&authority));
    let files = files("replaced");
    first.write(&files);
    let harness = start(&files).await;
    let client = client(&authority, None, &[]);
    let mut old = connect(harness.address, &client).await.unwrap();
    assert_eq!(certificate(&old), *first.certificate.der());

    second.write(&files);
    let mut new = connect(harness.address, &client).await.unwrap();
    assert_eq!(certificate(&new), *second.certificate.der());
    assert_eq!(status_line(&mut new).await.unwrap(), "HTTP/1.1 200");
    // A connection keeps what it began with.
    assert_eq!(status_line(&mut old).await.unwrap(), "HTTP/1.1 200");

    // Half of a pair, nothing, and no file.
    let spoil = [
        Some(first.certificate.pem()),
        Some("nothing".to_owned()),
        None,
    ];
    for broken in spoil {
        match broken {
            Some(text) => std::fs::write(&files.certificate, text).unwrap(),
            None => std::fs::remove_file(&files.certificate).unwrap(),
        }
        let kept = connect(harness.address, &client).await.unwrap();
        assert_eq!(certificate(&kept), *second.certificate.der());
    }
    first.write(&files);
    let repaired = connect(harness.address, &client).await.unwrap();
    assert_eq!(certificate(&repaired), *first.certificate.der());
}

#[tokio::test]
async fn a_client_certificate_of_another_authority_is_refused() {
    let (server, clients, others) = (authority(), authority(), authority());
    let mut files = files("clients");
    Pair::of(&server).write(&files);
    let certificates = files.certificate.with_file_name("ca.crt");
    std::fs::write(&certificates, clients.pem()).unwrap();
    let (known, unknown) = (Pair::of(&clients), Pair::of(&others));
    for is_required in [true, false] {
        files.client_ca = Some(ClientCa {
            certificates: certificates.clone(),
            is_required,
        });
        let harness = start(&files).await;
        for (identity, is_served) in [
            (Some(&known), true),
            (Some(&unknown), false),
            (None, !is_required),
        ] {
            let client = client(&server, identity, &[]);
            // In TLS 1.3 a client learns with the first answer that its certificate is refused.
            let answer = match connect(harness.address, &client).await {
                Ok(mut stream) => status_line(&mut stream).await,
                Err(error) => Err(error),
            };
            match answer {
                Ok(status) => assert_eq!((status.as_str(), is_served), ("HTTP/1.1 200", true)),
                Err(error) => assert!(!is_served, "{is_required}: {error}"),
            }
        }
    }
}

#[tokio::test]
async fn only_http_1_1_is_agreed_on() {
    let authority = authority();
    let files = files("alpn");
    Pair::of(&authority).write(&files);
    let harness = start(&files).await;
    let both = client(&authority, None, &["h2", "http/1.1"]);
    let stream = connect(harness.address, &both).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let other = client(&authority, None, &["h2"]);
    let refused = connect(harness.address, &other).await.unwrap_err();
    let expected = "NoApplicationProtocol";
    assert!(refused.to_string().contains(expected), "{refused}");
}

#[tokio::test]
async fn a_client_without_tls_and_one_that_is_silent_are_disconnected() {
    let authority = authority();
    let files = files("silent");
    Pair::of(&authority).write(&files);
    let impatient = limits().with_read_timeout(Duration::from_millis(500));
    let harness = start_with(&files, impatient).await;
    let mut plain = TcpStream::connect(harness.address).await.unwrap();
    let head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
    plain.write_all(head).await.unwrap();
    let mut answer = Vec::new();
    let _ = soon(plain.read_to_end(&mut answer)).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    let mut silent = RawHttp::connect(harness.address).await;
    assert!(silent.is_closed().await);
    let mut stream = connect(harness.address, &client(&authority, None, &[]))
        .await
        .unwrap();
    assert_eq!(status_line(&mut stream).await.unwrap(), "HTTP/1.1 200");
}

#[tokio::test]
async fn files_that_cannot_be_used_end_the_start_with_their_names() {
    let authority = authority();
    let files = files("unusable");
    let pair = Pair::of(&authority);
    pair.write(&files);
    let other = files.key.with_file_name("other.key");
    std::fs::write(&other, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let nothing = files.key.with_file_name("nothing.pem");
    std::fs::write(&nothing, "nothing").unwrap();
    let missing = files.key.with_file_name("missing.pem");
    let with_ca = |certificates: &PathBuf| {
        Some(ClientCa {
            certificates: certificates.clone(),
            is_required: true,
        })
    };
    for (certificate, key, client_ca, expected) in [
        (&missing, &files.key, None, "`tls.certificate`: "),
        (
            &files.certificate,
            &missing,
            None,
            "missing.pem cannot be read: no such file or directory",
        ),
        (
            &nothing,
            &files.key,
            None,
            "nothing.pem has no certificate in PEM",
        ),
        (
            &files.certificate,
            &nothing,
            None,
            "nothing.pem has no private key in PEM",
        ),
        (
            &files.certificate,
            &other,
            None,
            "`tls.certificate` and `tls.key` cannot be used together",
        ),
        (
            &files.certificate,
            &files.key,
            with_ca(&nothing),
            "`tls.client-ca`: ",
        ),
    ] {
        let tls = TlsConfig {
            certificate: certificate.clone(),
            key: key.clone(),
            client_ca,
        };
        let said = refused(tls).await;
        assert!(said.contains(expected), "{said}");
        assert!(!said.contains("PRIVATE"), "{said}");
    }
}

/// The error with which a gateway with these settings ends.
async fn refused(tls: TlsConfig) -> String {
    let harness = Harness::start().await;
    let mut config = config(Target::http(harness.peer.url.clone()));
    config.listener.tls = Some(tls);
    let gateway = Gateway::start(config).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let serving = gateway.serve_http(listener, std::future::pending());
    serving.await.unwrap_err().to_string()
}
