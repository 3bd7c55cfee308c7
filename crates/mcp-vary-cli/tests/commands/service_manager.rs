//! Reports to the service manager.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::program::{Run, Server, VARY, command, file, signal, sky};

/// The next report.
fn next(socket: &UnixDatagram) -> String {
    let mut report = [0; 1_000];
    let length = socket.recv(&mut report).unwrap();
    String::from_utf8(report[..length].to_vec()).unwrap()
}

/// A socket for reports, and its path, which is removed at the end.
fn listen(name: &str) -> (UnixDatagram, Removed) {
    // Not in the target directory: the path of a socket is short.
    let path = std::env::temp_dir().join(format!("vary-{name}-{}", std::process::id()));
    let socket = UnixDatagram::bind(&path).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    (socket, Removed(path))
}

#[test]
fn the_service_manager_learns_when_vary_is_ready_alive_and_stopping() {
    let (socket, path) = listen("notify");
    let variables = [
        ("NOTIFY_SOCKET", path.0.to_str().unwrap()),
        ("WATCHDOG_USEC", "1000000"),
    ];
    let args = ["serve", "--listen", "0", "--", VARY, "weather"];
    let server = Server::start_with(&args, &variables);
    let status = format!("READY=1\nSTATUS=serving at {}", server.url());
    assert_eq!(next(&socket), status);
    for _ in 0..3 {
        assert_eq!(next(&socket), "WATCHDOG=1");
    }
    let (code, text) = server.end();
    assert_eq!(code, Some(0), "{text}");
    let mut report = next(&socket);
    while report == "WATCHDOG=1" {
        report = next(&socket);
    }
    assert_eq!(report, "STOPPING=1\nSTATUS=shutting down");
}

#[test]
fn the_service_manager_learns_of_reloads() {
    let (socket, path) = listen("reloads");
    let text = |more: &str| sky(&format!("listen: 0\n{more}\n"));
    let configuration = file("service-manager.yaml", &text(""));
    let args = ["serve", &configuration];
    let server = Server::start_with(&args, &[("NOTIFY_SOCKET", path.0.to_str().unwrap())]);
    let ready = format!("READY=1\nSTATUS=serving at {}", server.url());
    assert_eq!(next(&socket), ready);
    let is_reloading = || {
        let report = next(&socket);
        let begin = "RELOADING=1\nSTATUS=reloading the configuration";
        assert!(report.starts_with(begin), "{report}");
        if cfg!(target_os = "linux") {
            let (_, time) = report.split_once("\nMONOTONIC_USEC=").unwrap();
            assert!(time.parse::<u64>().unwrap() > 0, "{report}");
        }
    };
    signal("HUP", server.child.id());
    is_reloading();
    assert_eq!(next(&socket), ready);
    fs::write(&configuration, text("variants: nonsense")).unwrap();
    let refused = "; the configuration was not reloaded, the log says why";
    while next(&socket) != format!("{ready}{refused}") {}
    fs::write(&configuration, text("variants: off")).unwrap();
    // A write of several steps is several changes.
    while next(&socket) != ready {}
}

/// The program with a listening socket as its third descriptor, as a service manager starts it.
fn activated(socket: &TcpListener, name: &str, args: &[&str]) -> Command {
    let mut shell = Command::new("sh");
    let variables = format!("LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES={name}");
    let script = format!("exec 3<&0 </dev/null; {variables} exec \"$@\"");
    let socket = OwnedFd::from(socket.try_clone().unwrap());
    shell
        .args(["-c", &script, "sh", VARY])
        .args(args)
        .env_remove("VARY_LOG")
        .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .stdin(Stdio::from(socket));
    shell
}

/// OP-7
#[test]
fn clients_wait_at_a_passed_socket_while_the_process_is_replaced() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    // The address of the command line is not used.
    let args = ["serve", "--listen", "127.0.0.1:1", "--", VARY, "weather"];
    let first = Server::of(&mut activated(&socket, "mcp", &args));
    assert_eq!(first.address, address);
    assert_eq!(first.tools().len(), 2);
    assert_eq!(first.end().0, Some(0));
    let mut waiting = std::net::TcpStream::connect(address).unwrap();
    let request = "GET /mcp/none HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    waiting.write_all(request.as_bytes()).unwrap();
    let second = Server::of(&mut activated(&socket, "mcp", &args));
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut waiting, &mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    assert_eq!(second.tools().len(), 2);
}

#[test]
fn a_passed_socket_is_for_what_its_name_says() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let args = ["serve", "--listen", "0", "--", VARY, "weather"];
    let server = Server::of(&mut activated(&socket, "admin", &args));
    let address = socket.local_addr().unwrap().to_string();
    assert_eq!(server.admin(), address);
    let mut status = command(&["status", &address]);
    Run::of(status.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))).data(0);
}

#[test]
fn a_passed_socket_is_protected_as_any_other() {
    let args = ["serve", "--listen", "0", "--", VARY, "weather"];
    for name in ["mcp", "admin"] {
        let open = TcpListener::bind("0.0.0.0:0").unwrap();
        Run::of(&mut activated(&open, name, &args))
            .refuses(&["can be reached from other machines"]);
    }
}

/// A file that is removed at the end.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
