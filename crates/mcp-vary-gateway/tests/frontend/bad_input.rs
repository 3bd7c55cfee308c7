//! Input over HTTP that is not a valid message: each kind gets its error, and no other client notices.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::*;

/// A body, and the status, code and id of its refusal.
type Bad = (&'static str, Vec<u8>, u16, i64, Value);

fn bad(name: &'static str, body: impl Into<Vec<u8>>, status: u16, code: i64, id: Value) -> Bad {
    (name, body.into(), status, code, id)
}

fn no_json() -> Vec<Bad> {
    let deep = |open: &str, close: &str| {
        let (open, close) = (open.repeat(10_000), close.repeat(10_000));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{open}1{close}}}}}"#)
    };
    let all: [(&str, &[u8]); 14] = [
        ("nothing", b""),
        ("white space", b" \r\n\t "),
        ("garbage", b"what is this?"),
        ("a form", b"method=ping&id=1"),
        ("half a message", br#"{"jsonrpc":"2.0","id":1,"meth"#),
        (
            "two messages",
            br#"{"jsonrpc":"2.0","id":1,"method":"ping"}{}"#,
        ),
        (
            "a trailing comma",
            br#"{"jsonrpc":"2.0","id":1,"method":"ping",}"#,
        ),
        ("a NUL", b"\0"),
        (
            "no UTF-8 in a string",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}",
        ),
        ("no UTF-8 outside strings", b"\xc3\x28"),
        (
            "half a surrogate pair as bytes",
            b"{\"id\":1,\"method\":\"\xed\xa0\x80\"}",
        ),
        ("lists 10,000 deep", &deep("[", "]").into_bytes()),
        ("objects 10,000 deep", &deep(r#"{"a":"#, "}").into_bytes()),
        ("lists that never close", &b"[".repeat(10_000)),
    ];
    all.map(|(name, body)| bad(name, body, 400, -32700, Value::Null))
        .into()
}

fn no_message() -> Vec<Bad> {
    let invalid = |[name, body, id]: [&'static str; 3]| {
        bad(name, body, 400, -32600, serde_json::from_str(id).unwrap())
    };
    rows(NO_MESSAGES).map(invalid).collect()
}

/// What each is, and the id of the answer. Two ids name no request, so that none can be answered.
const NO_MESSAGES: &str = r#"
    a string              | "ping"                                                        | null
    a number              | 1                                                             | null
    null                  | null                                                          | null
    an empty object       | {}                                                            | null
    no `jsonrpc`          | {"id":1,"method":"ping"}                                      | 1
    `jsonrpc` 1.0         | {"jsonrpc":"1.0","id":1,"method":"ping"}                      | 1
    `jsonrpc` as a number | {"jsonrpc":2.0,"id":1,"method":"ping"}                        | 1
    no `method`           | {"jsonrpc":"2.0","id":"a"}                                    | "a"
    `method` as a number  | {"jsonrpc":"2.0","id":1,"method":7}                           | 1
    `method` as null      | {"jsonrpc":"2.0","id":1,"method":null}                        | 1
    `method` as a list    | {"jsonrpc":"2.0","id":1,"method":["ping"]}                    | 1
    method and result     | {"jsonrpc":"2.0","id":1,"method":"a","result":{}}             | 1
    result and error      | {"jsonrpc":"2.0","id":1,"result":{},"error":{}}               | 1
    id null               | {"jsonrpc":"2.0","id":null,"method":"ping"}                   | null
    id as a fraction      | {"jsonrpc":"2.0","id":1.5,"method":"ping"}                    | null
    id as a power         | {"jsonrpc":"2.0","id":1e3,"method":"ping"}                    | null
    id as a list          | {"jsonrpc":"2.0","id":[1],"method":"ping"}                    | null
    id as an object       | {"jsonrpc":"2.0","id":{},"method":"ping"}                     | null
    id true               | {"jsonrpc":"2.0","id":true,"method":"ping"}                   | null
    a method twice        | {"jsonrpc":"2.0","id":1,"method":"a","method":"ping"}         | 1
    params twice          | {"jsonrpc":"2.0","id":1,"method":"a","params":{},"params":{}} | 1
    an id twice           | {"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}               | null
"#;

fn bad_params() -> Vec<Bad> {
    let invalid = |[name, params]: [&'static str; 2]| {
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":"é","method":"tools/list","params":{params}}}"#);
        bad(name, body, 400, -32602, json!("é"))
    };
    rows(BAD_PARAMS).map(invalid).collect()
}

const BAD_PARAMS: &str = r#"
    params as a list       | [1]
    params as a string     | "a"
    params as a number     | 0
    a key of params twice  | {"cursor":"a","cursor":"b"}
    the same key, escaped  | {"cursor":"a","\u0063ursor":"b"}
    `_meta` twice          | {"_meta":{},"_meta":{}}
    a key of `_meta` twice | {"_meta":{"a":1,"a":2}}
    `_meta` as a list      | {"_meta":[]}
    `_meta` as a string    | {"_meta":"a"}
"#;

#[tokio::test]
async fn what_is_no_message_is_refused_with_the_code_for_it() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let all = [no_json(), no_message(), bad_params()].concat();
    for (name, body, status, code, id) in all {
        let post = HttpRequest::of(&client.session, body);
        let answer = client.http.ask(&post).await;
        let expected = (status, code, id);
        assert_eq!(answer.refusal(), expected, "{name}: {}", answer.text());
        let expected = Some("application/json");
        assert_eq!(answer.header("content-type"), expected, "{name}");
        assert_eq!(answer.json()["jsonrpc"], "2.0", "{name}");
    }
    harness.is_unharmed(&mut client.http, "all of it").await;
}

#[tokio::test]
async fn what_is_no_message_is_refused_without_a_session_too() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    for (name, body, status, code, id) in [no_json(), no_message(), bad_params()].concat() {
        let answer = http.ask(&HttpRequest::new(body)).await;
        let expected = (status, code, id);
        assert_eq!(answer.refusal(), expected, "{name}: {}", answer.text());
    }
    harness.is_unharmed(&mut http, "all of it").await;
}

#[tokio::test]
async fn ids_are_echoed_as_they_were_written() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    for id in [
        "0",
        "-1",
        "9007199254740993",
        "123456789012345678901234567890",
        r#""""#,
        r#""Zürich 🏔""#,
        r#""\u00e9\ud83c\udfd4\/""#,
        r#""null""#,
        r#""-32600""#,
    ] {
        for (method, member) in [
            ("ping", r#""result":{}"#),
            ("no/such", r#""error":{"code":-32601"#),
        ] {
            let body = format!(r#"{{"method":"{method}","id": {id} ,"jsonrpc":"2.0"}}"#);
            let answer = client.send_text(body).await;
            let start = format!(r#"{{"jsonrpc":"2.0","id":{id},{member}"#);
            assert!(answer.text().starts_with(&start), "{}", answer.text());
        }
        let wrong = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":7}}"#);
        let answer = client.send_text(wrong).await;
        let expected = format!(r#""id":{id},"error""#);
        assert!(answer.text().contains(&expected), "{}", answer.text());
    }
}

#[tokio::test]
async fn notifications_are_taken_without_an_answer_and_responses_are_refused() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    for message in [
        notification("notifications/initialized", json!({})),
        notification("notifications/no/such", json!({"x": [1]})),
        notification("notifications/cancelled", json!({"requestId": "unknown"})),
        notification("notifications/cancelled", json!({"requestId": {"a": 1}})),
        notification("notifications/cancelled", json!({})),
        notification("tools/call", tool("odd")),
    ] {
        let answer = client.send(&message).await;
        let found = (answer.status, &*answer.text());
        assert_eq!(found, (202, ""), "{message}");
    }
    for message in [
        json!({"jsonrpc": "2.0", "id": 7, "result": {}}),
        json!({"jsonrpc": "2.0", "id": "7", "error": {"code": 1, "message": "no"}}),
        json!({"jsonrpc": "2.0", "id": 7, "result": [1]}),
    ] {
        let answer = client.send(&message).await;
        assert_eq!(answer.refusal(), (400, -32600, Value::Null), "{message}");
    }
    assert!(harness.peer.of("tools/call").is_empty());
    harness.is_unharmed(&mut client.http, "notifications").await;
}

#[tokio::test]
async fn unknown_methods_and_those_of_the_other_era_are_not_found() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let long = "x".repeat(10_000);
    for method in ["no/such", "", "server/discover", "Tools/list", &long] {
        let answer = client.ask(method, json!({})).await;
        assert_eq!(answer.refusal(), (200, -32601, json!(1)), "{method}");
        assert!(answer.text().len() < 400, "the echo is cut");
    }
    let mut http = harness.connect().await;
    for method in "no/such initialize ping logging/setLevel resources/subscribe".split(' ') {
        let post = HttpRequest::modern(&modern(json!("m"), method, json!({}), &json!({})));
        let answer = http.ask(&post).await;
        assert_eq!(answer.refusal(), (404, -32601, json!("m")), "{method}");
    }
    harness.is_unharmed(&mut http, "unknown methods").await;
}

#[tokio::test]
async fn params_of_wrong_types_are_named() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    for [method, params, named] in rows(
        r#"
        tools/call          | {}                                 | `name`
        tools/call          | {"name": 7}                        | `name`
        tools/call          | {"name": "say", "arguments": []}   | `arguments`
        resources/read      | {"uri": ["a"]}                     | `uri`
        prompts/get         | {"name": null}                     | `name`
        completion/complete | {"ref": "a", "argument": {}}       | `ref`
        completion/complete | {"ref": {}}                        | `argument`
        tools/list          | {"cursor": 1}                      | `cursor`
        logging/setLevel    | {"level": "loud"}                  | `level`
        logging/setLevel    | {"level": 3}                       | `level`
    "#,
    ) {
        let answer = client.ask(method, cell(params)).await;
        assert_eq!(answer.refusal(), (200, -32602, json!(1)), "{method}");
        answer.json().contains("/error/message", named);
    }
    assert!(harness.peer.of("tools/call").is_empty());
    harness.is_unharmed(&mut client.http, "wrong types").await;
}

/// What clients write that have one structure for all messages, with a byte order mark before it.
#[tokio::test]
async fn null_counts_as_absent_for_the_server_too() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let others = r#""jsonrpc":"2.0","result":null,"error":null"#;
    for [method, params] in rows(
        r#"
        ping        | null
        tools/list  | null
        tools/list  | {"cursor":null,"_meta":null}
        tools/list  | {"cursor":""}
        prompts/list | {"cursor":"","_meta":{"progressToken":null}}
        tools/call  | {"name":"say","arguments":null,"_meta":null,"task":null}
        tools/call  | {"name":"say","arguments":{},"_meta":{"progressToken":null}}
    "#,
    ) {
        let body =
            format!("\u{feff}{{{others},\"id\":1,\"method\":\"{method}\",\"params\":{params}}}");
        let answer = client.send_text(body).await;
        assert_eq!(answer.status, 200, "{method} {params}");
        assert!(answer.json()["result"].is_object(), "{}", answer.text());
    }
    for members in [
        r#""method":"notifications/initialized","params":null"#,
        r#""id":null,"method":"notifications/no/such","params":null"#,
    ] {
        let answer = client.send_text(format!("{{{others},{members}}}")).await;
        assert_eq!((answer.status, &*answer.text()), (202, ""), "{members}");
    }
    let calls = harness.peer.of("tools/call");
    assert_eq!(calls.len(), 2);
    for call in calls {
        let params = &call.body["params"];
        assert_eq!(params.get("arguments").unwrap_or(&json!({})), &json!({}));
        assert_eq!(params.get("_meta").unwrap_or(&json!({})), &json!({}));
        assert_eq!(params.get("task"), None);
    }
    let call = json!({
        "name": "say", "arguments": null, "task": null, "_meta": {"progressToken": null},
    });
    let post = HttpRequest::modern_request("tools/call", call);
    let answer = client.http.ask(&post).await;
    assert!(answer.json()["result"].is_object(), "{}", answer.text());
    harness.is_unharmed(&mut client.http, "null").await;
}

#[tokio::test]
async fn an_initialize_that_lacks_something_opens_no_session() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    let whole = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
    for (key, wrong) in [
        ("protocolVersion", json!(20251125)),
        ("protocolVersion", Value::Null),
        ("capabilities", json!([])),
        ("capabilities", Value::Null),
        ("clientInfo", json!("test")),
        ("clientInfo", Value::Null),
    ] {
        let mut params = whole.clone();
        params[key] = wrong.clone();
        if wrong.is_null() {
            params.as_object_mut().unwrap().remove(key);
        }
        let post = HttpRequest::new(request(json!("i"), "initialize", params).to_string());
        let answer = http.ask(&post).await;
        assert_eq!(answer.refusal().1, -32602, "{key}");
        answer.json().has("/id", "i");
        assert!(answer.json()["error"]["message"].to_string().contains(key));
        assert_eq!(answer.header("mcp-session-id"), None);
    }
    let as_notification = notification("initialize", whole);
    let post = HttpRequest::new(as_notification.to_string());
    let answer = http.ask(&post).await;
    assert_eq!(answer.refusal(), (400, -32600, Value::Null));
    harness.is_unharmed(&mut http, "half an initialize").await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_too_large() {
    let harness = Harness::with(|config| config.with_limits(limits().with_body(1000))).await;
    let fits = |size: usize| {
        let empty = request(json!(1), "tools/list", json!({"x": ""})).to_string();
        let params = json!({"x": "y".repeat(size - empty.len())});
        request(json!(1), "tools/list", params).to_string()
    };
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let answer = client.send_text(fits(1000)).await;
    assert_eq!(answer.status, 200, "at the limit");
    let answer = client.send_text(fits(1001)).await;
    assert_eq!(answer.refusal(), (413, -32600, Value::Null));
    assert!(answer.text().contains("1000 bytes"));

    let mut http = harness.connect().await;
    let chunked = HttpRequest::of(&client.session, "").with("Transfer-Encoding", "chunked");
    http.send(&chunked.head()).await;
    let piece = [b"1f4\r\n".as_slice(), &[b'x'; 500], b"\r\n"].concat();
    http.send(&piece.repeat(3)).await;
    let found = http.response().await.status;
    assert_eq!(found, 413, "in pieces, of a length that nobody told");
    harness.still_serves("large bodies").await;
}

/// As `fetch` of Node does it: a connection that is closed while it writes takes the response with it.
#[tokio::test]
async fn a_client_that_writes_all_before_it_reads_gets_the_refusal() {
    let harness = Harness::with(|config| config.with_limits(limits().with_body(1 << 20))).await;
    let body = vec![b'x'; 24 << 20];
    let declared = HttpRequest::new(body.clone()).bytes();
    let mut chunked = HttpRequest::new("")
        .with("Transfer-Encoding", "chunked")
        .head();
    for chunk in body.chunks(1 << 20) {
        chunked.extend(format!("{:x}\r\n", chunk.len()).bytes());
        chunked.extend(chunk);
        chunked.extend(b"\r\n");
    }
    chunked.extend(b"0\r\n\r\n");
    for sent in [declared, chunked] {
        let mut stream = TcpStream::connect(harness.address).await.unwrap();
        soon(stream.write_all(&sent)).await.unwrap();
        let mut head = [0; 12];
        soon(stream.read_exact(&mut head)).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 413");
    }
    harness.still_serves("a large body").await;
}

/// The declared length is enough to refuse: nobody has to send, and nobody to read, so much.
#[tokio::test]
async fn a_body_that_says_it_is_too_large_is_not_waited_for() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    let post = HttpRequest::new("")
        .with("Content-Length", "99999999999")
        .with("Expect", "100-continue");
    http.send(&post.head()).await;
    assert_eq!(http.response().await.status, 413);
    harness.still_serves("a large length").await;
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_not_waited_for_long() {
    let quick = limits().with_read_timeout(Duration::from_millis(500));
    let harness = Harness::with(|config| config.with_limits(quick)).await;
    let mut http = harness.connect().await;
    let post = HttpRequest::new("").with("Content-Length", "100");
    http.send(&post.head()).await;
    http.send(b"{\"jsonrpc\":").await;
    let answer = http.response().await;
    assert_eq!(answer.refusal(), (408, -32600, Value::Null));
    assert!(answer.text().contains("500ms"), "{}", answer.text());
    harness.still_serves("a slow body").await;
}

#[tokio::test]
async fn a_head_that_does_not_arrive_is_not_waited_for_long() {
    let quick = limits().with_read_timeout(Duration::from_millis(500));
    let harness = Harness::with(|config| config.with_limits(quick)).await;
    let mut http = harness.connect().await;
    http.send(b"POST /mcp HTTP/1.1\r\nHost: loc").await;
    assert!(http.is_closed().await);
    harness.still_serves("a slow head").await;
}

#[tokio::test]
async fn a_body_that_ends_early_harms_nobody() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    http.send(&HttpRequest::new("").with("Content-Length", "100").head())
        .await;
    http.send(b"{}").await;
    drop(http);
    harness.still_serves("half a body").await;
}

/// CN-2, EXT-5: what a client declares is bounded, and a bad part of it is dropped alone. (Capabilities of more than 64 KiB
/// are refused as a whole: bounds.rs.)
#[tokio::test]
async fn odd_declarations_are_ignored_and_the_request_is_served() {
    let harness = Harness::start().await;
    let many: Vec<String> = (0..4_000).map(|n| format!("x-tag-{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let extension = |value: Value| {
        json!({"extensions": {
            "io.modelcontextprotocol/content-negotiation": value,
            "io.modelcontextprotocol/server-variants": value,
        }})
    };
    let hint = |value: Value| hints(json!({"contextSize": value}));
    for capabilities in [
        extension(json!("yes")),
        extension(json!(true)),
        extension(json!([])),
        extension(Value::Null),
        extension(json!(7)),
        extension(json!({"version": [], "features": {}, "variantHints": []})),
        extension(json!({"version": "99.0"})),
        json!({"extensions": []}),
        json!({"extensions": "all", "experimental": 3}),
        features(&many),
        features(&["", "@#$%", "format==json", &"y".repeat(60_000)]),
        json!({"extensions": {"io.modelcontextprotocol/content-negotiation": {"features": [1, null, {}, []]}}}),
        hint(json!("x".repeat(60_000))),
        hint(json!(vec!["compact"; 6_000])),
        hint(json!([1, null, {}])),
        hints(json!(
            (0..5_000)
                .map(|n| (n.to_string(), json!("x")))
                .collect::<serde_json::Map<_, _>>()
        )),
        json!({"a": {"b": {"c": [[[[[[[[]]]]]]]]}}, "sampling": 7}),
    ] {
        let shown: String = capabilities.to_string().chars().take(120).collect();
        let post = HttpRequest::modern_request_as("tools/call", tool("odd"), &capabilities);
        let answer = harness.connect().await.ask(&post).await;
        assert_eq!(answer.status, 200, "{shown}");
        assert_eq!(answer.json()["result"]["z"], "A/", "{shown}");
        let mut client = LegacyClient::open(&harness, "2025-11-25", &capabilities).await;
        assert!(client.session.len() <= 2048, "{shown}");
        let answer = client.ask("tools/call", tool("odd")).await;
        assert_eq!(answer.json()["result"]["z"], "A/", "{shown}");
    }
    harness.still_serves("odd declarations").await;
}

/// EXT-5: before a modern server, too, nothing of it travels on.
#[tokio::test]
async fn odd_declarations_do_not_reach_the_server() {
    let harness = Harness::before(Era::Modern, |config| config).await;
    let capabilities =
        json!({"extensions": {"io.modelcontextprotocol/content-negotiation": "yes"}, "roots": {}});
    let post = HttpRequest::modern_request_as("tools/call", tool("odd"), &capabilities);
    assert_eq!(harness.connect().await.ask(&post).await.status, 200);
    let call = &harness.peer.of("tools/call")[0];
    let meta = &call.body["params"]["_meta"];
    let expected = json!({"roots": {}});
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], expected);
}

#[tokio::test]
async fn one_id_is_in_flight_once() {
    let harness = Harness::start().await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let mut second = harness.connect().await;
    let call = |id: Value, name: &str| client.post(&request(id, "tools/call", tool(name)));
    let (first, again) = (call(json!(7), "wait"), call(json!(7), "odd"));
    let text = call(json!("7"), "odd");
    let message = notification("notifications/cancelled", json!({"requestId": 7}));
    let cancel = client.post(&message);
    client.http.send(&first.bytes()).await;
    soon(harness.peer.wait_for("tools/call", 1)).await;
    let answer = second.ask(&again).await;
    assert_eq!(answer.refusal(), (400, -32600, json!(7)));
    let found = second.ask(&text).await.status;
    assert_eq!(found, 200, "a string is another id");
    let mut stranger = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    let other = stranger.post(&request(json!(7), "tools/call", tool("odd")));
    let found = stranger.http.ask(&other).await.status;
    assert_eq!(found, 200, "another session");
    assert_eq!(second.ask(&cancel).await.status, 202);
    let found = client.http.response().await.status;
    assert_eq!(found, 202, "the cancelled request ends");
    assert_eq!(second.ask(&again).await.status, 200, "its id is free again");
}

#[tokio::test]
async fn a_session_has_so_many_requests_in_flight_and_no_more() {
    let harness = Harness::with(|config| config.with_limits(limits().with_in_flight(1))).await;
    let mut client = LegacyClient::open(&harness, "2025-11-25", &json!({})).await;
    harness.wait_in(&mut client, 1).await;
    let mut second = harness.connect().await;
    let post = client.post(&request(json!(2), "ping", json!({})));
    let answer = second.ask(&post).await;
    assert_eq!(answer.refusal(), (400, -32600, json!(2)));
    harness.is_unharmed(&mut second, "too many requests").await;
}

/// Errors are in words for whoever wrote the message, without those of the parser or of a programming language.
#[tokio::test]
async fn an_error_about_a_message_has_no_word_of_a_parser() {
    let harness = Harness::start().await;
    let mut http = harness.connect().await;
    let call = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}"#)
    };
    let of_params = rows(
        r#"
        {"_meta":5} | `params._meta`: it must be an object
        {"name\u0000":1,"name":2} | `params` has a member "name\u0000", which some servers read as "name"; leave it out
    "#,
    );
    let of_params = of_params.map(|[params, expected]| (call(params), expected));
    let twice = r#"`params`: the key "'\u200b" is given twice"#;
    let of_params = of_params.chain([(call("{\"'\u{200b}\":1,\"'\u{200b}\":2}"), twice)]);
    let whole = rows(
        r#"
        {\n 5} | the message is not JSON: the mistake is at line 2, column 2
        { | the message is not JSON: it ends too early
        5 | it must be a JSON-RPC message, which is an object
        {"jsonrpc":"2.0","id":1,"id":2,"method":"ping"} | `id` is given twice
        [5, | the batch cannot be read: it is not JSON: it ends too early
    "#,
    );
    let whole = whole.map(|[body, expected]| (body.replace("\\n", "\n"), expected));
    for (body, expected) in of_params.chain(whole) {
        let session = LegacyClient::open(&harness, "2025-03-26", &json!({})).await;
        let post = HttpRequest::of(&session.session, body.clone());
        let answer = http.ask(&post).await;
        assert_eq!(answer.json()["error"]["message"], expected, "{body:?}");
    }
    let mut not_utf8 = call(r#"{"a":"?"}"#).into_bytes();
    let at = not_utf8.iter().position(|byte| *byte == b'?').unwrap();
    not_utf8[at] = 0xff;
    let answer = http.ask(&HttpRequest::new(not_utf8)).await.json();
    let expected = format!("the message is not UTF-8 from byte {at} on");
    answer.has("/error/message", expected);
}
