//! Servers behind `https://`: whose certificates are believed, and what is said of the others.

use std::io::Read as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

use crate::program::{Run, Server, command, file, run};

#[test]
fn a_server_is_reached_through_tls_as_without() {
    let house = House::of("trusted", &["localhost"]);
    let url = house.url("localhost");
    for what in [
        &["inspect"][..],
        &["call", "get_weather", r#"{"location":"Bern"}"#],
    ] {
        let plain = run(&[what, &[house.plain.url().as_str()]].concat());
        let sealed = house.run(&[what, &[url.as_str()]].concat());
        assert_eq!(sealed.data(0), plain.data(0));
    }
}

#[test]
fn a_server_is_checked_through_tls() {
    let house = House::of("checked", &["localhost"]);
    let args = ["check", "--only", "EXT-4", &house.url("localhost")];
    let text = house.run(&args).data(0);
    assert!(text.starts_with("https://localhost:"), "{text}");
    assert!(text.contains(" passes\n"), "{text}");
    let other = House::of("checked-by-another", &["localhost"]);
    other.run(&args).refuses(&[
        "https://localhost:",
        "its certificate is self-signed, or of an authority that is not trusted",
    ]);
}

#[test]
fn a_gateway_in_front_of_it_answers() {
    let house = House::of("served", &["localhost"]);
    let config = format!(
        r#"{{"servers": {{"weather": {{"url": "{}"}}}}}}"#,
        house.url("localhost")
    );
    let config = file("tls-served.json", &config);
    let gateway = Server::start_with(
        &["serve", "--listen", "0", &config],
        &[("SSL_CERT_FILE", &house.authority)],
    );
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_weather","arguments":{"location":"Bern"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let headers =
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: get_weather\r\n";
    let answer = gateway.post_with(call, headers);
    assert!(answer.contains("Warming trend"), "{answer}");
}

#[test]
fn a_certificate_of_an_unknown_authority_is_refused_with_what_to_do() {
    let house = House::of("unknown", &["localhost"]);
    let other = House::of("other", &["localhost"]);
    let refused = other.run(&["inspect", &house.url("localhost")]);
    refused.refuses(&[
        "cannot be reached",
        "its certificate is self-signed, or of an authority that is not trusted; if you trust it, name its file: `--ca FILE` on \
         the command line, `ca: FILE` of the server in a configuration, or SSL_CERT_FILE, which replaces the system's",
    ]);
}

#[test]
fn an_authority_on_the_command_line_is_trusted() {
    let house = House::of("named-by-ca", &["localhost"]);
    let other = House::of("trusted-elsewhere", &["localhost"]);
    let url = house.url("localhost");
    let ca = &house.authority;
    for args in [
        &["inspect", &url][..],
        &["tools", &url],
        &["call", "get_weather", r#"{"location":"Bern"}"#, &url],
        &["check", "--only", "EXT-4", &url],
    ] {
        other.run(&[args, &["--ca", ca]].concat()).data(0);
    }
    let file = file(
        "tls-ca.json",
        r#"{"servers": {"weather": {"url": "https://localhost/"}}}"#,
    );
    let refused = run(&["inspect", &file, "--ca", ca]);
    refused.refuses(&[
        "--ca is for a URL, and TARGET is not a URL; write `ca` into the server's entry of the file",
    ]);
    let key = crate::program::file("tls-no-ca.pem", "no certificate");
    let refused = run(&["check", &url, "--ca", &key]);
    refused.refuses(&["--ca ", "it has no certificate in PEM"]);
}

#[test]
fn a_certificate_for_another_name_is_refused_with_what_to_do() {
    let house = House::of("named", &["elsewhere.test"]);
    let refused = house.run(&["inspect", &house.url("localhost")]);
    refused.refuses(&[
        "its certificate is for elsewhere.test, and not for localhost",
        "reach the server by a name that its certificate is for",
    ]);
}

#[test]
fn an_authority_in_the_place_of_a_server_is_refused_with_what_to_do() {
    let house = House::of_an_authority("itself", &["localhost"]);
    let refused = house.run(&["inspect", &house.url("localhost")]);
    refused.refuses(&[
        "its certificate is that of an authority, and not of a server; make it again with `openssl req -x509 -addext \
         basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:HOST` (`IP:ADDRESS` for an address), and name it with \
         `--ca` or `ca`",
    ]);
}

#[test]
fn a_server_without_tls_is_told_from_one_with_it() {
    let house = House::of("plain", &["localhost"]);
    let url = house.plain.url().replace("http://", "https://");
    house.run(&["inspect", &url]).refuses(&[
        "cannot be reached",
        "it answered without TLS; if that port speaks plain HTTP, write http:// in its address",
    ]);
    let closing = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/mcp", closing.local_addr().unwrap());
    thread::spawn(move || {
        // To close a connection with bytes that nobody has read would reset it.
        while let Ok((mut socket, _)) = closing.accept() {
            let _ = socket.read(&mut [0; 4096]);
        }
    });
    run(&["inspect", &url]).refuses(&[
        "it closed the connection during the TLS handshake; if it does not speak TLS, write http:// in its address",
    ]);
}

#[test]
fn a_machine_without_certificates_says_so() {
    let house = House::of("none", &["localhost"]);
    let empty = file("tls-empty.pem", "");
    let refused = in_trust_of(&empty, &["inspect", &house.url("localhost")]);
    refused.refuses(&[
        "the system's root certificates cannot be read",
        "SSL_CERT_FILE",
    ]);
}

/// The weather server behind TLS, with a certificate for some names by an authority of its own.
struct House {
    authority: String,
    address: SocketAddr,
    plain: Server,
    _runtime: Runtime,
}

impl House {
    fn of(test: &str, names: &[&str]) -> Self {
        let authority = authority(test, &[]);
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(texts(names))
            .unwrap()
            .signed_by(&key, &authority)
            .unwrap();
        Self::showing(test, &authority, certificate.der(), &key)
    }

    /// What `openssl req -x509` makes by default: an authority that signed itself, shown as a server's.
    fn of_an_authority(test: &str, names: &[&str]) -> Self {
        let authority = authority(test, names);
        Self::showing(test, &authority, authority.der(), authority.key())
    }

    fn showing(
        test: &str,
        authority: &Authority,
        certificate: &CertificateDer<'static>,
        key: &KeyPair,
    ) -> Self {
        let plain = Server::with_weather(&[]);
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let runtime = Runtime::new().unwrap();
        let address = runtime.block_on(listen(certificate.clone(), key, plain.address));
        Self {
            authority: file(&format!("tls-{test}.pem"), &authority.pem()),
            address,
            plain,
            _runtime: runtime,
        }
    }

    fn url(&self, host: &str) -> String {
        format!("https://{host}:{}/mcp", self.address.port())
    }

    /// Runs the program where the authority is trusted.
    fn run(&self, args: &[&str]) -> Run {
        in_trust_of(&self.authority, args)
    }
}

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str, names: &[&str]) -> Authority {
    let mut params = CertificateParams::new(texts(names)).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn texts(names: &[&str]) -> Vec<String> {
    names.iter().copied().map(str::to_owned).collect()
}

fn in_trust_of(authority: &str, args: &[&str]) -> Run {
    let mut command = command(args);
    command
        .env("SSL_CERT_FILE", authority)
        .env_remove("SSL_CERT_DIR");
    Run::of(&mut command)
}

/// Takes connections with TLS and passes on what is in them.
async fn listen(
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    to: SocketAddr,
) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // Whoever does not trust the certificate hangs up: that is what it is for.
                if let Ok(mut sealed) = acceptor.accept(socket).await {
                    let mut plain = TcpStream::connect(to).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut sealed, &mut plain).await;
                }
            });
        }
    });
    address
}
