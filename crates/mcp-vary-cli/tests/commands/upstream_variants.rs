//! Servers that offer variants themselves: what each command says, and how one is selected.

use serde_json::json;

use crate::program::{Server, VARY, file, run};
use crate::text::{assert_contains, assert_ends, assert_lacks, assert_starts};

/// A file whose server is another gateway, with further keys of its entry.
fn in_front_of(inner: &Server, name: &str, entry: &str) -> String {
    let url = inner.url();
    let text = format!(
        "servers: {{inner: {{url: \"{url}\"{entry}}}}}\nvariants: off\nlisten: 0\nadmin: 0\n"
    );
    file(name, &text)
}

const NOTE: &str = "server `inner` offers variants of its own: `standard`, `compact`, `directory`, `read-only`. Vary uses \
                    `standard`; add `variant` with another id to its entry to use that one instead, or `passthrough: on` to offer all of \
                    them";

/// EXT-9: the check, the start and the status have the variants of a server that clients do not see.
#[test]
fn the_variants_of_a_server_are_named() {
    let inner = Server::with_weather(&[]);
    let path = in_front_of(&inner, "upstream-variants.yaml", "");
    let checked = run(&["config", "check", &path]).data(0);
    assert_contains(&checked, &[&format!("note: {NOTE}\n")]);
    let json = run(&["config", "check", "--json", &path]).json(0);
    let ids = json!(["standard", "compact", "directory", "read-only"]);
    assert_eq!(json["servers"][0]["upstreamVariants"], ids);
    let outer = Server::start(&["serve", &path]);
    assert_contains(&outer.said, &[&format!("\nnote: {NOTE}\n")]);
    let status = run(&["status", &outer.admin()]).data(0);
    assert_contains(&status, &[NOTE]);
}

/// EXT-9: the check and the start say who shapes the results of a server that negotiates content and offers no variants,
/// and what to write if the server shall.
#[test]
fn a_server_that_negotiates_content_is_named() {
    let inner = [
        "serve",
        "--listen",
        "0",
        "--no-variants",
        "--",
        VARY,
        "weather",
    ];
    let inner = Server::start(&inner);
    let note = "note: server `inner` negotiates content itself. Vary shapes its results instead, and sends it no feature \
                tags of clients; add `passthrough: on` to its entry to let it shape them\n";
    for (name, entry, is_noted) in [
        ("negotiates.yaml", "", true),
        ("negotiates-passthrough.yaml", ", passthrough: on", false),
    ] {
        let url = inner.url();
        let text = format!("servers: {{inner: {{url: \"{url}\"{entry}}}}}\nlisten: 0\n");
        let path = file(name, &text);
        let checked = run(&["config", "check", &path]).data(0);
        assert_eq!(checked.contains(note), is_noted, "{checked}");
        let outer = Server::start(&["serve", &path]);
        assert_eq!(outer.said.contains(note), is_noted, "{}", outer.said);
    }
}

/// EXT-9: `variant` of an entry selects one of them, and one that does not exist is a problem.
#[test]
fn the_variant_of_a_server_is_selected_in_its_entry() {
    let inner = Server::with_weather(&[]);
    let path = in_front_of(&inner, "upstream-variant.yaml", ", variant: directory");
    let outer = Server::start(&["serve", &path]);
    assert_lacks(&outer.said, &["variants of its own"]);
    let tools = outer.tools();
    assert!(tools.contains(&"describe_tools".to_owned()), "{tools:?}");
    let path = in_front_of(
        &inner,
        "upstream-variant-unknown.yaml",
        ", variant: directry",
    );
    let checked = run(&["config", "check", &path]).data(1);
    let problem = "server `inner` has no variant `directry`: it offers `standard`, `compact`, `directory`, `read-only`; \
                   change `variant` in its entry";
    assert_contains(&checked, &[problem]);
}

/// EXT-9: with `passthrough: on`, a real Vary behind a Vary: its variants have addresses, are checked, and are no news.
#[test]
fn the_variants_of_a_server_can_be_selected_by_clients() {
    let inner = Server::with_weather(&[]);
    let url = inner.url();
    let text = format!(
        "servers: {{inner: {{url: \"{url}\", passthrough: on}}}}\nvariants: {{everything: {{}}}}\nlisten: 0\nadmin: 0\n"
    );
    let path = file("upstream-variants-passthrough.yaml", &text);
    let checked = run(&["config", "check", &path]).data(0);
    assert_lacks(&checked, &["variants of its own"]);
    assert_contains(&checked, &["inner/directory"]);
    let outer = Server::start(&["serve", &path]);
    let status = run(&["status", &outer.admin()]).data(0);
    assert_contains(&status, &["inner/read-only"]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let list =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
    for (variant, expected) in [("everything", false), ("inner/directory", true)] {
        let head = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\nMCP-Server-Variant: {variant}\r\n"
        );
        let listed = outer.post_with(&list.to_string(), &head);
        let found = listed.contains("describe_tools");
        assert_eq!(found, expected, "{variant}: {listed}");
    }
}

/// EXT-9: a variant of one of two servers is named on the command line and in addresses like any other.
#[test]
fn variants_of_servers_are_named_on_the_command_line() {
    let inner = Server::with_weather(&[]);
    let url = inner.url();
    let text = format!(
        "servers:\n  far: {{url: \"{url}\", passthrough: on}}\n  near: {{url: \"{url}\", passthrough: on}}\n  \
         plain: {{url: \"{url}\"}}\nlisten: 0\nadmin: 0\n"
    );
    let path = file("upstream-variants-commands.yaml", &text);
    let outer = Server::start(&["serve", &path]);
    let running = outer.url();
    let address = |segments: &str| running.replace("/mcp", &format!("/mcp/v/{segments}"));
    let stdio = ["--", VARY, "serve", "--stdio", &path, "--variant"];
    let list = "variant near/directory: 3 tools";
    for target in [
        &["--variant", "near/directory", &path][..],
        &["--variant", "near/directory", &running],
        &[&address("near/directory")],
        &[&address("near%2Fdirectory")],
    ] {
        let listed = run(&[&["tools"], target].concat()).data(0);
        assert!(listed.starts_with(list), "{target:?}: {listed}");
        let call = [&["call", "near_get_weather", "location=Bern"], target];
        let called = run(&call.concat()).data(0);
        assert!(
            called.contains("\"location\": \"Bern\""),
            "{target:?}: {called}"
        );
    }
    let served = run(&[&["tools"], &stdio[..], &["near/directory"]].concat()).data(0);
    assert_starts(&served, list);
    let inspected = run(&["inspect", "--variant", "far/directory", &path]).data(0);
    assert_contains(&inspected, &["  far/directory  stable"]);
    let connect = run(&["connect", "cursor", "--variant", "far/directory", &running]).exited(0);
    let snippet = connect.stdout;
    assert!(snippet.contains(&address("far%2Fdirectory")), "{snippet}");
    let refuses = |id: &str, parts: &[&str]| {
        let serve = ["serve", "--stdio", &path, "--variant", id];
        run(&serve).refuses(parts);
    };
    let problem = "there is no variant `plain/directory`; add `passthrough: on` to the entry of server `plain`, if it \
                   offers this variant";
    refuses("plain/directory", &["--variant: ", problem]);
    let problem = "there is no variant `nix/directory`; choose one of `standard`, `compact`, `directory`, `read-only`";
    refuses("nix/directory", &["--variant: ", problem]);
}

/// EXT-9: a rule that names a variant that the server does not offer is a problem of the file.
#[test]
fn a_variant_that_the_server_lacks_is_a_problem_of_the_file() {
    let inner = Server::with_weather(&[]);
    let text = format!(
        "servers: {{inner: {{url: \"{}\", passthrough: on}}}}\nvariant: inner/directry\n",
        inner.url()
    );
    let path = file("upstream-variants-named.yaml", &text);
    let problem = format!(
        "{path}: rules name the variant `inner/directry`, but server `inner` offers `inner/standard`, `inner/compact`, \
         `inner/directory`, `inner/read-only`"
    );
    let checked = run(&["config", "check", &path]).data(1);
    let expected = format!("\n{problem}\n\n1 problem\n");
    assert_ends(&checked, &expected);
    let json = run(&["config", "check", "--json", &path]).json(1);
    assert_eq!(json["problems"], json!([problem]));
    let fine = file(
        "upstream-variants-named-fine.yaml",
        &text.replace("directry", "directory"),
    );
    run(&["config", "check", &fine]).data(0);
}

/// EXT-9, CN-19: a real Vary behind a Vary, over HTTP and as a program: what a client gets under a variant of the inner one,
/// whatever feature tags it declares, is byte for byte what the inner one alone answers.
#[test]
fn results_under_a_variant_of_a_server_are_those_of_the_server() {
    let inner = Server::with_weather(&[]);
    let url = inner.url();
    let program = format!("command: {VARY}, args: [serve, --stdio, --, {VARY}, weather]");
    let text = format!(
        "servers:\n  far: {{url: \"{url}\", passthrough: on}}\n  near: {{{program}, passthrough: on}}\nlisten: 0\n"
    );
    let path = file("upstream-variants-features.yaml", &text);
    let outer = Server::start(&["serve", &path]);
    let call = |server: &Server, tool: &str, variant: &str, tags: &str| {
        let features = format!("--features={tags}");
        let called = [
            "call",
            tool,
            "location=Bern",
            "--json",
            "--variant",
            variant,
            &features,
        ];
        run(&[&called[..], &[&server.url()]].concat()).data(0)
    };
    for tags in [
        "human",
        "agent,format=json",
        "format=text,verbosity=compact",
    ] {
        let alone = call(&inner, "get_weather", "standard", tags);
        for name in ["far", "near"] {
            let tool = format!("{name}_get_weather");
            let passed = call(&outer, &tool, &format!("{name}/standard"), tags);
            assert_eq!(passed, alone, "{name} {tags}");
        }
    }
}
