//! `vary reload` and `vary drain`

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{Run, Server, VARY, command_with_state, file, sky, state};
use crate::text::{assert_contains, assert_lacks, assert_starts};

/// The text of a configuration with the server `sky` and the line `more`.
fn configuration(more: &str) -> String {
    sky(&format!("listen: 0\nadmin: 0\n{more}\n"))
}

/// OP-8
#[test]
fn a_reload_prints_what_changed_and_a_mistake_changes_nothing() {
    let state = state("reload-state");
    // Its pattern was used already when the configuration is read again.
    let variants = "variants: {standard: {}, agent: {tools: [get_weather]}}";
    let path = file("operate-reload.yaml", &configuration(variants));
    let mut server = Server::with_state(&state, &["serve", &path]);
    let address = server.admin();
    let reload = || Run::with_state(&state, &["reload", &address]);
    let expected = format!("{path} reloaded: servers: 1 as before; variants: 2 as before\n");
    assert_eq!(reload().data(0), expected);
    fs::write(&path, configuration("variants: nonsense")).unwrap();
    let refused = reload().exited(1);
    assert_contains(
        &refused.stderr,
        &[
            "was not reloaded, everything stays as it was",
            "4:11: `variants`",
        ],
    );
    assert_eq!(server.tools().len(), 2);
    fs::write(&path, configuration("variants: off")).unwrap();
    let changed = reload().data(0);
    // The file is watched, too: if that came first, the gateway has said what changed.
    let changed = if changed.ends_with("variants: none\n") {
        server.says("variants: 2 removed")
    } else {
        changed
    };
    assert_contains(&changed, &["variants: 2 removed"]);
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
    let server = Server::with_state(&state, &args);
    let address = server.admin();
    let folder = state.join("vary/gateways");
    let token = folder.join(format!("{}.token", address.replace(':', "_")));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&token)), (0o700, 0o600));
    let secret = fs::read_to_string(&token).unwrap();
    assert_lacks(&server.said, &[&secret]);
    let reloaded = Run::with_state(&state, &["reload", &address]).exited(1);
    let why =
        "error: Vary was started without a configuration file, so there is nothing to reload\n";
    assert_eq!(reloaded.stderr, why);
    let drained = Run::with_state(&state, &["drain", &address]);
    assert_eq!(
        drained.data(0),
        format!(
            "{}: shutting down; requests in flight may finish\n",
            server.url()
        )
    );
    let (code, text) = server.ended();
    assert_eq!(code, Some(0), "{text}");
    assert_contains(&text, &["shutting down"]);
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
    let server = Server::with_state(&state, &["serve", &path]);
    let address = server.admin();
    let with = |token: &str| {
        Run::of(command_with_state(&state, &["reload", &address]).env("VARY_ADMIN_TOKEN", token))
    };
    with("correct-horse-battery").data(0);
    let denied = "does not accept the token; set VARY_ADMIN_TOKEN to `admin-token` of its configuration, or, if the gateway is of \
                  another user, run this command as that user\n";
    with("wrong-horse-battery").refuses(&[denied]);
    Run::with_state(&state, &["reload", &address]).refuses(&[denied]);
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
    let run = Run::with_state(&state, &["serve", &path]);
    run.refuses(&[
        "`admin-token` has less than 16 characters; set it to what `openssl rand -hex 32` prints",
    ]);
    assert_lacks(&run.stderr, &["secret"]);
}

#[test]
fn a_gateway_that_does_not_answer_is_named() {
    let state = state("gone-state");
    let gone = Run::with_state(&state, &["drain", "127.0.0.1:1"]);
    gone.refuses(&[
        "no answer from 127.0.0.1:1: connection refused; no gateway of this user is running here: it has ended, or was not started. `vary serve FILE` \
         starts one; that of another user is reached by the address of its `--admin`\n",
    ]);
}

/// Of several gateways, what is typed next is named with what was typed before.
#[cfg(unix)]
#[track_caller]
fn names_the_first(state: &Path, first: &Server) {
    let port = first.address.port();
    let suggest = format!("\n  vary suggest bot --audit a.jsonl --admin {port}  # vary\n");
    let typed = ["suggest", "bot", "--audit", "a.jsonl"];
    Run::with_state(state, &typed).refuses(&[&suggest]);
    let invite = format!("\n  vary invite ann {port}  # vary\n");
    Run::with_state(state, &["invite", "ann"]).refuses(&[&invite]);
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
        let args = [
            "serve", "--listen", "0", "--admin", "off", "--", VARY, "weather",
        ];
        Server::with_state(&state, &args)
    };
    let run = |args: &[&str]| Run::with_state(&state, args);
    let first = serve();
    let folder = state.join("vary/gateways");
    let mode = fs::metadata(&folder).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    let shown = run(&["status"]).data(0);
    assert_contains(&shown, &["vary  "]);
    assert_contains(&run(&["reload"]).stderr, &["without a configuration file"]);
    let second = serve();
    let sockets = [&first, &second].map(|it| folder.join(format!("{}.sock", it.child.id())));
    let [_, other] = sockets.each_ref().map(|path| path.to_str().unwrap());
    run(&["drain"]).refuses(&[
        "2 gateways are running; name one of them:\n",
        &format!("\n  vary drain {}  # vary\n", first.address.port()),
        &format!("\n  vary drain {}  # vary\n", second.address.port()),
    ]);
    names_the_first(&state, &first);
    let shown = run(&["status", other]).data(0);
    assert_starts(&shown, &format!("{}\n", second.url()));
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
        "the gateway at 127.0.0.1:{port} has no page; end it (Ctrl-C), start it again with `--admin 8801` added, then `vary open` finds \
         its page. Until then, `vary status` shows the same as text\n"
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
