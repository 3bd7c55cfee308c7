//! Listening on addresses that other machines can reach.

use crate::program::{Server, VARY, file, run, sky};
use crate::text::assert_contains;

const AUTH: &str = "auth: {keys: [{name: a, sha256: 0000000000000000000000000000000000000000000000000000000000000000}]}\n";
const PROXY: &str = "behind-proxy: on\ntrusted-proxies: [127.0.0.1]\n";
const NAME: &str = "hosts: [mcp.example]\n";

fn config(settings: &[&str]) -> String {
    sky(&settings.concat())
}

#[test]
fn serving_and_checking_say_what_is_missing_for_other_machines() {
    let listen = "listen: 0.0.0.0:0\n";
    for (at, (settings, said)) in [
        (&[listen][..], "there is no authentication"),
        (&[listen, AUTH], "keys and tokens would not be encrypted"),
        (&[listen, AUTH, PROXY], "there is no name for them"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = file(&format!("listen-{at}.yaml"), &config(settings));
        run(&["serve", &path]).refuses(&[said, "or listen on 127.0.0.1:"]);
        let checked = run(&["config", "check", "--offline", &path]).exited(1);
        assert_contains(
            &checked.stdout,
            &["`listen`: 0.0.0.0:0 can be reached", said],
        );
    }
    let path = file("listen-whole.yaml", &config(&[listen, AUTH, PROXY, NAME]));
    let _checked = run(&["config", "check", "--offline", &path]).exited(0);
}

#[test]
fn the_status_is_for_this_machine_even_with_authentication() {
    let admin = "admin: 0.0.0.0:0\nlisten: 0\n";
    let path = file("listen-admin.yaml", &config(&[admin, AUTH, PROXY, NAME]));
    run(&["serve", &path])
        .refuses(&["can be reached from other machines, and this is for the programs of this one"]);
}

#[test]
fn a_reload_that_would_open_the_gateway_to_everybody_is_refused() {
    let path = file("listen-reload.yaml", &config(&[AUTH, PROXY, NAME]));
    let args = ["serve", "--listen", "0.0.0.0:0", &path];
    let mut server = Server::start(&args);
    std::fs::write(&path, config(&[PROXY, NAME])).unwrap();
    let said = server.says("there is no authentication");
    let line = said.lines().last().unwrap();
    assert!(
        line.contains("was not reloaded, everything stays as it was: "),
        "{said}"
    );
}

#[test]
fn files_of_tls_that_cannot_be_read_are_named() {
    let tls = "listen: 0\ntls: {certificate: /nowhere/tls.crt, key: /nowhere/tls.key}\n";
    let path = file("listen-tls.yaml", &config(&[tls]));
    let mut server = std::process::Command::new(VARY)
        .args(["serve", &path])
        .output()
        .unwrap();
    let said = String::from_utf8(std::mem::take(&mut server.stderr)).unwrap();
    assert_eq!(server.status.code(), Some(2), "{said}");
    let expected = "`tls.certificate`: /nowhere/tls.crt cannot be read: no such file or directory";
    assert_contains(&said, &[expected]);
}
