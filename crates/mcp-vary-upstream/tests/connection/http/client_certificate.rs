//! A server that demands a client certificate.

use std::net::SocketAddr;
use std::path::PathBuf;

use mcp_vary_http_client::client_certificate::ClientCertificate;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::*;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(DnType::CommonName, "authority");
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for `name`, and its key.
fn issue(authority: &Authority, name: &str) -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    (params.signed_by(&key, authority).unwrap(), key)
}

/// A server behind TLS that demands certificates of an authority, and the files of a client of it.
struct Demanding {
    authority: Authority,
    peer: ScriptedServer,
    url: http::Uri,
    ca: PathBuf,
    files: ClientCertificate,
    /// The certificates that clients have shown.
    shown: Arc<Mutex<Vec<CertificateDer<'static>>>>,
}

impl Demanding {
    async fn start(test: &str) -> Self {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("client-{test}"));
        std::fs::create_dir_all(&directory).unwrap();
        let authority = authority();
        let peer = legacy(|seen| seen.answer(&json!({}))).await;
        let shown = Arc::<Mutex<Vec<_>>>::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let accepting = accept(
            listener,
            acceptor(&authority),
            peer.address,
            Arc::clone(&shown),
        );
        tokio::spawn(accepting);
        let ca = directory.join("ca.pem");
        std::fs::write(&ca, authority.pem()).unwrap();
        let demanding = Self {
            authority,
            peer,
            url: format!("https://localhost:{port}/mcp").parse().unwrap(),
            ca,
            files: ClientCertificate {
                certificate: directory.join("client.crt"),
                key: directory.join("client.key"),
            },
            shown,
        };
        demanding.write(&demanding.authority);
        demanding
    }

    /// Writes another certificate of this authority into the files.
    fn write(&self, authority: &Authority) -> CertificateDer<'static> {
        let (certificate, key) = issue(authority, "vary");
        std::fs::write(&self.files.certificate, certificate.pem()).unwrap();
        std::fs::write(&self.files.key, key.serialize_pem()).unwrap();
        certificate.der().clone()
    }

    fn config(&self) -> UpstreamConfig {
        let mut config = UpstreamConfig::new("remote", Target::http(self.url.clone()));
        config.ca = Some(self.ca.clone());
        config.client_certificate = Some(self.files.clone());
        config
    }

    async fn fails(&self, config: UpstreamConfig, parts: &[&str]) {
        let error = UpstreamConnection::connect(config).await.unwrap_err();
        says(&error, &["server `remote`"]);
        says(&error, parts);
        assert!(self.peer.received().is_empty());
    }
}

fn acceptor(authority: &Authority) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let (certificate, key) = issue(authority, "localhost");
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    // Each socket shows its certificate.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    TlsAcceptor::from(Arc::new(config))
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    peer: SocketAddr,
    shown: Arc<Mutex<Vec<CertificateDer<'static>>>>,
) {
    while let Ok((socket, _)) = listener.accept().await {
        let (acceptor, shown) = (acceptor.clone(), Arc::clone(&shown));
        tokio::spawn(async move {
            let Ok(mut stream) = acceptor.accept(socket).await else {
                return;
            };
            let certificates = stream.get_ref().1.peer_certificates().unwrap();
            shown.lock().unwrap().push(certificates[0].clone());
            let mut peer = TcpStream::connect(peer).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut stream, &mut peer).await;
        });
    }
}

#[tokio::test]
async fn the_certificate_of_the_files_is_shown_also_after_they_changed() {
    let server = Demanding::start("shown").await;
    let first = server.write(&server.authority);
    let upstream = UpstreamConnection::connect(server.config()).await.unwrap();
    result(&upstream, "x").await.unwrap();
    assert!(
        server
            .shown
            .lock()
            .unwrap()
            .iter()
            .all(|shown| *shown == first)
    );
    // The open connection shows the new one on its next socket, and the last usable one if the files are broken.
    let second = server.write(&server.authority);
    let calls = || async {
        let (one, other) = tokio::join!(result(&upstream, "x"), result(&upstream, "y"));
        one.and(other).unwrap();
    };
    let last = || server.shown.lock().unwrap().last().cloned().unwrap();
    while last() == first {
        soon(calls()).await;
    }
    assert_eq!(last(), second);
    std::fs::write(&server.files.key, "broken").unwrap();
    let sockets = server.shown.lock().unwrap().len();
    while server.shown.lock().unwrap().len() == sockets {
        soon(async { futures_util::future::join_all((0..9).map(|_| calls())).await }).await;
    }
    assert_eq!(last(), second);
}

#[tokio::test]
async fn a_server_that_demands_one_or_refuses_it_is_named_with_what_to_do() {
    let server = Demanding::start("refused").await;
    let mut config = server.config();
    config.client_certificate = None;
    let demands =
        "the server demands a client certificate; name its files in `certificate` and `key`";
    server.fails(config, &[demands]).await;
    server.write(&authority());
    let refuses = "the server refuses the client certificate; check the file in `certificate`";
    server.fails(server.config(), &[refuses]).await;
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named_with_their_keys() {
    let server = Demanding::start("unusable").await;
    let (key, path) = (
        std::fs::read(&server.files.key).unwrap(),
        server.files.key.clone(),
    );
    std::fs::write(&path, "SECRET").unwrap();
    let no_key = format!("`key`: {} has no private key in PEM", path.display());
    server.fails(server.config(), &[&no_key]).await;
    std::fs::write(&path, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let pair = ["`certificate` and `key`: ", " cannot be used together: "];
    server.fails(server.config(), &pair).await;
    std::fs::remove_file(&path).unwrap();
    let missing = format!("`key`: {} cannot be read: ", path.display());
    server.fails(server.config(), &[&missing]).await;
    std::fs::write(&path, key).unwrap();
    std::fs::write(&server.files.certificate, "").unwrap();
    let empty = format!(
        "`certificate`: {} has no certificate in PEM",
        server.files.certificate.display()
    );
    server.fails(server.config(), &[&empty]).await;
}

/// The server cannot be reached at all then, so nothing is said of its protocol.
#[tokio::test]
async fn settings_that_cannot_be_used_are_named() {
    let config = |set: fn(&mut UpstreamConfig)| {
        let url = "https://a.example/mcp".parse().unwrap();
        let mut config = UpstreamConfig::new("remote", Target::http(url));
        set(&mut config);
        config
    };
    for (config, what) in [
        (
            config(|it| it.ca = Some("/nowhere/ca.pem".into())),
            "`ca`: /nowhere/ca.pem cannot be read: no such file or directory",
        ),
        (
            config(|it| {
                it.variables = |name| (name == "HTTPS_PROXY").then(|| "socks5://a:pw@b".to_owned())
            }),
            "`HTTPS_PROXY` is not the URL of a proxy that Vary can use; write `http://HOST:PORT`, or name `a.example` in \
             `NO_PROXY`",
        ),
    ] {
        let error = UpstreamConnection::connect(config).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("server `remote` cannot be connected to: {what}")
        );
        assert_eq!(
            error.client_message(),
            "server `remote` cannot be connected to, since its settings are wrong"
        );
    }
}
