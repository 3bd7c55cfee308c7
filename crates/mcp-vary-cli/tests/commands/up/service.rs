//! The service of `vary up`: its address, and the servers that it starts.

use std::net::TcpListener;

use serde_json::json;

use super::User;
use crate::program::VARY;
use crate::text::{assert_contains, assert_lacks};

#[test]
fn a_running_vary_is_not_moved_to_an_address_that_another_program_has() {
    let user = User::new("foreign");
    user.run(&["up", "--yes"]).exited(0);
    let files = user.files.iter();
    let written: Vec<_> = files.map(|(file, _)| user.home.read(file)).collect();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    user.listen_at(&address);
    let run = user.run(&["up", "--yes"]).exited(2);
    let expected = format!("{address} is in use by another program, so Vary cannot listen there; ");
    assert_contains(&run.stderr, &[&expected]);
    for ((file, _), text) in user.files.iter().zip(written) {
        assert_eq!(user.home.read(file), text);
    }
    let url = user.servers(".claude.json")["vary"]["url"].clone();
    user.run(&["tools", url.as_str().unwrap()]).exited(0);
    drop(other);
    user.run(&["up", "--yes"]).exited(0);
    let url = user.servers(".claude.json")["vary"]["url"].clone();
    assert_eq!(url, format!("http://{address}/mcp/v/claude-code"));
}

#[test]
fn a_variant_that_its_user_chose_stays_when_the_address_changes() {
    let user = User::new("moved-variant");
    user.run(&["up", "--yes"]).exited(0);
    let file = ".cursor/mcp.json";
    let written = user.home.read(file);
    let chosen = written.replace("/mcp/v/cursor", "/mcp/v/compact");
    user.home.write(file, &chosen);
    for _ in 0..2 {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        user.listen_at(&address);
        user.run(&["up", "--yes"]).exited(0);
        let url = format!("http://{address}/mcp/v/compact");
        assert_eq!(user.servers(file), json!({"vary": {"url": url}}));
        let again = user.run(&["up", "--yes"]).exited(0);
        assert_contains(&again.stderr, &["nothing to change; Vary is running"]);
    }
    user.run(&["down"]).exited(0);
    let back = user.servers(file);
    assert_eq!(back["sky"]["command"], VARY);
    assert!(back["vary"].is_null(), "{back}");
}

#[test]
fn clients_get_vary_once_the_servers_of_the_service_are_up() {
    let user = User::new("slow");
    let mark = user.home.path("mark");
    let shown = mark.display();
    // The survey starts it at once, the service late.
    let script = format!(
        "PATH=/usr/bin:/bin; test -e {shown} && sleep 8; touch {shown}; exec {VARY} weather"
    );
    let slow = json!({"mcpServers": {"slow": {"command": "/bin/sh", "args": ["-c", script]}}});
    user.home.write(".cursor/mcp.json", &slow.to_string());
    let run = user.run(&["up", "--yes"]).exited(0);
    assert_lacks(&run.stderr, &["still starting"]);
    let status = user.run(&["status", "--json"]).json(0);
    let mut servers = status["servers"].as_array().unwrap().iter();
    let server = servers.find(|server| server["name"] == "slow");
    let state = server.map(|server| &server["state"]);
    assert_eq!(state, Some(&json!("up")), "{status} {}", run.stdout);
}

#[test]
fn a_service_that_has_ended_is_reported_without_an_address_that_nobody_typed() {
    let user = User::new("ended");
    let journal = json!({"manager": "background"}).to_string();
    user.home.write("state/vary/up.json", &journal);
    let expected = "error: Vary is not running; start it again: vary up\n";
    for command in ["status", "reload"] {
        assert_eq!(user.run(&[command]).exited(2).stderr, expected);
    }
}
