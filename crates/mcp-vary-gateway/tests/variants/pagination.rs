//! Lists in pages: what a client reads that follows the cursors while things change.

use std::num::NonZeroUsize;

use mcp_vary_config::Source;
use mcp_vary_gateway::settings::sealing_keys::SealingKey;
use proptest::prelude::*;

use crate::support::*;

/// What a server lists, by the tests' hand; a call of any tool announces that it changed.
type Names = Arc<Mutex<Vec<u8>>>;

fn listing(names: &Names) -> Script {
    type Item = fn(u8) -> Value;
    let changes = json!({"listChanged": true});
    let script = Script::legacy("p")
        .declares(json!({"tools": changes, "resources": changes, "prompts": changes}));
    let script = script.reply("tools/call", |seen| {
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        let done = seen.message(&json!({"content": []}));
        Reply::events(event(&changed) + &event(&done))
    });
    let lists: [(&str, &str, Item); 4] = [
        ("tools/list", "tools", |name| {
            json!({
                "name": format!("t{name}"), "inputSchema": {"type": "object"},
            })
        }),
        (
            "resources/list",
            "resources",
            |name| json!({"uri": format!("r:{name}"), "name": "r"}),
        ),
        ("resources/templates/list", "resourceTemplates", |name| {
            json!({
                "uriTemplate": format!("t:{name}/{{x}}"), "name": "t",
            })
        }),
        (
            "prompts/list",
            "prompts",
            |name| json!({"name": format!("p{name}")}),
        ),
    ];
    lists
        .into_iter()
        .fold(script, |script, (method, key, item)| {
            let names = Arc::clone(names);
            script.on(method, move |_| {
                let names = names.lock().unwrap();
                json!({key: names.iter().map(|name| item(*name)).collect::<Vec<_>>()})
            })
        })
}

fn names(all: impl IntoIterator<Item = u8>) -> Names {
    Arc::new(Mutex::new(all.into_iter().collect()))
}

fn paged(config: Config, size: usize) -> Config {
    config.with_page_size(NonZeroUsize::new(size).unwrap())
}

/// A gateway before two servers with these names, that puts so many items on a page.
async fn in_pages(names: [&Names; 2], size: usize) -> (Harness, ScriptedServer) {
    let [one, two] = names.map(listing);
    let servers = [one.start().await, two.start().await];
    Harness::behind_two(servers, |config| paged(config, size)).await
}

const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("resources/list", "resources", "uri"),
    (
        "resources/templates/list",
        "resourceTemplates",
        "uriTemplate",
    ),
    ("prompts/list", "prompts", "name"),
];

fn ids(answer: &Value, key: &str, id: &str) -> Vec<String> {
    let items = answer["result"][key].as_array();
    let items = items.unwrap_or_else(|| panic!("{answer}"));
    items
        .iter()
        .map(|item| item[id].as_str().unwrap().to_owned())
        .collect()
}

/// SV-13: over several servers and all kinds, pages of the size that was asked for make up the list.
#[tokio::test]
async fn pages_of_every_list_of_several_servers_make_up_the_list() {
    let (one, two) = (names(0..3), names(3..7));
    let (harness, _two) = in_pages([&one, &two], 2).await;
    for way in ClientKind::ALL {
        for (method, key, id) in LISTS {
            for variant in ["standard", "compact"] {
                let (mut pages, mut params) = (Vec::new(), json!({}));
                loop {
                    let arguments = under(variant, params.clone());
                    let page = harness.ask(way, method, arguments).await;
                    pages.push(ids(&page, key, id));
                    let Some(cursor) = page["result"]["nextCursor"].as_str() else {
                        break;
                    };
                    assert!(cursor.len() < 200, "{}", cursor.len());
                    params = json!({"cursor": cursor});
                }
                let sizes: Vec<_> = pages.iter().map(Vec::len).collect();
                assert_eq!(sizes, [2, 2, 2, 1], "{way:?} {method}");
                let mut all = pages.concat();
                assert_eq!(all.len(), 7);
                all.sort();
                all.dedup();
                assert_eq!(all.len(), 7, "{way:?} {method}: {all:?}");
            }
        }
    }
}

/// SV-13: a cursor opens for its own list and variant only, whichever list it is of.
#[tokio::test]
async fn a_cursor_of_one_list_opens_no_other() {
    let (one, two) = (names(0..3), names(3..7));
    let (harness, _two) = in_pages([&one, &two], 2).await;
    let ask = async |variant: &str, method: &str, params: Value| {
        harness.ask_modern(method, under(variant, params)).await
    };
    for (made_for, ..) in LISTS {
        let page = ask("standard", made_for, json!({})).await;
        let cursor = &page["result"]["nextCursor"];
        for (method, ..) in LISTS {
            let answer = ask("standard", method, json!({"cursor": cursor})).await;
            if method == made_for {
                assert!(answer["result"].is_object(), "{answer}");
            } else {
                assert_eq!(answer["error"]["message"], "Invalid cursor", "{method}");
            }
            let answer = ask("compact", method, json!({"cursor": cursor})).await;
            let why = if method == made_for {
                "Cursor invalid for requested variant"
            } else {
                "Invalid cursor"
            };
            assert_eq!(answer["error"]["message"], why, "{method}");
        }
    }
    for cursor in [json!(7), json!({}), json!(["x"]), json!("null")] {
        let answer = ask("standard", "tools/list", json!({"cursor": cursor})).await;
        assert_eq!(answer["error"]["code"], -32602, "{cursor}: {answer}");
    }
}

/// SV-13: also a cursor that is none at all is refused with the variant that the list is of.
#[tokio::test]
async fn a_cursor_that_is_not_text_is_refused_with_the_active_variant() {
    let harness = Harness::start().await;
    for kind in ClientKind::ALL {
        for method in ["tools/list", "resources/list", "prompts/list"] {
            let params = under("compact", json!({"cursor": 5}));
            let refused = harness.ask(kind, method, params).await;
            let expected = json!({
                "code": -32602, "message": "`cursor` must be a string", "data": {"activeVariant": "compact"},
            });
            assert_eq!(refused["error"], expected, "{kind:?} {method}");
        }
    }
}

/// Clients exist that write `null` or an empty text for a member that they do not have.
#[tokio::test]
async fn a_cursor_that_is_null_or_empty_begins_the_list() {
    let harness = Harness::start().await;
    for way in ClientKind::ALL {
        for method in ["tools/list", "resources/list", "prompts/list"] {
            let ask = async |params: Value| harness.ask(way, method, params).await;
            let first = ask(json!({})).await;
            assert!(first["result"].is_object(), "{first}");
            assert_eq!(ask(json!({"cursor": null})).await, first, "{way:?}");
            assert_eq!(ask(json!({"cursor": ""})).await, first, "{way:?}");
        }
    }
}

/// SV-13: replicas that share the key share cursors, also while it is being replaced.
#[tokio::test]
async fn cursors_outlive_a_rotation_of_the_key() {
    let all = names(0..5);
    let start = async |adapt: fn(Config) -> Config| {
        let peer = listing(&all).start().await;
        Harness::behind_one(peer, |config| adapt(paged(config, 2))).await
    };
    let old = start(|config| config.with_key([1; 32])).await;
    let ask =
        async |harness: &Harness, params: Value| harness.ask_modern("tools/list", params).await;
    let page = ask(&old, json!({})).await;
    let cursor = json!({"cursor": page["result"]["nextCursor"]});
    let same = start(|config| config.with_key([1; 32])).await;
    let rotated = start(|mut config| {
        config.previous_keys = vec![SealingKey([1; 32])];
        config.with_key([2; 32])
    })
    .await;
    for harness in [&same, &rotated] {
        let answer = ask(harness, cursor.clone()).await;
        assert_eq!(ids(&answer, "tools", "name"), ["t2", "t3"]);
    }
    let other = start(|config| config.with_key([2; 32])).await;
    let answer = ask(&other, cursor).await;
    answer.has("/error/message", "Invalid cursor");
    let page = ask(&rotated, json!({})).await;
    let cursor = json!({"cursor": page["result"]["nextCursor"]});
    let answer = ask(&same, cursor).await;
    // A new cursor is sealed with the new key.
    answer.has("/error/message", "Invalid cursor");
}

/// Reads the tools of a server page by page; between two pages its list becomes the next of `lists`.
async fn read(size: usize, lists: &[Vec<u8>]) -> Vec<u8> {
    let names = names(lists[0].iter().copied());
    let peer = listing(&names).start().await;
    let harness = Harness::behind_one(peer, |config| paged(config, size)).await;
    let ask = async |method: &str, params: Value| harness.ask_modern(method, params).await;
    let (mut read, mut params) = (Vec::new(), json!({}));
    for round in 1.. {
        let page = ask("tools/list", params).await;
        let listed = ids(&page, "tools", "name");
        read.extend(listed.iter().map(|name| name[1..].parse::<u8>().unwrap()));
        let Some(cursor) = page["result"]["nextCursor"].as_str() else {
            break;
        };
        params = json!({"cursor": cursor});
        if let Some(next) = lists.get(round) {
            next.clone_into(&mut names.lock().unwrap());
            // What stays can be called; what the call announces is read before the next list.
            let sent = ask("tools/call", tool("t200")).await;
            assert!(sent["result"].is_object(), "{sent}");
        }
    }
    read
}

/// SV-13: what is listed before and after a change is not skipped, and what was read is not repeated.
#[tokio::test]
async fn a_list_that_changes_between_two_pages_loses_nothing() {
    let first: Vec<u8> = (10..16).chain([200]).collect();
    // Something came, before and behind the place; then something went: what was read, what was read last, what was to be
    // read next; then all that was read went, and all that was to be read.
    for [then, expected] in rows(
        r#"
        [1, 10, 11, 12, 13, 14, 15, 200]  | [10, 11, 12, 13, 14, 15, 200]
        [10, 11, 99, 12, 13, 14, 15, 200] | [10, 11, 99, 12, 13, 14, 15, 200]
        [11, 12, 13, 14, 15, 200]         | [10, 11, 12, 13, 14, 15, 200]
        [10, 12, 13, 14, 15, 200]         | [10, 11, 12, 13, 14, 15, 200]
        [10, 11, 13, 14, 15, 200]         | [10, 11, 13, 14, 15, 200]
        [12, 13, 14, 15, 200]             | [10, 11, 12, 13, 14, 15, 200]
        [10, 11]                          | [10, 11]
    "#,
    ) {
        let lists = [first.clone(), serde_json::from_str(then).unwrap()];
        assert_eq!(json!(read(2, &lists).await), cell(expected), "{then}");
    }
}

fn changes() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let list = prop::collection::btree_set(0..30_u8, 0..12);
    let list = list.prop_map(|names| names.into_iter().chain([200]).collect());
    prop::collection::vec(list, 2..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    /// SV-13: through a whole gateway, whatever comes and goes.
    #[test]
    fn what_stays_is_read_through_a_gateway(size in 1..5_usize, lists in changes()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let read = runtime.block_on(read(size, &lists));
        for name in &lists[0] {
            if lists.iter().all(|list| list.contains(name)) {
                prop_assert!(read.contains(name), "{name} is missing in {read:?}");
            }
        }
    }
}

/// SV-23: a server's change reaches every variant that shows it, and the lists of others stay.
#[tokio::test]
async fn a_change_of_one_server_reaches_every_variant() {
    let (one, two) = (names([1, 200]), names([2]));
    let (harness, _two) = in_pages([&one, &two], 100).await;
    one.lock().unwrap().push(3);
    let told = harness.ask_modern("tools/call", tool("one_t200")).await;
    assert!(told["result"].is_object(), "{told}");
    for (variant, tools) in [
        ("standard", &["one_t1", "one_t200", "one_t3", "two_t2"][..]),
        ("compact", &["one_t1", "one_t200", "one_t3", "two_t2"]),
        ("read-only", &[]),
    ] {
        for way in ClientKind::ALL {
            let params = under(variant, json!({}));
            let list = harness.ask(way, "tools/list", params).await;
            assert_eq!(ids(&list, "tools", "name"), tools, "{way:?} {variant}");
        }
    }
    let prompts = harness.peer.of("prompts/list").len();
    assert_eq!(prompts, 1, "only the list that was announced is read again");
}

/// SV-13: the keys of a file are the same in every process that reads it; the first seals, the others open.
#[tokio::test]
async fn the_keys_of_a_file_are_shared_and_rotate() {
    let all = names(0..5);
    let start = async |keys: &str| {
        let peer = listing(&all).start().await;
        let url = &peer.url;
        let text = format!("servers: {{a: {{url: '{url}'}}}}\npage-size: 2\n{keys}");
        let file = Source::new("vary.yaml", &text).read(&|_| None).unwrap();
        let shown = format!("{file:?}");
        assert!(!shown.contains("secret"), "{shown}");
        Harness::behind_one(peer, |config| file.into_config(config.environment)).await
    };
    let [one, two] = ["one secret", "two secret"].map(|key| key.repeat(4));
    let ask =
        async |harness: &Harness, params: Value| harness.ask_modern("tools/list", params).await;
    let old = start(&format!("keys: ['{one}']")).await;
    let page = ask(&old, json!({})).await;
    let cursor = json!({"cursor": page["result"]["nextCursor"]});
    for (keys, opens) in [
        (format!("keys: ['{one}']"), true),
        (format!("keys: ['{two}', '{one}']"), true),
        (format!("keys: ['{two}']"), false),
        (String::new(), false),
    ] {
        let harness = start(&keys).await;
        let answer = ask(&harness, cursor.clone()).await;
        assert_eq!(answer["result"].is_object(), opens, "{keys}: {answer}");
    }
}

#[test]
fn a_key_that_can_be_guessed_is_refused_and_not_shown() {
    let text = "servers: {a: {command: x}}\nkeys: [hunter2]\n";
    let mistakes = Source::new("vary.yaml", text).read(&|_| None).unwrap_err();
    let said = mistakes.to_string();
    assert!(
        said.contains("keys[0]") && said.contains("openssl rand"),
        "{said}"
    );
    assert!(!said.contains("hunter2"), "{said}");
}
