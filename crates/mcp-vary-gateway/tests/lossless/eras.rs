//! A client of one era in front of a server of the other.

use mcp_vary_testkit::table::rows;
use mcp_vary_wire::revision::Era;

use crate::messages::every_pair;
use crate::support::{Behind, Front, Harness, Heard, Said, Seen, error, members, result, string};

const CALL: &str = r#"{"name":"odd"}"#;

/// A server that answers one method.
fn answers(
    method: &'static str,
    say: impl Fn(&Seen) -> Option<Said> + Send + Sync + 'static,
) -> impl Fn(&Seen) -> Option<Said> + Send + Sync + 'static {
    move |seen| (seen.method == method).then(|| say(seen)).flatten()
}

/// What a client of one era gets from a server of the other, in both places where a server can be.
async fn crosses(
    client: Era,
    method: &'static str,
    params: &str,
    reported: &'static str,
    got: &str,
) {
    let server = match client {
        Era::Legacy => Era::Modern,
        Era::Modern => Era::Legacy,
    };
    let is_error = reported.contains(r#""code""#);
    for (front, behind) in PLACES {
        let reply: fn(&'static str) -> Option<Said> = if is_error { error } else { result };
        let script = answers(method, move |_| reply(reported));
        let harness = Harness::build(behind, server, script).await;
        let mut client = harness.client(front, client).await;
        let received = client.ask(method, params).await;
        let text: fn(&Heard) -> &str = if is_error {
            Heard::error
        } else {
            Heard::result
        };
        assert_eq!(text(&received), got, "{method}");
    }
}

/// Where a client and a server can be.
const PLACES: [(Front, Behind); 2] = [(Front::Http, Behind::Json), (Front::Stdio, Behind::Stdio)];

/// SV-17: a modern client gets `resultType` first, and how to cache last.
#[tokio::test]
async fn results_of_a_legacy_server_get_what_modern_clients_require() {
    for [method, params, said, got] in rows(
        r#"
        tools/call | {"name":"odd"} | { "content":[],"x":1.0 } | {"resultType":"complete", "content":[],"x":1.0 }
        prompts/get | {"name":"odd"} | {"messages":[ ]} | {"resultType":"complete","messages":[ ]}
        resources/read | {"uri":"odd:a"} | {"contents":[],"\u0074tlMs":5,"x":[ ]} | {"resultType":"complete","contents":[],"\u0074tlMs":0,"x":[ ],"cacheScope":"private"}
        tools/list | {} | {"tools":[{"name":"odd","x":1.0,"inputSchema":{"type":"object" }}] } | {"resultType":"complete","tools":[{"name":"odd","x":1.0,"inputSchema":{"type":"object" }}] ,"ttlMs":0,"cacheScope":"private"}
        completion/complete | {"ref":{"type":"ref/prompt","name":"odd"},"argument":{"name":"a","value":""}} | {"completion":{"values":[]}} | {"resultType":"complete","completion":{"values":[]}}
    "#,
    ) {
        crosses(Era::Modern, method, params, said, got).await;
    }
}

/// CN-7: what a legacy client cannot read is said as text where nothing else says it, and the rest stays.
#[tokio::test]
async fn results_of_a_modern_server_lose_what_legacy_clients_cannot_read() {
    for [method, said, got] in rows(
        r#"
        tools/call | { "resultType" : "complete", "structuredContent":[1.0], "content" : [ ] } | { "content" : [{"type":"text","text":"[1.0]"}] }
        tools/call | {"content":[],"structured\u0043ontent":7,"structuredContent":null} | {"content":[]}
        tools/call | {"structuredContent":{"a":[1.0]}, "content":[]} | {"structuredContent":{"a":[1.0]}, "content":[]}
        tools/list | {"x":1.0,"tools":[{"name":"odd", "outputSchema":{"type":"array"} ,"y":[ ],"inputSchema":{"type":"object"}},{"outputSchema":{"x":1.0,"type":"object"},"name":"b","inputSchema":{"type":"object" }}],"ttlMs":5} | {"x":1.0,"tools":[{"name":"odd" ,"y":[ ],"inputSchema":{"type":"object"}},{"outputSchema":{"x":1.0,"type":"object"},"name":"b","inputSchema":{"type":"object" }}],"ttlMs":5}
    "#,
    ) {
        crosses(Era::Legacy, method, CALL, said, got).await;
    }
}

/// What was not found is said in the client's code, with the data as the server wrote them.
#[tokio::test]
async fn a_resource_that_was_not_found_has_the_code_of_the_clients_era() {
    let read = r#"{"uri":"odd:none"}"#;
    let said = r#"{"message":"no","code":-32002,"data":{"uri":"odd:none","n":1.0},"x":[ ]}"#;
    let got = r#"{"message":"no","code":-32602,"data":{"uri":"odd:none","n":1.0},"x":[ ]}"#;
    crosses(Era::Modern, "resources/read", read, said, got).await;
    let said = r#"{"code":-32002,"message":"no","data":[1.0]}"#;
    let got = r#"{"code":-32602,"message":"no","data":[1.0]}"#;
    crosses(Era::Modern, "resources/read", read, said, got).await;
    let said = r#"{"code":-32602,"message":"no","data":{"uri":"odd:none"}}"#;
    let got = r#"{"code":-32002,"message":"no","data":{"uri":"odd:none"}}"#;
    crosses(Era::Legacy, "resources/read", read, said, got).await;
    let prompt = r#"{"code":-32602,"message":"no","data":null}"#;
    crosses(Era::Legacy, "prompts/get", CALL, prompt, prompt).await;
}

/// What a client did not say it can be asked is no result for it, and what it did say passes as it was written.
#[tokio::test]
async fn a_request_for_input_is_for_those_who_can_be_asked() {
    let said = r#"{"inputRequests":{"a":{"method":"roots/list"}},"result\u0054ype":"input_\u0072equired"}"#;
    for (front, behind, era) in [
        (Front::Http, Behind::Json, Era::Legacy),
        (Front::Stdio, Behind::Stdio, Era::Modern),
    ] {
        let script = answers("tools/call", move |_| result(said));
        let harness = Harness::build(behind, Era::Modern, script).await;
        let mut client = harness.client(front, era).await;
        let received = client.ask("tools/call", CALL).await;
        let told = members(received.error());
        assert_eq!(told["code"], "-32603");
        assert!(told["message"].contains("asks for"), "{told:?}");
        if era == Era::Modern {
            client.capabilities = r#"{"roots":{}}"#.to_owned();
            assert_eq!(client.ask("tools/call", CALL).await.result(), said);
        }
    }
}

const LOGS: [&str; 3] = [
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1.0}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":{"b":1,"a":2},"level":"warning"}}"#,
    r#"{"jsonrpc":"2.0", "method":"notifications/message","params":{"level":"\u0065rror","x":[ ]}}"#,
];

fn logs(_: &Seen) -> Option<Said> {
    let reported = result(r#"{"content":[]}"#)?;
    Some(LOGS.into_iter().fold(reported, Said::after))
}

/// A legacy client sets a level once; a modern server hears it with each request.
#[tokio::test]
async fn the_level_of_a_session_is_that_of_each_request() {
    for (front, behind) in PLACES {
        let harness = Harness::build(behind, Era::Modern, answers("tools/call", logs)).await;
        let mut client = harness.client(front, Era::Legacy).await;
        client.ask("tools/call", CALL).await.result();
        assert_eq!(harness.last("tools/call").meta(LOG_LEVEL), None);
        let set = client
            .ask("logging/setLevel", r#"{"level":"warning"}"#)
            .await;
        assert_eq!(set.result(), "{}");
        let received = client.ask("tools/call", CALL).await;
        assert_eq!(received.before, LOGS[1..]);
        let expected = Some(r#""warning""#);
        assert_eq!(harness.last("tools/call").meta(LOG_LEVEL), expected);
        assert_eq!(harness.seen("logging/setLevel").len(), 0);
    }
}

/// A modern client says a level with a request; a legacy server hears the least severe one.
#[tokio::test]
async fn the_level_of_a_request_is_set_once() {
    for (front, behind) in PLACES {
        let harness = Harness::build(behind, Era::Legacy, answers("tools/call", logs)).await;
        let mut client = harness.client(front, Era::Modern).await;
        let received = client.ask("tools/call", CALL).await;
        assert_eq!(received.before, Vec::<String>::new());
        let asked = format!(r#"{{"name":"odd","_meta":{{"{LOG_LEVEL}":"error"}}}}"#);
        let received = client.ask("tools/call", &asked).await;
        assert_eq!(received.before, LOGS[2..]);
        client.ask("tools/call", &asked).await.result();
        let set = harness.seen("logging/setLevel");
        assert_eq!(set.len(), 1);
        assert_eq!(set[0].param("level"), Some(r#""error""#));
        assert_eq!(harness.last("tools/call").meta(LOG_LEVEL), None);
    }
}

const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

fn progress(seen: &Seen) -> Option<Said> {
    let token = seen.meta("progressToken")?;
    let reported = result(r#"{"content":[]}"#)?;
    let stranger = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"not yours","progress":1}}"#;
    let reported = reported.after(progressed(token, "0.10")).after(stranger);
    Some(reported.after(progressed(token, "1e0")))
}

fn progressed(token: &str, at: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{ "x" : [ ],"progressToken":{token} ,"progress":{at},"message":"\u0041"}}}}"#
    )
}

/// Progress comes in order, before the answer, with the token that the client chose.
#[tokio::test]
async fn progress_keeps_the_clients_token_between_all_eras() {
    for (front, behind, client, server) in every_pair() {
        let harness = Harness::build(behind, server, answers("tools/call", progress)).await;
        let mut client = harness.client(front, client).await;
        for token in [r#""t\u00f6k""#, "7", r#""0""#] {
            let params = format!(r#"{{"name":"odd","_meta":{{"progressToken":{token}}}}}"#);
            let received = client.ask("tools/call", &params).await;
            received.result();
            assert_eq!(
                received.before,
                ["0.10", "1e0"].map(|at| progressed(token, at))
            );
        }
    }
}

const TOOL: &str = r#"{"tools":[{"name":"wetter-für","inputSchema":{"type":"object","properties":{
"region":{"type":"string","x-mcp-header":"Region"},"day":{"type":"integer","x-mcp-header":"Day"},"dry":{"type":"boolean","x-mcp-header":"Dry"}}}}]}"#;

/// A modern endpoint gets in headers what the body says, encoded where no header can say it.
#[tokio::test]
async fn headers_of_a_modern_endpoint_say_what_the_body_says() {
    let script = |seen: &Seen| match seen.method.as_str() {
        "tools/list" => result(TOOL),
        "tools/call" => result(r#"{"content":[]}"#),
        "resources/read" => result(r#"{"contents":[]}"#),
        _ => None,
    };
    for (front, era) in [(Front::Http, Era::Modern), (Front::Stdio, Era::Legacy)] {
        let harness = Harness::build(Behind::Json, Era::Modern, script).await;
        let mut client = harness.client(front, era).await;
        client.headers = vec![
            ("mcp-param-region", "Zürich".into()),
            ("mcp-param-day", "42".into()),
        ];
        let params =
            r#"{"name":"wetter-für","arguments":{"region":"Z\u00fcrich","day":42,"dry":null}}"#;
        client.ask("tools/call", params).await.result();
        let seen = harness.last("tools/call");
        for (name, value) in [
            ("mcp-protocol-version", Some("2026-07-28")),
            ("mcp-method", Some("tools/call")),
            ("mcp-name", Some("=?base64?d2V0dGVyLWbDvHI=?=")),
            ("mcp-param-region", Some("=?base64?WsO8cmljaA==?=")),
            ("mcp-param-day", Some("42")),
            ("mcp-param-dry", None),
            ("mcp-session-id", None),
        ] {
            assert_eq!(seen.header(name), value, "{name}");
        }
        client.headers.clear();
        client
            .ask("resources/read", r#"{"uri":"odd:\u0061"}"#)
            .await
            .result();
        let seen = harness.last("resources/read");
        assert_eq!(seen.header("mcp-name"), Some("odd:a"));
        let expected = Some("tools/list");
        assert_eq!(harness.last("tools/list").header("mcp-method"), expected);
    }
}

/// A legacy server hears nothing of what only modern requests say.
#[tokio::test]
async fn members_of_the_protocol_stay_where_their_era_is() {
    let asked = r#"{"name":"odd","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"c"},"io.modelcontextprotocol/logLevel":"error","x":1.0}}"#;
    for (front, behind, client, server) in every_pair() {
        let harness = Harness::build(behind, server, answers("tools/call", |_| result("{}"))).await;
        let mut speaker = harness.client(front, client).await;
        speaker.ask("tools/call", asked).await.result();
        let seen = harness.last("tools/call");
        let protocol = seen.meta_keys().into_iter();
        let protocol: Vec<_> = protocol
            .filter_map(|key| Some(key.strip_prefix("io.modelcontextprotocol/")?.to_owned()))
            .collect();
        assert_eq!(seen.meta("x"), Some("1.0"));
        match server {
            Era::Legacy => assert_eq!(protocol, Vec::<String>::new()),
            Era::Modern => {
                let expected = "clientCapabilities clientInfo logLevel protocolVersion";
                assert_eq!(protocol.join(" "), expected);
            }
        }
        if server == Era::Legacy && behind == Behind::Json {
            assert_eq!(seen.header("mcp-protocol-version"), Some("2025-11-25"));
            assert_eq!(seen.header("mcp-method"), None);
        }
    }
}

/// What the operator lets the gateway declare is said with every request, calls and lists alike, and so is what
/// the client can be asked.
#[tokio::test]
async fn a_modern_server_hears_the_same_capabilities_with_every_request() {
    let configure = |mut config: mcp_vary_gateway::Config| {
        config.servers[0].capabilities = r#"{"roots":{ }}"#.to_owned();
        config
    };
    let script = answers("tools/call", |_| result("{}"));
    let harness = Harness::build_with(Behind::Json, Era::Modern, configure, script).await;
    let mut client = harness.client(Front::Http, Era::Modern).await;
    for (declared, expected) in [
        (r#"{"experimental":{}}"#, r#"{"roots":{ }}"#),
        (r#"{"sampling":{"x":1}}"#, r#"{"roots":{},"sampling":{}}"#),
    ] {
        client.capabilities = declared.to_owned();
        client.ask("tools/call", CALL).await.result();
        for method in ["server/discover", "tools/list", "tools/call"] {
            let seen = harness.last(method);
            let told = seen.meta("io.modelcontextprotocol/clientCapabilities");
            assert_eq!(told, Some(expected), "{method}");
        }
    }
}

/// SV-17: with one view of each list, the server's own word about caching stands.
#[tokio::test]
async fn without_variants_caching_is_as_told() {
    let without = |config: mcp_vary_gateway::Config| config.with_variants(false);
    let said = r#"{"resultType":"complete","ttlMs":6.0e4,"tools":[],"cacheScope":"public"}"#;
    let script = answers("tools/list", move |_| result(said));
    let harness = Harness::build_with(Behind::Json, Era::Modern, without, script).await;
    let mut client = harness.client(Front::Http, Era::Modern).await;
    assert_eq!(client.ask("tools/list", "{}").await.result(), said);
    let harness = Harness::build_with(Behind::Json, Era::Legacy, without, |_| None).await;
    let mut client = harness.client(Front::Http, Era::Modern).await;
    let received = client.ask("prompts/list", "{}").await;
    let got =
        r#"{"resultType":"complete","prompts":[{"name":"odd"}],"ttlMs":0,"cacheScope":"private"}"#;
    assert_eq!(received.result(), got);
}

/// SV-2: `initialize` and `server/discover` say what the server said of itself, in either era.
#[tokio::test]
async fn a_server_is_introduced_in_its_own_words() {
    const INFO: &str = r#"{"name":"odd","version":"1.10","x":{"b":1.0,"a":[ ]}}"#;
    let script = |seen: &Seen| match seen.method.as_str() {
        "initialize" => result(format!(
            r#"{{"x":1.0,"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"instructions":"\u0042e kind.","serverInfo":{INFO}}}"#
        )),
        _ => None,
    };
    let harness = Harness::build(Behind::Json, Era::Legacy, script).await;
    let mut modern = harness.client(Front::Http, Era::Modern).await;
    let received = modern.ask("server/discover", "{}").await;
    let told = members(received.result());
    assert_eq!(told["instructions"], r#""\u0042e kind.""#);
    assert_eq!(told["resultType"], r#""complete""#);
    assert_eq!((told["ttlMs"], told["cacheScope"]), ("0", r#""private""#));
    let meta = members(told["_meta"]);
    assert_eq!(meta["io.modelcontextprotocol/serverInfo"], INFO);
    let mut legacy = harness.client(Front::Stdio, Era::Legacy).await;
    let again = legacy.ask("initialize", "{}").await;
    assert!(string(members(again.error())["message"]).contains("`initialize` was sent before"));
    let first = legacy.greeting.take().unwrap();
    let told = members(first.result());
    assert_eq!((told["x"], told["serverInfo"]), ("1.0", INFO));
    assert_eq!(told["instructions"], r#""\u0042e kind.""#);
}
