//! `vary reload` and `vary drain`

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{Run, Server, VARY, command, file};

/// The state directory of one test.
fn state(name: &str) -> PathBuf {
    let state = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&state);
    state
}

/// The program with `args` and a state directory.
fn vary(state: &Path, args: &[&str]) -> Command {
    let mut command = command(args);
    command
        .env("XDG_STATE_HOME", state)
        .env_remove("VARY_ADMIN_TOKEN");
    command
}

/// The text of a configuration with the server `sky` and the line `more`.
fn configuration(more: &str) -> String {
    format!(
        "servers: {{sky: {{command: {VARY:?}, args: [weather]}}}}\nlisten: 0\nadmin: 0\n{more}\n"
    )
}

/// OP-8
#[test]
fn a_reload_prints_what_changed_and_a_mistake_changes_nothing() {
    let state = state("reload-state");
    // Its pattern was used already when the configuration is read again.
    let variants = "variants: {standard: {}, agent: {tools: [get_weather]}}";
    let path = file("operate-reload.yaml", &configuration(variants));
    let mut server = Server::of(&mut vary(&state, &["serve", path.to_str().unwrap()]));
    let address = server.admin();
    let reload = || Run::of(&mut vary(&state, &["reload", &address]));
    let shown = path.display();
    let expected = format!("{shown} reloaded: servers: 1 as before; variants: 2 as before\n");
    assert_eq!(reload().data(0), expected);
    fs::write(&path, configuration("variants: nonsense")).unwrap();
    let refused = reload();
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    for part in [
        "was not reloaded, everything stays as it was",
        "4:11: `variants`",
    ] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    assert_eq!(server.tools().len(), 2);
    fs::write(&path, configuration("variants: off")).unwrap();
    let changed = reload().data(0);
    // The file is watched, too: if that came first, the gateway has said what changed.
    let changed = if changed.ends_with("variants: none\n") {
        server.says("variants: 2 removed")
    } else {
        changed
    };
    assert!(changed.contains("variants: 2 removed"), "{changed}");
}

/// OP-8
#[cfg(unix)]
#[test]
fn a_drain_ends_the_gateway_and_its_token() {
    use std::os::unix::fs::PermissionsExt as _;
    let state = state("drain-state");
    let args = [
        "serve", "--listen", "0", "--admin", "0", "--", VARY, "weather",
    ];
    let server = Server::of(&mut vary(&state, &args));
    let address = server.admin();
    let folder = state.join("vary/gateways");
    let token = folder.join(format!("{}.token", address.replace(':', "_")));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&token)), (0o700, 0o600));
    let secret = fs::read_to_string(&token).unwrap();
    assert!(!server.said.contains(&secret), "{}", server.said);
    let reloaded = Run::of(&mut vary(&state, &["reload", &address]));
    assert_eq!(reloaded.code, Some(1));
    let why =
        "error: Vary was started without a configuration file, so there is nothing to reload\n";
    assert_eq!(reloaded.stderr, why);
    let drained = Run::of(&mut vary(&state, &["drain", &address]));
    assert_eq!(
        drained.data(0),
        format!(
            "{}: shutting down; requests in flight may finish\n",
            server.url()
        )
    );
    let (code, text) = server.ended();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("shutting down"), "{text}");
    assert!(!token.exists());
}

/// OP-8
#[test]
fn a_configured_token_is_not_written_and_the_only_one() {
    let state = state("token-state");
    let path = file(
        "operate-token.yaml",
        &configuration("admin-token: correct-horse-battery"),
    );
    let server = Server::of(&mut vary(&state, &["serve", path.to_str().unwrap()]));
    let address = server.admin();
    let with =
        |token: &str| Run::of(vary(&state, &["reload", &address]).env("VARY_ADMIN_TOKEN", token));
    with("correct-horse-battery").data(0);
    let denied = "does not accept the token; set VARY_ADMIN_TOKEN";
    with("wrong-horse-battery").refuses(&[denied]);
    Run::of(&mut vary(&state, &["reload", &address])).refuses(&[denied]);
    with("a\nb").refuses(&["the token cannot be sent"]);
    assert!(
        !state
            .join("vary/gateways")
            .join(address.replace(':', "_") + ".token")
            .exists()
    );
}

/// OP-8
#[test]
fn a_token_that_can_be_guessed_is_a_mistake() {
    let state = state("short-state");
    let path = file("operate-short.yaml", &configuration("admin-token: secret"));
    let run = Run::of(&mut vary(&state, &["serve", path.to_str().unwrap()]));
    run.refuses(&[
        "`admin-token` has less than 16 characters; set it to what `openssl rand -hex 32` prints",
    ]);
    assert!(!run.stderr.contains("secret"), "{}", run.stderr);
}

#[test]
fn a_gateway_that_does_not_answer_is_named() {
    let state = state("gone-state");
    let gone = Run::of(&mut vary(&state, &["drain", "127.0.0.1:1"]));
    gone.refuses(&[
        "no answer from 127.0.0.1:1: connection refused; no gateway of this user is running here: it has ended, or was not started. `vary serve FILE` \
         starts one; that of another user is reached by the address of its `--admin`\n",
    ]);
}

/// A gateway without an operator's address is found by its socket, which needs no token and works while it runs.
#[cfg(unix)]
#[test]
fn a_gateway_of_the_same_user_is_found_by_its_socket() {
    use std::os::unix::fs::PermissionsExt as _;
    // Not in the target directory: the path of a socket is short.
    let state = std::env::temp_dir().join(format!("vary-state-{}", std::process::id()));
    let _removed = Removed(state.clone());
    let serve = || {
        let args = ["serve", "--listen", "0", "--", VARY, "weather"];
        Server::of(&mut vary(&state, &args))
    };
    let run = |args: &[&str]| Run::of(&mut vary(&state, args));
    let first = serve();
    let folder = state.join("vary/gateways");
    let mode = fs::metadata(&folder).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    let shown = run(&["status"]).data(0);
    assert!(shown.contains("vary  "), "{shown}");
    assert!(
        run(&["reload"])
            .stderr
            .contains("without a configuration file")
    );
    let second = serve();
    let sockets = [&first, &second].map(|it| folder.join(format!("{}.sock", it.child.id())));
    let [one, other] = sockets.each_ref().map(|path| path.to_str().unwrap());
    run(&["drain"]).refuses(&[
        "2 gateways are running; name one of them by its socket, or by its address for clients:",
        &format!("\n  vary drain {one}  # {}: vary\n", first.url()),
        &format!("\n  vary drain {other}  # {}: vary\n", second.url()),
    ]);
    let shown = run(&["status", other]).data(0);
    assert!(shown.starts_with(&format!("{}\n", second.url())), "{shown}");
    // By the address that clients have.
    let port = second.address.port().to_string();
    assert_eq!(
        run(&["status", &port]).data(0).lines().next(),
        shown.lines().next()
    );
    run(&["open"]).refuses(&[
        "none of your 2 running gateways has a page; start one again with `--admin 8801`\n",
    ]);
    run(&["open", &port]).refuses(&[&format!(
        "the gateway at 127.0.0.1:{port} has no page; start it again with `--admin 8801`\n"
    )]);
    // It leaves its socket, which nobody answers at.
    drop(second);
    assert!(sockets[1].exists());
    run(&["status", "--json"]).data(0);
    run(&["status", other]).refuses(&[&format!(
        "no status from {other}: connection refused; that gateway has ended\n"
    )]);
    let third = serve();
    assert!(!sockets[1].exists());
    let drained = run(&["drain", &first.address.port().to_string()]).data(0);
    let expected = format!(
        "{}: shutting down; requests in flight may finish\n",
        first.url()
    );
    assert_eq!(drained, expected);
    assert_eq!(first.ended().0, Some(0));
    assert!(!sockets[0].exists());
    run(&["drain"]).data(0);
    assert_eq!(third.ended().0, Some(0));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

/// A folder that is removed at the end.
#[cfg(unix)]
struct Removed(PathBuf);

#[cfg(unix)]
impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
