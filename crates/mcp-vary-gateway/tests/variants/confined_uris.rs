//! Resources that a variant hides, asked for by other spellings of their URIs: behind the gateway is a server that
//! resolves paths as file servers do.

use mcp_vary_testkit::lenient_path::lenient_path;
use mcp_vary_view::ResourceOverride;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::support::*;

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// A server that lists these resources and a template for all files below `/srv/docs`.
fn server(era: Era, resources: &[&str], streams: &Streams) -> Script {
    let resource = |uri: &&str| json!({"uri": uri, "name": uri});
    Script::new(era, "files")
        .declares(json!({"resources": {"subscribe": true}, "completions": {}}))
        .lists(json!({"resources": resources.iter().map(resource).collect::<Vec<_>>()}))
        .lists(json!({"resourceTemplates": [
            {"uriTemplate": "file:///srv/docs/{+path}", "name": "file"},
            {"uriTemplate": "file:///srv/docs/app/{+path}", "name": "of the app"},
            {"uriTemplate": "file:///srv/docs/notes/{name}.md", "name": "note"},
        ]}))
        .on("resources/read", |params| {
            let uri = params["uri"].as_str().unwrap();
            json!({"contents": [{"uri": uri, "text": resolved(uri)}]})
        })
        .tools(&["point"])
        .on_call(|params| {
            json!({"content": [
                {"type": "resource_link", "uri": params["arguments"]["to"], "name": "x"},
            ]})
        })
        .results(json!({"completion/complete": {"completion": {"values": ["one"]}}}))
        .notifies(streams)
        .results(json!({
            "resources/subscribe": {},
            "resources/unsubscribe": {},
        }))
}

/// The path that a lenient file server reads for `uri`: without query and fragment, decoded, with `\` as `/`, and with
/// dot segments and empty segments taken out.
fn resolved(uri: &str) -> String {
    let trimmed = uri.trim().replace(['\t', '\r', '\n'], "");
    let path = trimmed
        .split_once("://")
        .map_or(&*trimmed, |(_, path)| path);
    format!("/{}", lenient_path(path))
}

/// `all` hides nothing; `only` shows what is below `app`, `moved` the same under other URIs, `excl` all but what begins
/// with `secret`, `exact` all but the secret itself, `suffix` notes in markdown, and `renamed` calls the secret
/// otherwise.
fn variants() -> Vec<VariantConfig> {
    let with = |id: &str, resources: Value, moves: &[(&str, &str)]| {
        let mut variant = variant(id);
        variant.resources = serde_json::from_value(resources).unwrap();
        for (native, uri) in moves {
            let uri = Some((*uri).to_owned());
            let change = default_with::<ResourceOverride>(|it| it.uri = uri);
            let native = format!("file:///srv/docs/{native}");
            variant.resource_overrides.insert(native, change);
        }
        variant
    };
    let app = json!({"include": ["file:///srv/docs/app/*"]});
    let excl = json!({"include": ["file:///srv/docs/*"], "exclude": ["file:///srv/docs/secret*"]});
    let exact = json!({"exclude": ["file:///srv/docs/secret"]});
    let suffix = json!({"include": ["file:///srv/docs/notes/*.md"]});
    vec![
        with("all", json!({}), &[]),
        with("only", app.clone(), &[]),
        with("excl", excl, &[]),
        with("exact", exact, &[]),
        with("suffix", suffix, &[]),
        with("moved", app, &[("app/{+path}", "app:///{+path}")]),
        with("renamed", json!({}), &[("secret", "hidden:place")]),
    ]
}

/// Spellings by which a server that resolves paths reads a secret, and the variants that do not show it so.
fn spellings() -> Vec<(String, Vec<String>)> {
    serde_json::from_str(include_str!("confined_uris.json")).unwrap()
}

/// The URIs that the server was asked for and that it takes for a secret.
fn reached(peer: &ScriptedServer) -> Vec<String> {
    let seen = peer.received();
    let uris = seen.iter().flat_map(|seen| {
        let params = &seen.body["params"];
        let listened = params["notifications"]["resourceSubscriptions"].as_array();
        let mut uris = listened.cloned().unwrap_or_default();
        uris.extend([params["uri"].clone(), params["ref"]["uri"].clone()]);
        uris
    });
    let uris = uris.filter_map(|uri| uri.as_str().map(str::to_owned));
    uris.filter(|uri| resolved(uri).ends_with("/secret"))
        .collect()
}

/// The answer is that there is no such resource, or that it cannot be decided which one is meant.
#[track_caller]
fn is_refused(answer: &Value, variant: &str, uri: &str) {
    let error = &answer["error"];
    let message = error["message"].as_str().unwrap_or_default();
    if message.starts_with("`uri` has ") {
        assert_eq!(error["code"], -32602, "{variant} {uri:?} {answer}")
    } else {
        assert!(
            message.starts_with("Resource not found"),
            "{variant} {uri:?} {answer}"
        )
    }
    assert_eq!(error["data"]["activeVariant"], *variant, "{uri:?}");
}

/// A gateway in front of the server, and where the server says that something changed.
async fn harness_and_streams(era: Era, resources: &'static [&'static str]) -> (Harness, Streams) {
    let streams = Streams::default();
    let peer = server(era, resources, &streams).start().await;
    let adapt = |config: Config| config.with_variants_of(variants()).unwrap();
    (Harness::behind_one(peer, adapt).await, streams)
}

/// The server reports a change of the resource as soon as a stream is open.
async fn say_updated(streams: &Streams, uri: &str) {
    let method = "notifications/resources/updated";
    until(async || streams.notify(method, &json!({"uri": uri})) > 0).await;
}

const FILES: &[&str] = &["file:///srv/docs/app/readme", "file:///srv/docs/secret"];

/// Checks with each spelling of a secret that a variant which hides it refuses a client, and that the server is not asked.
async fn hides_every_spelling(
    kinds: [ClientKind; 2],
    is_refused_to: impl AsyncFn(&Harness, ClientKind, &str, &[String]),
) {
    for era in ERAS {
        let (harness, _) = harness_and_streams(era, FILES).await;
        for (variant, spellings) in spellings() {
            for kind in kinds {
                is_refused_to(&harness, kind, &variant, &spellings).await;
            }
        }
        assert_eq!(reached(&harness.peer), [""; 0], "{era:?}");
    }
}

/// The same for a request about one URI, which `params` has.
async fn refuses_every_spelling(method: &str, params: impl Fn(&str) -> Value) {
    let kinds = [ClientKind::HttpLegacy, ClientKind::StdioModern];
    hides_every_spelling(kinds, async |harness, kind, variant, spellings| {
        for uri in spellings {
            let params = under(variant, params(uri));
            is_refused(&harness.ask(kind, method, params).await, variant, uri);
        }
    })
    .await;
}

/// SV-11, SV-12: a hidden resource is reached by no spelling of its URI.
#[tokio::test]
async fn a_hidden_resource_is_not_read_by_another_spelling() {
    refuses_every_spelling("resources/read", |uri| json!({"uri": uri})).await;
}

/// SV-14: a hidden resource is not subscribed to by another spelling of its URI.
#[tokio::test]
async fn a_hidden_resource_is_not_subscribed_to_by_another_spelling() {
    let kinds = [ClientKind::HttpLegacy, ClientKind::StdioLegacy];
    hides_every_spelling(kinds, async |harness, kind, variant, spellings| {
        let mut subscriber = NotificationClient::open(harness, kind, json!({}), None).await;
        for uri in spellings {
            let params = under(variant, json!({"uri": uri}));
            let answer = subscriber.ask("resources/subscribe", params).await;
            is_refused(&answer, variant, uri);
        }
    })
    .await;
}

/// SV-15: a hidden resource is not listened to by another spelling of its URI.
#[tokio::test]
async fn a_hidden_resource_is_not_listened_to_by_another_spelling() {
    let kinds = [ClientKind::HttpModern, ClientKind::StdioModern];
    hides_every_spelling(kinds, async |harness, kind, variant, spellings| {
        let filter = json!({"resourceSubscriptions": spellings});
        let mut subscriber = NotificationClient::open(harness, kind, filter, Some(variant)).await;
        let told = subscriber.receive().await;
        let honoured = &told["params"]["notifications"]["resourceSubscriptions"];
        assert_eq!(*honoured, json!([]), "{variant} {kind:?} {told}");
    })
    .await;
}

/// SV-11: a hidden resource is not completed by another spelling of its URI.
#[tokio::test]
async fn a_hidden_resource_is_not_completed_by_another_spelling() {
    let of = |uri: &str| json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "path", "value": "a"}});
    refuses_every_spelling("completion/complete", of).await;
}

/// SV-11, SV-12: what is refused says which form to write, and that form is looked up like any other.
#[tokio::test]
async fn a_refused_spelling_names_the_form_to_write() {
    let (harness, _) = harness_and_streams(Era::Modern, FILES).await;
    let cases: Vec<[&str; 3]> = rows(
        r#"
        only    | file:///srv/docs/app/x/%2e%2e/readme | `uri` has the segment `%2e%2e`; write `file:///srv/docs/app/readme`
        excl    | file:///srv/docs/%6eotes/a | `uri` has `%6e`, which is not in normal form; write `file:///srv/docs/notes/a`
        moved   | app:///a%2fb | `uri` has `%2f` in its path; write `app:///a/b`
        renamed | file:///srv//docs | `uri` has an empty path segment, `//`; write `file:///srv/docs`
        only    | file:///srv/docs/app/%00 | `uri` has a control character, or white space around it: `%00`; leave it out
    "#,
    )
    .collect();
    for way in ClientKind::ALL {
        for [variant, uri, message] in &cases {
            let read = under(*variant, json!({"uri": uri}));
            let answer = harness.ask(way, "resources/read", read).await;
            let error =
                json!({"code": -32602, "message": message, "data": {"activeVariant": variant}});
            assert_eq!(answer["error"], error, "{way:?}");
        }
    }
    // All of them, and nothing that is merely not there.
    let read = under("only", json!({"uri": "file:///srv/docs/secret"}));
    harness.ask_modern("resources/read", read).await;
    let status = harness.gateway.status();
    let refused = cases.len() * ClientKind::ALL.len();
    assert_eq!(
        serde_json::to_value(&status).unwrap()["counters"]["refused-uris"],
        refused
    );
}

const ODD: &[&str] = &[
    "file:///srv/docs/app/my%20file",
    "file:///srv/docs/app/%7eme",
    "file:///srv/docs/app/./a//b",
    "FILE:///srv/docs/app/x",
    "file:///srv/docs/app/caf\u{e9}",
];

/// SV-11: what a server lists is read by the spelling that it lists, and by others of the same URI. The server is asked by
/// the one that it lists.
#[tokio::test]
async fn a_listed_resource_is_read_in_the_listed_spelling() {
    for era in ERAS {
        let (harness, _) = harness_and_streams(era, ODD).await;
        for (path, listed) in [
            ("my%20file", Some(ODD[0])),
            ("my file", Some(ODD[0])),
            ("m%79%20file", Some(ODD[0])),
            ("%7eme", Some(ODD[1])),
            ("~me", Some(ODD[1])),
            ("./a//b", Some(ODD[2])),
            ("caf\u{e9}", Some(ODD[4])),
            ("caf%c3%a9", Some(ODD[4])),
            // No server lists it: sent as it was written.
            ("your%20file", None),
            ("your file", None),
            ("\u{fc}(1)", None),
        ] {
            let uri = format!("file:///srv/docs/app/{path}");
            let listed = listed.unwrap_or(&uri);
            for (way, variant) in [
                (ClientKind::HttpLegacy, "only"),
                (ClientKind::StdioModern, "excl"),
            ] {
                let read = under(variant, json!({"uri": uri}));
                let answer = harness.ask(way, "resources/read", read).await;
                let content = &answer["result"]["contents"][0];
                assert_eq!(content["uri"], listed, "{uri} {variant} {way:?} {answer}");
            }
        }
        let read = under("exact", json!({"uri": "file:///srv/docs/app/x"}));
        let answer = harness.ask_modern("resources/read", read).await;
        answer.has("/result/contents/0/uri", ODD[3]);
    }
}

/// SV-11: where a variant neither selects nor renames resources, a URI is sent as it was written, whatever is listed.
#[tokio::test]
async fn a_variant_without_rules_sends_every_uri_as_written() {
    for era in ERAS {
        let (harness, _) = harness_and_streams(era, ODD).await;
        let spellings = spellings().into_iter().flat_map(|(_, uris)| uris);
        for uri in spellings.chain(ODD.iter().map(ToString::to_string)) {
            for way in [ClientKind::HttpLegacy, ClientKind::StdioModern] {
                let read = under("all", json!({"uri": uri}));
                let answer = harness.ask(way, "resources/read", read).await;
                let content = &answer["result"]["contents"][0];
                assert_eq!(content["uri"], uri, "{way:?} {answer}");
                let reference = json!({"type": "ref/resource", "uri": uri});
                let argument = json!({"name": "path", "value": "a"});
                let params = under("all", json!({"ref": reference, "argument": argument}));
                harness.ask(way, "completion/complete", params).await;
                let seen = harness.peer.of("completion/complete");
                seen.last().unwrap().body.has("/params/ref/uri", &*uri);
            }
        }
    }
}

/// Texts that a client may give as a URI: of odd parts, and any.
fn any_uri() -> impl Strategy<Value = String> {
    let parts = [
        "file:", "HTTP:", "/", "//", "a", "..", "%2e", "%2F", "%5c", "\\", "%7e", "é", "%c3%a9",
        "%", "?", "#", ";", "%00", "\t", " ", "{+x}", "A",
    ];
    let odd = prop::collection::vec(prop::sample::select(parts.to_vec()), 0..9);
    prop_oneof![3 => odd.prop_map(|parts| parts.concat()), 1 => any::<String>()]
}

/// SV-11: the same of any text that is read, in both eras of servers: a law.
#[test]
fn any_text_passes_a_variant_without_rules_as_written() {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    for era in ERAS {
        let started = async {
            let (harness, _) = harness_and_streams(era, ODD).await;
            let client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
            (harness, client)
        };
        let (harness, client) = runtime.block_on(started);
        let client = std::cell::RefCell::new(client);
        let mut runner = TestRunner::new(proptest::test_runner::Config {
            cases: 48,
            failure_persistence: None,
            ..Default::default()
        });
        let batches = prop::collection::vec(any_uri(), 1..16);
        let result = runner.run(&batches, |uris| {
            for uri in uris {
                let mut client = client.borrow_mut();
                let params = under("all", json!({"uri": uri}));
                let answer = runtime
                    .block_on(client.ask("resources/read", params))
                    .json();
                prop_assert_eq!(&answer["result"]["contents"][0]["uri"], &json!(uri));
            }
            Ok(())
        });
        result.unwrap_or_else(|why| panic!("{era:?}: {why}"));
        runtime.block_on(async { harness.stop() });
    }
}

/// SV-14, SV-15: a client is notified of a resource in the spelling that it subscribed to, and of nothing after it has
/// unsubscribed in it.
#[tokio::test]
async fn changes_are_told_in_the_spelling_that_was_subscribed_to() {
    for era in ERAS {
        let (harness, streams) = harness_and_streams(era, ODD).await;
        let uri = "file:///srv/docs/app/my file";
        for way in [ClientKind::HttpLegacy, ClientKind::StdioLegacy] {
            let mut subscriber = NotificationClient::open(&harness, way, json!({}), None).await;
            let params = under("only", json!({"uri": uri}));
            subscriber
                .succeeds("resources/subscribe", params.clone())
                .await;
            say_updated(&streams, ODD[0]).await;
            assert_eq!(subscriber.change().await, updated(uri, "only"), "{way:?}");
            subscriber.succeeds("resources/unsubscribe", params).await;
        }
        for way in [ClientKind::HttpModern, ClientKind::StdioModern] {
            let filter = json!({"resourceSubscriptions": [uri]});
            let mut subscriber =
                NotificationClient::listening(&harness, way, filter, Some("only")).await;
            say_updated(&streams, ODD[0]).await;
            assert_eq!(subscriber.change().await, updated(uri, "only"), "{way:?}");
        }
    }
}

/// SV-14: a subscription ends by any spelling of its URI.
#[tokio::test]
async fn a_subscription_ends_by_another_spelling() {
    let (harness, _) = harness_and_streams(Era::Legacy, ODD).await;
    for (count, way) in [ClientKind::HttpLegacy, ClientKind::StdioLegacy]
        .into_iter()
        .enumerate()
    {
        let mut subscriber = NotificationClient::open(&harness, way, json!({}), None).await;
        let subscribe = under("only", json!({"uri": "file:///srv/docs/app/my file"}));
        subscriber.succeeds("resources/subscribe", subscribe).await;
        let unsubscribe = json!({"uri": ODD[0]});
        subscriber.ask("resources/unsubscribe", unsubscribe).await;
        let seen = soon(harness.peer.wait_for("resources/unsubscribe", count + 1)).await;
        assert_eq!(seen[count].body["params"]["uri"], ODD[0], "{way:?}");
    }
}

/// SV-12, SV-14: what a server points to is read in the spelling of the link, but not past what the variant hides.
#[tokio::test]
async fn a_link_is_followed_in_its_own_spelling_and_not_past_a_selection() {
    for era in ERAS {
        let (harness, _) = harness_and_streams(era, FILES).await;
        let read = async |uri: &str| {
            let read = under("suffix", json!({"uri": uri}));
            harness.ask_modern("resources/read", read).await
        };
        let point = async |to: &str| {
            let call = under("suffix", json!({"name": "point", "arguments": {"to": to}}));
            harness.ask_modern("tools/call", call).await
        };
        let odd = "file:///srv/docs/notes/deep/%7ea.md";
        let normal = "file:///srv/docs/notes/deep/~a.md";
        for uri in [odd, normal] {
            assert!(read(uri).await["error"].is_object(), "nothing points to it");
        }
        point(odd).await;
        for uri in [odd, normal] {
            let answer = read(uri).await;
            answer.has("/result/contents/0/uri", uri);
        }
        for uri in [
            "file:///srv/docs/notes/deep/../../secret/.md",
            "file:///srv/docs/secret",
            "file:///srv/docs/notes/secret?.md",
            "file:///srv/docs/notes/..%2fsecret#.md",
        ] {
            point(uri).await;
            is_refused(&read(uri).await, "suffix", uri);
        }
        let read = harness.peer.of("resources/read");
        assert_eq!(read.len(), 2, "{era:?}");
    }
}
