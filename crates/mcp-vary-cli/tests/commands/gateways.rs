//! Gateways with probes, and load balancers in front of them.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mcp_vary_testkit::http_client::{HttpRequest, HttpResponse, RawHttp};
use mcp_vary_testkit::wait::until;
use tokio::net::TcpStream;

use crate::program::{Server, signal};

/// A port that was free a moment ago. The system gives it to no connection: those of Linux begin at 32,768.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let is_free = |port: &u16| std::net::TcpListener::bind(local(*port)).is_ok();
    let ports = std::iter::repeat_with(|| {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let number = std::process::id().wrapping_mul(31).wrapping_add(number);
        10_000 + u16::try_from(number % 20_000).unwrap()
    });
    ports.take(20_000).find(is_free).unwrap()
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// A gateway, and where its probes are.
pub(crate) struct Gateway {
    pub(crate) server: Server,
    pub(crate) probes: SocketAddr,
    configuration: PathBuf,
    variables: Vec<(&'static str, String)>,
}

impl Gateway {
    pub(crate) fn start(configuration: &Path, variables: Vec<(&'static str, String)>) -> Self {
        let probes = local(free_port());
        Self {
            server: serve(configuration, free_port(), probes, &variables),
            probes,
            configuration: configuration.to_owned(),
            variables,
        }
    }

    /// Its addresses in a line of HAProxy.
    pub(crate) fn checked(&self) -> String {
        format!("{} check port {}", self.server.address, self.probes.port())
    }

    /// Asks the address of the probes.
    pub(crate) async fn get(&self, path: &str) -> HttpResponse {
        let get = HttpRequest::new("").line(&format!("GET {path} HTTP/1.1"));
        RawHttp::connect(self.probes).await.ask(&get).await
    }

    pub(crate) async fn is_ready(&self) -> bool {
        TcpStream::connect(self.probes).await.is_ok() && self.get("/readyz").await.status == 200
    }

    /// Ends it, starts its successor at the same addresses, and returns how long the three steps took.
    pub(crate) async fn replace(&mut self) -> [Duration; 3] {
        self.replace_after("TERM", true).await
    }

    /// The same after this signal. One without a `drain-delay` ends while its probe is asked.
    pub(crate) async fn replace_after(&mut self, name: &str, probes: bool) -> [Duration; 3] {
        let began = Instant::now();
        signal(name, self.server.child.id());
        if probes {
            until(async || !self.is_ready().await).await;
        }
        let not_ready = began.elapsed();
        until(async || self.server.child.try_wait().unwrap().is_some()).await;
        let ended = began.elapsed();
        let code = self.server.child.wait().unwrap().code();
        assert_eq!(code, (name == "TERM").then_some(0));
        let port = self.server.address.port();
        self.server = tokio::task::block_in_place(|| {
            serve(&self.configuration, port, self.probes, &self.variables)
        });
        until(async || self.is_ready().await).await;
        [not_ready, ended, began.elapsed()]
    }
}

fn serve(
    configuration: &Path,
    port: u16,
    probes: SocketAddr,
    variables: &[(&'static str, String)],
) -> Server {
    let (port, probes) = (port.to_string(), probes.port().to_string());
    let path = configuration.to_str().unwrap();
    let variables: Vec<_> = variables
        .iter()
        .map(|(name, it)| (*name, it.as_str()))
        .collect();
    let arguments = ["serve", "--listen", &port, "--probes", &probes, path];
    Server::start_with(&arguments, &variables)
}

/// A load balancer, until this is dropped.
pub(crate) struct Proxy {
    process: Child,
    pub(crate) address: SocketAddr,
}

impl Proxy {
    /// HAProxy with this configuration, in which it listens at `:8800`.
    pub(crate) async fn haproxy(configuration: &str, folder: &Path) -> Self {
        let port = free_port();
        let file = folder.join("haproxy.cfg");
        let text = configuration.replace("bind :8800", &format!("bind 127.0.0.1:{port}"));
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new("haproxy");
        Self::start(command.args(["-db", "-f"]).arg(file), port, folder).await
    }

    /// nginx with this file of its `conf.d`, in which it listens at `8800`.
    pub(crate) async fn nginx(configuration: &str, folder: &Path) -> Self {
        let port = free_port();
        let text = configuration.replace("listen 8800", &format!("listen 127.0.0.1:{port}"));
        let file = nginx_including(&text, folder);
        let mut command = Command::new("nginx");
        command.args(["-g", "daemon off; master_process off;", "-c"]);
        Self::start(command.arg(file), port, folder).await
    }

    async fn start(command: &mut Command, port: u16, folder: &Path) -> Self {
        let log = folder.join("proxy.log");
        command
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap());
        let missing = "haproxy or nginx is missing; on Debian, type as root: apt-get update && apt-get install -y haproxy nginx";
        let proxy = Self {
            process: command.spawn().expect(missing),
            address: local(port),
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(proxy.address).await.is_err() {
            let log = std::fs::read_to_string(&log);
            assert!(Instant::now() < deadline, "it does not listen: {log:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        proxy
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The main file of nginx that includes this one, and writes only into the folder.
pub(crate) fn nginx_including(text: &str, folder: &Path) -> PathBuf {
    let (included, file) = (folder.join("vary.conf"), folder.join("nginx.conf"));
    std::fs::write(&included, text).unwrap();
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|it| format!("{it}_temp_path {};\n", folder.join(it).display()));
    let main = format!(
        "pid {};\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{}include {};\n}}\n",
        folder.join("nginx.pid").display(),
        paths.concat(),
        included.display(),
    );
    std::fs::write(&file, main).unwrap();
    file
}
