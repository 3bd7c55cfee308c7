//! Methods of extensions: when they pass, and when they are refused.

use super::*;

/// SV-12: an unknown method passes only where the variant hides nothing, or where the
/// operator lets it.
#[tokio::test]
async fn methods_of_extensions_pass_where_nothing_is_hidden() {
    for era in [Era::Legacy, Era::Modern] {
        let harness = Harness::with_server(server(era), variants).await;
        let balance = |id: &str| Raw::new("ledger/balance", r#""of":1.0,"Name":"free""#).under(id);
        for (refused, id) in ["only", "bound"].into_iter().enumerate() {
            is_refused(&harness, &balance(id), -32601, &["allow-methods"]).await;
            assert_eq!(count(&harness, METHODS), 4 * (refused as u64 + 1));
        }
        for way in ClientKind::ALL {
            let said = balance("standard").send_to(&harness, way).await;
            let said = &said["result"]["said"];
            let expected = (&json!(1.0), &json!("free"));
            assert_eq!((&said["of"], &said["Name"]), expected, "{way:?}");
        }
        let adapt = |config| {
            let mut config: Config = variants(config);
            config.servers[0].allowed_methods = vec!["ledger/balance".to_owned()];
            config
        };
        let harness = Harness::with_server(server(era), adapt).await;
        for way in ClientKind::ALL {
            let said = balance("only").send_to(&harness, way).await;
            assert_eq!(said["result"]["said"]["of"], 1.0, "{way:?} {said}");
        }
        let other = Raw::new("ledger/close", "").under("only");
        is_refused(&harness, &other, -32601, &["ledger/close"]).await;
    }
}

/// What a server that trims, ignores case or ends texts at a NUL takes for a method of the protocol reaches none.
#[tokio::test]
async fn a_method_that_imitates_one_of_the_protocol_is_unknown() {
    let harness = Harness::with_server(server(Era::Legacy), variants).await;
    for method in [
        "Tools/call",
        " tools/call",
        "tools/call ",
        "tools\0/call",
        "tools/call\0",
        "TOOLS/CALL",
        "tool\u{17f}/call",
        "tools:call",
        "/tools/call",
        "x/../tools/call",
        "Notifications/tools/call",
        "",
    ] {
        let raw = Raw::new(method, r#""name":"delete_all","arguments":{}"#);
        for way in [
            ClientKind::HttpLegacy,
            ClientKind::StdioLegacy,
            ClientKind::StdioModern,
        ] {
            let answer = raw.send_to(&harness, way).await;
            let found = &answer["error"]["code"];
            assert_eq!(*found, -32601, "{way:?} {method:?} {answer}");
        }
    }
    let known = [
        "initialize",
        "notifications/initialized",
        "tools/list",
        "prompts/list",
        "resources/list",
    ];
    let more = [
        "resources/templates/list",
        "server/discover",
        "GET",
        "DELETE",
        "ping",
    ];
    let all = harness.peer.received();
    let mut foreign = all.iter().filter(|seen| {
        let method = seen.method();
        !known.contains(&method) && !more.contains(&method)
    });
    assert!(foreign.next().is_none());
}

/// A read-only variant hides tools, and a compact one nothing.
#[tokio::test]
async fn a_variant_that_only_shortens_hides_nothing() {
    let based = |id: &str, base: Base| VariantConfig::with_base(variant(id), base);
    let all = || vec![based("short", Base::Compact), based("safe", Base::ReadOnly)];
    let adapt = |config: Config| config.with_variants_of(all()).unwrap();
    let harness = Harness::with_server(server(Era::Legacy), adapt).await;
    for way in ClientKind::ALL {
        let balance = |id: &str| Raw::new("ledger/balance", "").under(id);
        let answer = balance("short").send_to(&harness, way).await;
        assert!(answer["result"].is_object(), "{way:?} {answer}");
        let answer = balance("safe").send_to(&harness, way).await;
        assert_eq!(answer["error"]["code"], -32601, "{way:?} {answer}");
    }
}

/// A notification of an extension goes by the same rule, and is dropped.
#[tokio::test]
async fn notifications_of_extensions_pass_where_nothing_is_hidden() {
    let capabilities = json!({"extensions": {"com.example/ledger": {}}});
    let harness = Harness::with_server(server(Era::Legacy), |config| {
        let mut config = variants(config);
        config.servers[0].forwarded_extensions = vec!["com.example/ledger".to_owned()];
        config
    })
    .await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &capabilities).await;
    for (id, of) in [("only", 1), ("standard", 2)] {
        let meta = format!(r#"{{"io.modelcontextprotocol/server-variant":"{id}"}}"#);
        let body = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/ledger/changed","params":{{"of":{of},"_meta":{meta}}}}}"#
        );
        assert_eq!(client.send_text(body).await.status, 202);
    }
    soon(harness.peer.wait_for("notifications/ledger/changed", 1)).await;
    let seen = harness.peer.of("notifications/ledger/changed");
    assert_eq!((seen.len(), &seen[0].body["params"]["of"]), (1, &json!(2)));
    assert_eq!(count(&harness, METHODS), 1);
}

/// SV-12: a reload that changes `allow-methods` decides the next request, in both directions.
#[tokio::test]
async fn a_reload_allows_a_method_and_refuses_it_again() {
    for era in [Era::Legacy, Era::Modern] {
        let harness = Harness::with_server(server(era), variants).await;
        let balance = Raw::new("ledger/balance", r#""of":1.0"#).under("only");
        is_refused(&harness, &balance, -32601, &["allow-methods"]).await;
        let next = |methods: &[&str]| {
            let mut next = variants(config(Target::http(harness.peer.url.clone())));
            let methods = methods.iter().map(|method| (*method).to_owned());
            next.servers[0].allowed_methods = methods.collect();
            next
        };
        harness.reload(next(&["ledger/balance"])).await;
        for way in ClientKind::ALL {
            let said = balance.send_to(&harness, way).await;
            assert_eq!(said["result"]["said"]["of"], 1.0, "{era:?} {way:?} {said}");
        }
        harness.reload(next(&[])).await;
        is_refused(&harness, &balance, -32601, &["allow-methods"]).await;
    }
}
