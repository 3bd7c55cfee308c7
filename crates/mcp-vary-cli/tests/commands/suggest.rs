//! `vary suggest`

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use mcp_vary_testkit::script::Script;
use serde_json::{Value, json};

use crate::program::{Run, Server, VARY, command_with_state, file, state};
use crate::text::assert_contains;

/// What a client did in 40 tasks, a session each: the tools that it called, with their arguments. The owner is `acme` where none
/// is named.
const TASKS: &str = "\
issues_search repo=site query=crash; issues_get repo=site id=71; files_get repo=site path=src/menu.rs; pulls_create repo=site title=menu
issues_search repo=site query=login; issues_get repo=site id=72; files_search repo=site query=login; files_get repo=site path=src/login.rs
pulls_list repo=site; pulls_get repo=site id=9; commits_list repo=site; comments_create repo=site id=9 text=fine
issues_search repo=shop query=price; issues_get repo=shop id=3; issues_update repo=shop id=3 state=closed
builds_list repo=shop; builds_get repo=shop id=550; files_get repo=shop path=ci.yaml
issues_search repo=site query=dark; issues_get repo=site id=70; issues_update repo=site id=70 state=open
files_search repo=docs query=install; files_get repo=docs path=install.md; pulls_create repo=docs title=install
pulls_list repo=shop; pulls_get repo=shop id=41; files_get repo=shop path=cart.rs; comments_create repo=shop id=41 text=tests
issues_search repo=docs query=typo; issues_get repo=docs id=12; files_get repo=docs path=index.md
commits_list repo=site; builds_list repo=site; builds_get repo=site id=900
issues_search repo=site query=timeout; issues_get repo=site id=74; files_search repo=site query=timeout; files_get repo=site path=src/net.rs; pulls_create repo=site title=net
pulls_get repo=site id=10; commits_list repo=site; comments_create repo=site id=10 text=rename
issues_search repo=shop query=tax; issues_get repo=shop id=5; files_search repo=shop query=tax; files_get repo=shop path=tax.rs
releases_list repo=site; commits_list repo=site; releases_create repo=site title=2.1
issues_search repo=site query=slow; issues_get repo=site id=77; builds_get repo=site id=901
files_get repo=shop path=README.md; pulls_create repo=shop title=readme
issues_search repo=site query=menu; issues_get repo=site id=71; issues_update repo=site id=71 state=closed
pulls_list repo=docs; pulls_get repo=docs id=2; comments_create repo=docs id=2 text=thanks
issues_search repo=docs query=link; issues_get repo=docs id=14; files_get repo=docs path=links.md; pulls_create repo=docs title=links
builds_list repo=site; builds_get repo=site id=902; files_get repo=site path=ci.yaml; commits_list repo=site
issues_search repo=shop query=mail; issues_get repo=shop id=8; files_search repo=shop query=smtp; files_get repo=shop path=mail.rs
pulls_get repo=shop id=42; files_get repo=shop path=mail.rs; comments_create repo=shop id=42 text=ok
issues_search repo=site query=font; issues_get repo=site id=80; issues_update repo=site id=80 state=closed
users_get name=ann; issues_search repo=site query=ann; issues_get repo=site id=81
issues_search repo=site query=deprecated; files_search repo=site query=deprecated; files_get repo=site path=src/old.rs; pulls_create repo=site title=old
issues_search repo=docs query=search; issues_get repo=docs id=15; issues_update repo=docs id=15 state=closed
commits_list repo=shop; builds_get repo=shop id=551; files_get repo=shop path=cart.rs
pulls_list repo=site; pulls_get repo=site id=11; files_get repo=site path=src/menu.rs; comments_create repo=site id=11 text=nice
issues_search repo=site query=cache; issues_get repo=site id=82; files_search repo=site query=cache
releases_list repo=shop; commits_list repo=shop; releases_create repo=shop title=1.4
issues_search repo=shop query=stock; issues_get repo=shop id=9; files_get repo=shop path=stock.rs; pulls_create repo=shop title=stock
issues_search owner=guest repo=fork query=merge; issues_get repo=site id=83; pulls_get repo=site id=12
builds_list repo=docs; builds_get repo=docs id=31; files_get repo=docs path=ci.yaml
issues_search repo=site query=print; issues_get repo=site id=84; issues_update repo=site id=84 state=open
files_search repo=shop query=currency; files_get repo=shop path=money.rs; pulls_create repo=shop title=money
pulls_list repo=shop; pulls_get repo=shop id=43; commits_list repo=shop; comments_create repo=shop id=43 text=why
issues_search repo=docs query=api; issues_get repo=docs id=17; files_get repo=docs path=api.md
labels_create repo=site name=urgent; issues_search repo=site query=leak; issues_get repo=site id=85; issues_update repo=site id=85 state=open
issues_search repo=site query=leak; issues_get repo=site id=85; files_get repo=site path=src/net.rs; builds_get repo=site id=903
commits_list repo=docs; files_get repo=docs path=changes.md; pulls_create repo=docs title=changes";

/// What a server lists: each of these, in each way.
const THINGS: &str = "boards branches builds cards comments commits environments files forks gists hooks issues keys labels \
                      milestones packages pulls releases runners secrets tags teams users wikis";
const ACTIONS: &str = "archive count create delete export get list search share update";

/// A call of a task.
struct Call {
    tool: String,
    arguments: Value,
}

/// The calls of each task.
fn tasks() -> Vec<Vec<Call>> {
    let calls = |task: &str| task.split("; ").map(call).collect();
    TASKS.lines().map(calls).collect()
}

fn call(text: &str) -> Call {
    let (tool, given) = text.split_once(' ').unwrap();
    let mut arguments = json!({"owner": "acme"});
    for argument in given.split(' ') {
        let (name, value) = argument.split_once('=').unwrap();
        arguments[name] = value.into();
    }
    let tool = tool.to_owned();
    Call { tool, arguments }
}

/// The definitions of the tools of a large server.
fn tools() -> Value {
    let tool = |thing: &str, action: &str| {
        let text = |about: &str| json!({"type": "string", "description": format!("{about} of the {thing} to {action}.")});
        let mut properties = json!({});
        for name in [
            "owner", "repo", "id", "query", "path", "title", "text", "state", "name",
        ] {
            properties[name] = text(name);
        }
        json!({
            "name": format!("{thing}_{action}"),
            "description": format!("Does {action} for {thing} of a repository, and returns what came of it."),
            "inputSchema": {"type": "object", "properties": properties, "required": ["owner"]},
        })
    };
    let things = THINGS.split_whitespace();
    things
        .flat_map(|thing| {
            ACTIONS
                .split_whitespace()
                .map(move |action| tool(thing, action))
        })
        .collect()
}

/// The audit log of the calls of these tasks.
fn log<'t>(name: &str, tasks: impl Iterator<Item = (usize, &'t Vec<Call>)>) -> String {
    let mut text = String::new();
    for (session, calls) in tasks {
        for Call { tool, arguments } in calls {
            let record = json!({
                "v": 1, "time": "2026-11-21T06:00:00.000000Z", "event": "request", "outcome": "allowed",
                "client": {"name": "robot"}, "session": session.to_string(),
                "method": "tools/call", "target": {"kind": "tool", "name": tool, "server": "forge", "upstream_name": tool},
                "arguments": {"bytes": 1, "text": arguments.to_string()},
            });
            writeln!(text, "{record}").unwrap();
        }
    }
    file(name, &text)
}

/// Whether a client of the proposed variant can make a call.
fn is_possible(proposal: &Value, call: &Call) -> bool {
    let tools = proposal["value"]["tools"].as_array().unwrap();
    let arguments = &proposal["value"]["overrides"]["tools"][&call.tool]["arguments"];
    let mut fixed = arguments.as_object().into_iter().flatten();
    let is_given = |name: &String, value: &Value| call.arguments[name] == *value;
    tools.contains(&call.tool.as_str().into())
        && fixed.all(|(name, it)| is_given(name, &it["fixed"]))
}

#[track_caller]
fn proposed(state: &Path, address: &str, log: &str) -> Value {
    let args = [
        "suggest", "ROBOT", "--audit", log, "--admin", address, "--json",
    ];
    Run::with_state(state, &args).json(0)
}

/// Of 240 tools, those of 39 tasks suffice for nine calls in ten of another task, at a fifth of the tokens.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_used_in_some_tasks_suffices_for_others() {
    let server = Script::legacy("forge")
        .lists(json!({"tools": tools()}))
        .start()
        .await;
    let text = format!(
        "servers: {{forge: {{url: {:?}}}}}\nvariants: {{standard: {{}}}}\nlisten: 0\nadmin: 0\n",
        server.url
    );
    let state = state("suggest-tasks");
    let gateway = Server::with_state(&state, &["serve", &file("suggest-tasks.yaml", &text)]);
    let address = gateway.admin();
    let tasks = tasks();
    assert_eq!(tasks.len(), 40);
    let all = log("suggest-all.jsonl", tasks.iter().enumerate());
    let whole = proposed(&state, &address, &all);
    assert_eq!(whole["allTools"], 240);
    assert!(
        tasks.iter().flatten().all(|call| is_possible(&whole, call)),
        "{whole}"
    );
    let overrides = whole["value"]["overrides"]["tools"].as_object().unwrap();
    let fixed: BTreeSet<_> = overrides
        .iter()
        .map(|(tool, it)| format!("{tool} {it}"))
        .collect();
    let owner = json!({"arguments": {"owner": {"fixed": "acme"}}});
    // Another owner was searched once.
    let expected = ["files_get", "issues_get"].map(|tool| format!("{tool} {owner}"));
    assert_eq!(fixed, BTreeSet::from(expected));
    let (mut calls, mut possible) = (0, 0);
    for left_out in 0..tasks.len() {
        let others = tasks.iter().enumerate().filter(|(at, _)| *at != left_out);
        let proposal = proposed(&state, &address, &log("suggest-others.jsonl", others));
        let [tokens, of] = ["tokens", "allTokens"].map(|key| proposal[key].as_u64().unwrap());
        assert!(tokens * 5 <= of, "{tokens} of {of}");
        calls += tasks[left_out].len();
        possible += tasks[left_out]
            .iter()
            .filter(|call| is_possible(&proposal, call))
            .count();
    }
    assert!(possible * 10 >= calls * 9, "{possible} of {calls}");
}

/// The calls that a running gateway remembers, and what is said where there are none.
#[test]
fn a_variant_is_proposed_from_the_last_calls() {
    let state = state("suggest-history");
    let path = file("suggest-none.txt", "no record\n");
    let args = [
        "serve", "--listen", "0", "--admin", "0", "--", VARY, "weather",
    ];
    let server = Server::with_state(&state, &args);
    let (address, url) = (server.admin(), server.url());
    let suggest = |args: &[&str]| {
        let args = [&["suggest", "--admin", &address], args].concat();
        Run::with_state(&state, &args)
    };
    suggest(&[]).refuses(&["no calls of tools yet since the start of the gateway; "]);
    suggest(&["--audit", &path]).refuses(&["suggest-none.txt has no record of an audit log"]);
    let mut stranger = command_with_state(&state, &["suggest", "--admin", &address]);
    let refused = Run::of(stranger.env("VARY_ADMIN_TOKEN", "correct-horse-battery"));
    refused.refuses(&[&format!("{address} does not accept the token; ")]);
    let gone = Run::with_state(&state, &["suggest", "--admin", "1"]);
    gone.refuses(&["no answer from 127.0.0.1:1: connection refused; "]);
    let calling = [
        "call",
        "get_weather",
        "location=Bern",
        "--client-name",
        "robot",
        &url,
    ];
    Run::with_state(&state, &calling).exited(0);
    suggest(&["robots"]).refuses(&[
        "no calls of a client `robots`; did you mean `robot`? there are calls of `robot`\n",
    ]);
    let shown = suggest(&["Robot"]).exited(0);
    let begin = "# 1 of 2 tools was called, in 1 call. They cost ";
    let end = "\nrobot:\n  tools: [get_weather]\n";
    assert_contains(&shown.stdout, &[begin, "/mcp/v/robot; ", end]);
    assert_contains(
        &shown.stderr,
        &["to have arguments fixed, too, log them: set `arguments: full` under `audit`, "],
    );
}

#[cfg(unix)]
#[test]
fn a_gateway_without_a_page_has_no_history() {
    let state = std::env::temp_dir().join(format!("vary-suggest-{}", std::process::id()));
    let args = [
        "serve", "--listen", "0", "--admin", "off", "--", VARY, "weather",
    ];
    let _server = Server::with_state(&state, &args);
    Run::with_state(&state, &["suggest"]).refuses(&["has no page, which records calls; "]);
    std::fs::remove_dir_all(&state).unwrap();
}
