//! `vary open`, and the figures of the page.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Run, Server, VARY, answer, command_with_state, file, run, sky, state};
use crate::text::{assert_contains, assert_lacks, assert_starts};

/// The address of the page that `vary open` prints.
#[track_caller]
fn printed(state: &Path, args: &[&str]) -> String {
    let args = [&["open", "--print"], args].concat();
    Run::with_state(state, &args).data(0).trim().to_owned()
}

/// The JSON of an answer that succeeded.
#[track_caller]
fn json_of(answer: &str) -> Value {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(body).unwrap()
}

/// The page that an address opens: where it is, and its token.
struct Opened {
    address: String,
    token: String,
}

impl Opened {
    #[track_caller]
    fn at(url: &str) -> Self {
        let (address, code) = parts(url);
        let token = json_of(&answer(address, "POST", "/api/token", code));
        let token = token["token"].as_str().unwrap().to_owned();
        let address = address.to_owned();
        Self { address, token }
    }

    #[track_caller]
    fn data(&self, path: &str) -> Value {
        json_of(&answer(&self.address, "GET", path, &self.token))
    }

    /// What it answers to a `POST` of this body, as text.
    fn post(&self, path: &str, body: &Value) -> String {
        let Self { address, token } = self;
        let body = body.to_string();
        let length = body.len();
        let mut socket = TcpStream::connect(address).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        socket.write_all(head.as_bytes()).unwrap();
        let mut response = String::new();
        socket.read_to_string(&mut response).unwrap();
        response
    }

    #[track_caller]
    fn refuses(&self, path: &str, body: &Value, why: &str) {
        let answer = self.post(path, body);
        assert_starts(&answer, "HTTP/1.1 409");
        assert!(answer.contains(why), "{answer}");
    }
}

/// The host and the code of an address.
#[track_caller]
fn parts(url: &str) -> (&str, &str) {
    let url = url.strip_prefix("http://").unwrap();
    url.split_once("/#code=").unwrap()
}

#[test]
fn the_page_is_found_by_the_user_of_the_gateway() {
    let state = state("open-state");
    let args = [
        "serve", "--listen", "0", "--admin", "0", "--", VARY, "weather",
    ];
    let server = Server::with_state(&state, &args);
    let address = server.admin();
    assert_eq!(server.printed("page: "), format!("vary open {address}"));
    let (first, second) = (printed(&state, &[]), printed(&state, &[&address]));
    for url in [&first, &second] {
        assert_starts(url, &format!("http://{address}/#code="));
        let page = Opened::at(url);
        assert_eq!(page.data("/api/status")["servers"][0]["state"], "up");
        // No token is in an address, which others may see while a browser starts.
        let written = state
            .join("vary/gateways")
            .join(format!("{}.token", address.replace(':', "_")));
        let token = fs::read_to_string(written).unwrap();
        assert_lacks(url, &[&token, &page.token]);
        assert_ne!(token, page.token);
        let (_, code) = parts(url);
        for (method, path) in [
            ("POST", "/api/token"),
            ("GET", "/api/status"),
            ("POST", "/api/code"),
        ] {
            let answer = answer(&address, method, path, code);
            assert_starts(&answer, "HTTP/1.1 401");
        }
        let used = answer(&address, "POST", "/api/token", code);
        let why =
            "the address has been opened already, or is older than a minute; run `vary open` again";
        assert!(used.contains(why), "{used}");
        let drain = answer(&address, "POST", "/drain", &page.token);
        assert_starts(&drain, "HTTP/1.1 401");
    }
    assert_ne!(first, second);
}

/// OP-9
#[cfg(unix)]
#[test]
fn an_open_page_goes_on_after_a_restart() {
    use std::os::unix::fs::PermissionsExt as _;
    // Not in the target directory: the path of a socket is short.
    let state = std::env::temp_dir().join(format!("vary-page-{}", std::process::id()));
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let clients = free.local_addr().unwrap().to_string();
    drop(free);
    let args = ["serve", "--listen", &clients, "--", VARY, "weather"];
    let mut first = Server::with_state(&state, &args);
    first.says("What clients get and call: vary open\n");
    let page = Opened::at(&printed(&state, &[]));
    let bare = answer(&page.address, "GET", "/status", "correct-horse-battery");
    assert_starts(&bare, "HTTP/1.1 401");
    let record = format!("vary/gateways/{}.operator", clients.replace(':', "_"));
    let record = state.join(record);
    let mode = fs::metadata(&record).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let (_, said) = first.end();
    let secret = fs::read_to_string(&record).unwrap();
    let (_, secret) = secret.split_once(' ').unwrap();
    assert_lacks(&said, &[secret, &page.token]);
    let second = Server::with_state(&state, &args);
    assert_eq!(page.data("/api/status")["servers"][0]["state"], "up");
    drop(second);
    let off = [&args[..3], &["--admin", "off"], &args[3..]].concat();
    let third = Server::with_state(&state, &off);
    let refused = Run::with_state(&state, &["open"]);
    refused.refuses(&["runs without a page; end it (Ctrl-C)"]);
    drop(third);
    fs::remove_dir_all(&state).unwrap();
}

#[cfg(unix)]
#[test]
fn the_browser_gets_the_address() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Duration;
    let state = state("open-browser");
    let path = file(
        "open-browser.yaml",
        &sky("listen: 0\nadmin: 0\nadmin-token: correct-horse-battery\n"),
    );
    let server = Server::with_state(&state, &["serve", &path]);
    let address = server.admin();
    let refused = Run::with_state(&state, &["open", &address]);
    refused.refuses(&["does not accept the token", "VARY_ADMIN_TOKEN"]);
    let nobody = Run::with_state(&state, &["open", "127.0.0.1:1"]);
    nobody.refuses(&[&format!(
        "no page at 127.0.0.1:1: connection refused; a gateway with a page runs elsewhere:\n  vary open {address}  # {}, {path}\n",
        server.url()
    )]);
    for (program, why) in [
        ("false", "`false`: exit status 1"),
        ("no-browser", "`no-browser`: the program was not found"),
    ] {
        let mut failing = command_with_state(&state, &["open", &address]);
        failing
            .env("VARY_ADMIN_TOKEN", "correct-horse-battery")
            .env("BROWSER", program);
        let expected = format!(
            "error: no browser could be started ({why}); `vary open --print` prints the address to open\n"
        );
        Run::of(&mut failing).prints(2, &expected);
    }
    let (browser, opened) = (state.join("browser"), state.join("opened"));
    let script = format!(
        "#!/bin/sh\nprintf %s \"$1\" > {0}.new && mv {0}.new {0}\n",
        opened.display()
    );
    fs::write(&browser, script).unwrap();
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o700)).unwrap();
    let mut open = command_with_state(&state, &["open", &address]);
    open.env("VARY_ADMIN_TOKEN", "correct-horse-battery")
        .env("BROWSER", &browser);
    let said = Run::of(&mut open).notices();
    assert_eq!(said, format!("opening http://{address}/ in the browser\n"));
    let url = loop {
        match fs::read_to_string(&opened) {
            Ok(url) => break url,
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    assert_eq!(
        Opened::at(&url).data("/api/status")["servers"][0]["name"],
        "sky"
    );
    drop(server);
    let nobody = Run::with_state(&state, &["open", "127.0.0.1:1"]);
    nobody.refuses(&[
        "no page at 127.0.0.1:1: connection refused; no gateway of this user is running here; `vary up` starts \
         one with a page for your clients, `vary serve FILE` another\n",
    ]);
}

/// What the program gives to the page: the file that it serves, and what that allows.
#[test]
fn the_page_has_the_variants_of_the_file() {
    let state = state("page-variants");
    let servers = sky("");
    let variants = "variants:\n  standard: {}\n  few: {tools: ['*a*']}\n";
    let lines = "listen: 0\nadmin: 0\nadmin-calls: on\n";
    let path = file("page-variants.yaml", &format!("{servers}{variants}{lines}"));
    let server = Server::with_state(&state, &["serve", &path]);
    let page = Opened::at(&printed(&state, &[&server.admin()]));
    assert_eq!(page.data("/api/status")["calls"], true);
    let few = page.data("/api/variant?id=few");
    assert_eq!(few["value"], json!({"tools": ["*a*"]}));
    // The file as it is now.
    let variants = variants.replace("['*a*']", "['*b*']");
    fs::write(&path, format!("{servers}{variants}{lines}")).unwrap();
    let few = page.data("/api/variant?id=few");
    assert_eq!(few["yaml"], "few:\n  tools: [\"*b*\"]\n");
}

/// OP-9: What `vary config check` finds, with its place, and what is wrong with the file now.
#[test]
fn the_page_has_what_the_file_has_in_vain() {
    let state = state("page-setup");
    let head = sky("listen: 0\nadmin: 0\n");
    let lines = head.lines().count();
    let digest = "0".repeat(64);
    let text = format!(
        "{head}auth: {{keys: [{{name: ann, sha256: {digest}, claims: {{groups: dev}}, expires: 2020-01-31}}]}}
access:
  - {{when: {{groups: qa}}, allow: [\"*\"]}}
  - {{when: {{groups: dev}}, allow: [get_wether], deny: [drop_*]}}\n"
    );
    let path = file("page-setup.yaml", &text);
    let server = Server::with_state(&state, &["serve", &path]);
    let page = Opened::at(&printed(&state, &[&server.admin()]));
    let problems = page.data("/api/review")["setup"].take();
    let placed = problems.as_array().unwrap().iter();
    // Where the tests run as root, that is one, and it has no place.
    let placed = placed.filter(|problem| problem["place"] != "");
    let shown = placed.map(|problem| {
        let text = |key: &str| problem[key].as_str().unwrap();
        let [kind, place, what, fix] = ["kind", "place", "what", "fix"].map(text);
        format!("{kind}: {place}: {what}; {fix}")
    });
    let at = |line: usize| format!("{path}:{}", lines + line);
    let expected = [
        format!(
            "setting: {}: `auth.keys[0].expires` is past: the key of `ann` is refused since the end of 2020-01-31; make another with `vary key new ann`, and remove this one",
            at(1)
        ),
        format!(
            "setting: {}: `access[0].when` applies to nobody: no key of `auth.keys` has `groups: qa`; give it to the `claims` of a key, or remove the rule",
            at(3)
        ),
        format!(
            "setting: {}: `access[1].allow[0]` matches nothing now: `get_wether`; did you mean `get_weather`?",
            at(4)
        ),
        format!(
            "note: {}: `access[1].deny[0]` matches nothing now: `drop_*`; it will deny what the servers add later",
            at(4)
        ),
    ];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
    fs::write(&path, text.replace("deny:", "denny:")).unwrap();
    let mut broken = page.data("/api/review")["setup"].take();
    let before = broken.as_array_mut().unwrap().split_off(1);
    let placed = before.iter().filter(|problem| problem["place"] != "");
    assert_eq!(placed.count(), expected.len(), "{before:?}");
    let what = format!(
        "{}:48: `access[1].denny` is not a known key; did you mean `deny`?",
        at(4)
    );
    let fix = "correct the file: Vary cannot reload it, nor start with it";
    assert_eq!(
        broken,
        json!([{"place": "", "what": what, "fix": fix, "variant": null, "kind": "file"}])
    );
}

/// OP-9
#[cfg(unix)]
#[test]
fn a_draft_is_saved_whole_or_not_at_all_and_undone() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let state = state("page-writes");
    let audit = state.join("audit.jsonl");
    fs::create_dir_all(&state).unwrap();
    let log = audit.display();
    let lines = format!("listen: 0\nadmin: 0\nadmin-writes: on\naudit: {{to: 'file {log}'}}\n");
    let variants = "variants:\n  standard: {}\n  few: {tools: ['*a*']} # mine\n";
    let before = format!("# Mine.\n{}{variants}{lines}", sky(""));
    let path = file("page-writes.yaml", &before);
    let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o640);
    let link = state.join("vary.yaml");
    symlink(&path, &link).unwrap();
    let server = Server::with_state(&state, &["serve", link.to_str().unwrap()]);
    let page = Opened::at(&printed(&state, &[&server.admin()]));
    assert_eq!(page.data("/api/status")["writes"], true);
    let digest = page.data("/api/variant?id=few")["digest"].clone();
    let save = |value: Value| json!({"id": "few", "value": value, "clients": ["cursor*"], "digest": digest});
    let text = || fs::read_to_string(&path).unwrap();

    let unknown = save(json!({"tols": []}));
    page.refuses("/api/save", &unknown, "did you mean `tools`?");
    let lost = "nothing to undo: no variant was saved since Vary started";
    page.refuses("/api/undo", &json!({}), lost);
    let change = save(json!({"tools": ["*b*"]}));
    mode(0o440);
    page.refuses("/api/save", &change, "is read-only");
    mode(0o640);
    let second = state.join("second");
    fs::hard_link(&path, &second).unwrap();
    page.refuses("/api/save", &change, "several names");
    fs::remove_file(&second).unwrap();
    assert_eq!(text(), before);

    let last_save = || page.data("/api/variant?id=standard")["lastSave"].clone();
    let saved = json_of(&page.post("/api/save", &change));
    assert_eq!(saved["isUsed"], true, "{saved}");
    let outcome = saved["outcome"].as_str().unwrap();
    assert!(outcome.contains("reloaded: "), "{outcome}");
    let rules = "clients:\n  - {name: \"cursor*\", variant: few}\n";
    let after = before.replace("['*a*']", "[\"*b*\"]") + rules;
    assert_eq!(text(), after);
    assert!(link.is_symlink());
    let kept_mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(kept_mode, 0o640);
    let changed = "the file was changed since the page read it";
    page.refuses("/api/save", &change, changed);

    let undoable = last_save();
    assert_eq!(undoable["variant"], "few");
    assert_eq!(undoable["isNew"], false);
    assert!(undoable["at"].as_u64() > Some(1_700_000_000), "{undoable}");
    fs::write(&path, format!("{after}# More.\n")).unwrap();
    assert_eq!(last_save(), Value::Null, "the file is another");
    page.refuses("/api/undo", &json!({}), changed);
    fs::write(&path, &after).unwrap();
    json_of(&page.post("/api/undo", &json!({})));
    assert_eq!(text(), before);
    assert_eq!(last_save(), Value::Null, "it is undone");
    assert_eq!(server.end().0, Some(0));
    let records = fs::read_to_string(&audit).unwrap();
    let expected = ["POST /api/save", "POST /api/undo", "config.reloaded"];
    assert_contains(&records, &expected);
}

/// OP-9: The page and the command count the same.
#[test]
fn the_page_counts_what_inspect_counts() {
    let state = state("page-figures");
    let path = file(
        "page-figures.yaml",
        &format!(
            "servers:\n  sky: {{command: {VARY:?}, args: [weather]}}\n  sea: {{command: {VARY:?}, args: [weather]}}
listen: 0\nadmin: 0\nread-result: on
variants:\n  standard: {{}}\n  compact: {{}}\n  directory: {{}}\n  read-only: {{}}
  few: {{description: Few., tools: {{include: [\"sky_*\"]}}}}\n"
        ),
    );
    let server = Server::with_state(&state, &["serve", &path]);
    let page = Opened::at(&printed(&state, &[&server.admin()]));
    let catalog = page.data("/api/catalog");
    let inspected = run(&["inspect", &path, "--json"]).json(0);
    let shown = catalog["variants"].as_array().unwrap();
    assert_eq!(shown.len(), 5);
    for variant in shown {
        let mut inspected = inspected["variants"].as_array().unwrap().iter();
        let expected = inspected.find(|it| it["id"] == variant["id"]).unwrap();
        for key in ["tokens", "wholeTokens", "description", "status"] {
            assert_eq!(variant[key], expected[key], "{key}: {variant} {expected}");
        }
        let tools = expected["tools"].as_array().unwrap();
        assert_eq!(variant["tools"], tools.len());
        let id = variant["id"].as_str().unwrap();
        let listed = catalog["tools"].as_array().unwrap().iter();
        let listed = listed
            .map(|tool| &tool["variants"][id])
            .filter(|it| !it.is_null());
        let mut counted: Vec<_> = listed
            .map(|it| (it["name"].clone(), it["tokens"].clone()))
            .collect();
        for own in catalog["own"].as_array().unwrap() {
            if let Some(shown) = own["variants"].get(id) {
                counted.push((own["name"].clone(), shown["tokens"].clone()));
            }
        }
        let mut expected: Vec<_> = tools
            .iter()
            .map(|it| (it["name"].clone(), it["tokens"].clone()))
            .collect();
        let by_name =
            |tools: &mut Vec<(Value, Value)>| tools.sort_by_key(|(name, _)| name.to_string());
        by_name(&mut counted);
        by_name(&mut expected);
        assert_eq!(counted, expected, "{id}");
    }
}
