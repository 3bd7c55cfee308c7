//! Servers that offer variants themselves: what each command says, and how one is selected.

use serde_json::json;

use crate::program::{Server, VARY, file, run};
use crate::text::{assert_contains, assert_lacks};

/// A file whose server is another gateway, with further keys of its entry.
fn in_front_of(inner: &Server, name: &str, entry: &str) -> String {
    let url = inner.url();
    let text = format!(
        "servers: {{inner: {{url: \"{url}\"{entry}}}}}\nvariants: off\nlisten: 0\nadmin: 0\n"
    );
    file(name, &text)
}

const NOTE: &str = "server `inner` offers variants of its own: `standard`, `compact`, `directory`, `read-only`. Vary uses \
                    `standard`; add `variant` to its entry to select one, and another entry for each further one";

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

/// EXT-9, CN-19: a real Vary behind a Vary, over HTTP and as a program, with an entry for each of two variants: what a client
/// gets, whatever feature tags it declares, is byte for byte what the inner one alone answers.
#[test]
fn results_under_a_variant_of_a_server_are_those_of_the_server() {
    let inner = Server::with_weather(&[]);
    let url = inner.url();
    let program = format!("command: {VARY}, args: [serve, --stdio, --, {VARY}, weather]");
    let text = format!(
        "servers:\n  far: {{url: \"{url}\", variant: standard, passthrough: on}}\n  \
         near: {{{program}, variant: compact, passthrough: on}}\nlisten: 0\n"
    );
    let path = file("upstream-variants-features.yaml", &text);
    let outer = Server::start(&["serve", &path]);
    let call = |server: &Server, tool: &str, variant: &[&str], tags: &str| {
        let features = format!("--features={tags}");
        let called = ["call", tool, "location=Bern", "--json", &features];
        run(&[&called[..], variant, &[&server.url()]].concat()).data(0)
    };
    for tags in [
        "human",
        "agent,format=json",
        "format=text,verbosity=compact",
    ] {
        for (name, variant) in [("far", "standard"), ("near", "compact")] {
            let alone = call(&inner, "get_weather", &["--variant", variant], tags);
            let passed = call(&outer, &format!("{name}_get_weather"), &[], tags);
            assert_eq!(passed, alone, "{name} {tags}");
        }
    }
}
