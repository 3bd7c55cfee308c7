//! Reports to the service manager.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use crate::program::{Server, VARY};

/// The next report.
fn next(socket: &UnixDatagram) -> String {
    let mut report = [0; 1_000];
    let length = socket.recv(&mut report).unwrap();
    String::from_utf8(report[..length].to_vec()).unwrap()
}

#[test]
fn the_service_manager_learns_when_vary_is_ready_alive_and_stopping() {
    // Not in the target directory: the path of a socket is short.
    let path = std::env::temp_dir().join(format!("vary-notify-{}", std::process::id()));
    let _removed = Removed(path.clone());
    let socket = UnixDatagram::bind(&path).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let variables = [
        ("NOTIFY_SOCKET", path.to_str().unwrap()),
        ("WATCHDOG_USEC", "20000"),
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

/// A file that is removed at the end.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
