//! Servers behind a proxy that the environment names, and behind certificates of an authority of their own.

use std::net::SocketAddr;
use std::sync::OnceLock;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use super::tls::{self, Pair};
use crate::support::*;

/// A proxy that leads every request to one server.
struct TestProxy {
    address: SocketAddr,
    /// The heads of the requests.
    heads: Arc<Mutex<Vec<String>>>,
}

impl TestProxy {
    /// A proxy to `server`; without one it refuses every request.
    async fn start(server: Option<SocketAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let all = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, server, Arc::clone(&all)));
            }
        });
        Self { address, heads }
    }

    /// What the environment names, with a user and a password.
    fn url(&self) -> String {
        format!("http://ann:secret@{}", self.address)
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

async fn carry(
    mut client: TcpStream,
    server: Option<SocketAddr>,
    heads: Arc<Mutex<Vec<String>>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let text = String::from_utf8(head).unwrap();
    heads.lock().unwrap().push(text.clone());
    let Some(server) = server else {
        let status = if text.contains(CREDENTIALS) {
            "403 Forbidden"
        } else {
            "407 Proxy Authentication Required"
        };
        let refusal = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        return client.write_all(refusal.as_bytes()).await;
    };
    let mut server = TcpStream::connect(server).await?;
    if text.starts_with("CONNECT ") {
        client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await?
    } else {
        server.write_all(text.as_bytes()).await?
    }
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// The configuration for the server at `url`, in an environment with these variables.
fn behind(url: &str, variables: fn(&str) -> Option<String>) -> Config {
    let config = config(Target::http(url.parse().unwrap()));
    let environment = config.environment.with_variables(variables);
    config.with_environment(environment)
}

async fn failure(config: Config) -> String {
    soon(Gateway::start(config)).await.unwrap_err().to_string()
}

/// `ann:secret`, as the proxy gets it.
const CREDENTIALS: &str = "Basic YW5uOnNlY3JldA==";

#[tokio::test]
async fn a_proxy_gets_the_whole_url_of_a_server_without_tls() {
    static PROXY: OnceLock<String> = OnceLock::new();
    let server = ScriptedServer::start(|_| None).await;
    let proxy = TestProxy::start(Some(server.address)).await;
    PROXY.set(proxy.url()).unwrap();
    let config = behind("http://server.test/mcp", |name| {
        (name == "http_proxy").then(|| PROXY.get().unwrap().clone())
    });
    soon(Gateway::start(config)).await.unwrap();
    let head = proxy.heads()[0].to_ascii_lowercase();
    let expected = "post http://server.test/mcp http/1.1\r\n";
    assert!(head.starts_with(expected), "{head}");
    let expected = format!("proxy-authorization: {CREDENTIALS}\r\n").to_ascii_lowercase();
    assert!(head.contains(&expected), "{head}");
}

#[tokio::test]
async fn a_proxy_opens_a_tunnel_to_a_server_with_tls_whose_authority_the_file_names() {
    static PROXY: OnceLock<String> = OnceLock::new();
    fn variables(name: &str) -> Option<String> {
        (name == "HTTPS_PROXY").then(|| PROXY.get().unwrap().clone())
    }
    let (authority, files) = (tls::authority(), tls::files("proxy"));
    Pair::named(&authority, "server.test").write(&files);
    let server = Harness::of(|config| {
        config.listener.tls = Some(files.clone());
        config.listener.hosts = vec!["server.test".parse().unwrap()];
    })
    .await;
    let proxy = TestProxy::start(Some(server.address)).await;
    PROXY.set(proxy.url()).unwrap();
    let ca = files.key.with_file_name("ca.crt");
    std::fs::write(&ca, authority.pem()).unwrap();
    let with_ca = |ca| {
        let mut config = behind("https://server.test/mcp", variables);
        config.servers[0].ca = ca;
        config
    };
    soon(Gateway::start(with_ca(Some(ca.clone()))))
        .await
        .unwrap();
    let head = &proxy.heads()[0];
    let expected = "CONNECT server.test:443 HTTP/1.1\r\n";
    assert!(head.starts_with(expected), "{head}");
    assert!(head.contains(CREDENTIALS), "{head}");
    let distrusted = failure(with_ca(None)).await;
    let expected =
        "of an authority that is not trusted; if you trust it, name its file: `--ca FILE`";
    assert!(distrusted.contains(expected), "{distrusted}");
    std::fs::write(&ca, tls::authority().pem()).unwrap();
    let other = failure(with_ca(Some(ca.clone()))).await;
    let expected = "that authority is not among those in ";
    assert!(other.contains(expected), "{other}");
    std::fs::write(&ca, "no certificate").unwrap();
    let empty = failure(with_ca(Some(ca.clone()))).await;
    let expected = format!("`ca`: {} has no certificate in PEM", ca.display());
    assert!(empty.contains(&expected), "{empty}");
    std::fs::write(&ca, "-----BEGIN PRIVATE KEY-----").unwrap();
    let key = failure(with_ca(Some(ca.clone()))).await;
    let expected = "has a private key and no certificate; name the certificate of the authority";
    assert!(key.contains(expected), "{key}");
    std::fs::write(&ca, authority.der()).unwrap();
    let der = failure(with_ca(Some(ca.clone()))).await;
    let expected = "is a certificate in DER; `openssl x509 -inform der";
    assert!(der.contains(expected), "{der}");
}

#[tokio::test]
async fn an_error_names_the_proxy_without_its_password() {
    static PROXY: OnceLock<String> = OnceLock::new();
    let proxy = TestProxy::start(None).await;
    PROXY.set(proxy.url()).unwrap();
    let error = failure(behind("https://server.test/mcp", |name| {
        (name == "https_proxy").then(|| PROXY.get().unwrap().clone())
    }))
    .await;
    let expected = format!(
        "through the proxy http://{} (`https_proxy`): the proxy does not connect to https://server.test/mcp; name the host in `NO_PROXY`",
        proxy.address
    );
    assert!(
        error.contains(&expected) && !error.contains("secret"),
        "{error}"
    );
    for url in ["https://server.test/mcp", "http://server.test/mcp"] {
        let refused = failure(behind(url, |_| {
            Some(format!("http://{}", PROXY.get()?.rsplit('@').next()?))
        }));
        let refused = refused.await;
        let advice =
            "wants a user and a password: write that variable as `http://USER:PASSWORD@HOST:PORT`";
        assert!(refused.contains(advice), "{refused}");
    }
    let dead = failure(behind("https://server.test/mcp", |name| {
        (name == "HTTPS_PROXY").then(|| "http://127.0.0.1:9".to_owned())
    }))
    .await;
    let expected = "the proxy http://127.0.0.1:9 (`HTTPS_PROXY`) on the way to https://server.test/mcp: connection refused; \
                    correct that variable, or name the host in `NO_PROXY`";
    assert!(dead.contains(expected), "{dead}");
    let unusable = failure(behind("https://server.test/mcp", |name| {
        (name == "HTTPS_PROXY").then(|| "socks5://ann:secret@proxy.test".to_owned())
    }))
    .await;
    assert!(
        unusable.contains(
            "`HTTPS_PROXY` is not the URL of a proxy that Vary can use; write `http://HOST:PORT`"
        ) && !unusable.contains("secret"),
        "{unusable}"
    );
}
