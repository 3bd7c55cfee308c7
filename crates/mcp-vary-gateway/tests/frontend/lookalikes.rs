//! Members that another reader could mistake for known ones: look-alikes, duplicates, unknown methods.

mod methods;

use mcp_vary_gateway::Base;
use mcp_vary_view::{ArgumentOverride, PromptOverride, Selection, ToolOverride};

use crate::support::*;

/// The server: it says what it got, and has more than the variants show.
fn server(era: Era) -> Script {
    let properties = json!({"q": {}, "owner": {}, "limit": {}, "Limit2": {}, "limit2": {}});
    let echoed =
        |params: &Value| json!({"content": [], "messages": [], "contents": [], "said": params});
    Script::new(era, "places")
        .declares(json!({"completions": {}, "extensions": {"com.example/ledger": {}}}))
        .lists(json!({
            "tools": [
                {"name": "search", "inputSchema": {"type": "object", "properties": properties}},
                {"name": "delete_all", "inputSchema": {"type": "object"}},
            ],
            "prompts": [
                {"name": "greet", "arguments": [{"name": "to"}, {"name": "tone"}]},
                {"name": "secret", "arguments": [{"name": "x"}]},
            ],
            "resources": [{"uri": "doc:a", "name": "a"}],
            "resourceTemplates": [
                {"uriTemplate": "doc:{name}", "name": "doc"}, {"uriTemplate": "log:{day}", "name": "log"},
            ],
        }))
        .on_call(move |params| {
            if params["arguments"]["later"] == true && params["requestState"].is_null() {
                return json!({"resultType": "input_required", "requestState": "later"});
            }
            echoed(params)
        })
        .on("prompts/get", echoed)
        .on("resources/read", echoed)
        .on("ledger/balance", echoed)
        .on("completion/complete", |params| json!({"completion": {"values": ["one"]}, "said": params}))
}

fn selects(ids: &[&str]) -> Selection {
    serde_json::from_value(json!({"include": ids})).unwrap()
}

/// `only` shows one item of each kind; `bound` hides, fixes and renames arguments; `standard` shows everything.
fn variants(config: Config) -> Config {
    let mut only = variant("only");
    only.tools = selects(&["search"]);
    only.prompts = selects(&["greet"]);
    only.resources = selects(&["doc:*"]);
    let mut bound = variant("bound");
    let argument = |change: &dyn Fn(&mut ArgumentOverride)| {
        let mut argument = ArgumentOverride::default();
        change(&mut argument);
        argument
    };
    let mut search = ToolOverride::default();
    let mut arguments = [
        ("limit", argument(&|it| it.hidden = true)),
        ("owner", argument(&|it| it.fixed = json_text("acme"))),
        ("q", argument(&|it| it.name = Some("query".into()))),
        ("unlisted", argument(&|it| it.hidden = true)),
    ]
    .map(|(name, argument)| (name.to_owned(), argument));
    search.arguments.extend(arguments.clone());
    bound.tool_overrides.insert("search".into(), search);
    let mut greet = PromptOverride::default();
    arguments[1].0 = "tone".to_owned();
    greet.arguments.extend([arguments[1].clone()]);
    bound.prompt_overrides.insert("greet".into(), greet);
    let standard = variant("standard");
    let all = vec![standard, only, bound];
    config.with_variants_of(all).unwrap()
}

/// A request whose params are written byte for byte, their braces left out.
struct Raw<'a> {
    method: &'a str,
    params: String,
    meta: String,
}

impl<'a> Raw<'a> {
    fn new(method: &'a str, params: impl Into<String>) -> Self {
        Self {
            method,
            params: params.into(),
            meta: String::new(),
        }
    }

    /// Under the variant `id`.
    fn under(self, id: &str) -> Self {
        self.meta(&format!(
            r#""io.modelcontextprotocol/server-variant":"{id}""#
        ))
    }

    /// With these members of `_meta`.
    fn meta(mut self, members: &str) -> Self {
        self.meta = [self.meta.as_str(), members].join(if self.meta.is_empty() { "" } else { "," });
        self
    }

    fn body(&self, is_modern: bool) -> String {
        let mut meta = self.meta.clone();
        if is_modern {
            let era = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
            meta = [era, &meta].join(if meta.is_empty() { "" } else { "," });
        }
        let meta = match meta.as_str() {
            "" => String::new(),
            meta => format!(r#","_meta":{{{meta}}}"#),
        };
        let params = match self.params.as_str() {
            "" => meta.trim_start_matches(',').to_owned(),
            params => format!("{params}{meta}"),
        };
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":{},"params":{{{params}}}}}"#,
            json!(self.method)
        )
    }

    /// What is answered to it, as JSON.
    async fn send_to(&self, harness: &Harness, client_kind: ClientKind) -> Value {
        let body = self.body(client_kind.is_modern());
        match client_kind {
            ClientKind::HttpLegacy => {
                let mut client = LegacyClient::open(harness, "2025-11-25", &json!({})).await;
                let post = HttpRequest::of(&client.session, body);
                client.http.ask(&post).await.json()
            }
            ClientKind::HttpModern => {
                let read = cell(&body);
                let method = self.method.replace(|c: char| !c.is_ascii_graphic(), "");
                let post = HttpRequest::new(body).with("MCP-Protocol-Version", "2026-07-28");
                let mut post = post.with("Mcp-Method", method);
                let named = ["name", "uri"].map(|key| read["params"][key].as_str());
                if let Some(name) = named.into_iter().flatten().next() {
                    post = post.with("Mcp-Name", name);
                }
                harness.connect().await.ask(&post).await.json()
            }
            ClientKind::StdioLegacy => {
                let mut pipe = legacy_pipe(&harness.gateway, "2025-11-25", &json!({})).await;
                pipe.send(body).await;
                pipe.receive().await
            }
            ClientKind::StdioModern => {
                let mut pipe = open_pipe(&harness.gateway);
                pipe.send(body).await;
                pipe.receive().await
            }
        }
    }
}

/// Is refused by every kind of client, with each of `terms` in the message, and nothing of it reaches the server.
async fn is_refused(harness: &Harness, raw: &Raw<'_>, code: i64, terms: &[&str]) {
    for client_kind in ClientKind::ALL {
        let before = harness.peer.received().len();
        let answer = raw.send_to(harness, client_kind).await;
        let shown = format!("{client_kind:?} {} {}: {answer}", raw.method, raw.params);
        assert_eq!(answer["error"]["code"], code, "{shown}");
        let message = answer["error"]["message"].as_str().unwrap();
        for word in terms {
            assert!(message.contains(word), "{word}: {shown}");
        }
        let seen = harness.peer.received().split_off(before);
        let methods = [
            "tools/call",
            "prompts/get",
            "resources/read",
            "completion/complete",
            raw.method,
        ];
        let reached = seen.iter().find(|seen| methods.contains(&seen.method()));
        assert!(reached.is_none(), "{shown}: {reached:?}");
    }
}

fn count(harness: &Harness, counter: &str) -> u64 {
    let counters = harness.gateway.status().counters;
    counters.get(counter).copied().unwrap_or_default()
}

const LOOKALIKES: &str = "refused-lookalike-members";
const DUPLICATES: &str = "refused-duplicate-members";
const METHODS: &str = "refused-extension-methods";

/// Params with a member that imitates a known one: the method, the params, and what the error names, the member as given and
/// the known one, or the object that it stands in.
const IMITATIONS: &str = r#"
    tools/call          | "name":"search","arguments":{},"Name":"delete_all" | "Name"            | "name"
    tools/call          | "NAME":"delete_all","name":"search" | "NAME"            | "name"
    tools/call          | "name":"search","\u004eame":"delete_all" | "Name"            | "name"
    tools/call          | "name":"search","name\u0000":"delete_all" | "name\u0000"      | "name"
    tools/call          | "name":"search","argument\u017f":{} | "argumentſ"       | "arguments"
    tools/call          | "name":"search","Arguments":{"limit":9} | "Arguments"       | "arguments"
    tools/call          | "name":"search","ta\u017f\u212a":{} | tas               | "task"
    tools/call          | "name":"search","RequestState":"x" | "RequestState"    | "requestState"
    tools/call          | "name":"search","inputresponses":{} | "inputresponses"  | "inputResponses"
    tools/call          | "name":"search","_Meta":{} | "_Meta"           | "_meta"
    prompts/get         | "name":"greet","nAme":"secret" | "nAme"            | "name"
    resources/read      | "uri":"doc:a","Uri":"log:1" | "Uri"             | "uri"
    resources/read      | "uri":"doc:a","uri\u0000\u0000":"log:1" | "uri\u0000\u0000" | "uri"
    tools/list          | "Cursor":"x" | "Cursor"          | "cursor"
    completion/complete | "ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"to","value":""},"Ref":{} | "Ref"             | "ref"
    completion/complete | "ref":{"type":"ref/prompt","name":"greet","Name":"secret"},"argument":{"name":"to","value":""} | `ref`             | "name"
    completion/complete | "ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"to","value":"","NAME":"x"} | `argument`        | "name"
    completion/complete | "ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"to","value":""},"context":{"Arguments":{}} | `context`         | "arguments"
    tools/call          | "name":"search","task":{"TTL":1} | `task`            | "ttl"
"#;

/// SV-12: what the gateway did not check does not reach a server that ignores case, or cuts texts at a NUL.
#[tokio::test]
async fn a_member_that_imitates_a_known_one_is_refused() {
    for era in [Era::Legacy, Era::Modern] {
        let harness = Harness::with_server(server(era), variants).await;
        for (index, [method, params, given, known]) in rows(IMITATIONS).enumerate() {
            let raw = Raw::new(method, params).under("only");
            is_refused(&harness, &raw, -32602, &[given, known]).await;
            let expected = 4 * (index as u64 + 1);
            assert_eq!(count(&harness, LOOKALIKES), expected, "{params}");
        }
        assert_eq!(count(&harness, DUPLICATES), 0);
    }
}

/// SV-12: keys of `_meta` that select a variant or name a progress token are spelled exactly.
#[tokio::test]
async fn a_key_of_meta_that_imitates_a_known_one_is_refused() {
    let harness = Harness::with_server(server(Era::Modern), variants).await;
    for [key, known] in rows(
        r#"
        ProgressToken                                | progressToken
        io.modelcontextprotocol/Server-Variant       | io.modelcontextprotocol/server-variant
        io.modelcontextprotocol/loglevel             | io.modelcontextprotocol/logLevel
        io.modelcontextprotocol/server-variant\u0000 | io.modelcontextprotocol/server-variant
        IO.modelcontextprotocol/related-task         | io.modelcontextprotocol/related-task
    "#,
    ) {
        let raw = Raw::new("tools/call", r#""name":"search""#).meta(&format!(r#""{key}":"only""#));
        is_refused(&harness, &raw, -32602, &["`params._meta`", known]).await;
    }
    for way in ClientKind::ALL {
        let raw = Raw::new("tools/call", r#""name":"search""#)
            .meta(r#""Traceparent":"x","name":1,"Uri":2"#);
        let meta = &raw.send_to(&harness, way).await["result"]["said"]["_meta"];
        meta.has("/Traceparent", "x");
        meta.has("/Uri", 2);
    }
}

/// Members of a batch are checked as those of other requests.
#[tokio::test]
async fn a_lookalike_in_a_batch_is_refused() {
    let harness = Harness::with_server(server(Era::Legacy), variants).await;
    let raw = Raw::new("tools/call", r#""name":"search","Name":"delete_all""#);
    let batch = format!("[{}]", raw.body(false));
    let mut client = LegacyClient::open(&harness, "2025-03-26", &json!({})).await;
    let answer = client.send_text(batch.clone()).await;
    let expected = r#""code":-32602"#;
    assert!(answer.text().contains(expected), "{}", answer.text());
    let mut pipe = legacy_pipe(&harness.gateway, "2025-03-26", &json!({})).await;
    pipe.send(batch).await;
    assert!(pipe.line().await.contains(r#""code":-32602"#));
    assert!(harness.peer.of("tools/call").is_empty());
    assert_eq!(count(&harness, LOOKALIKES), 2);
}

/// Requests with a key that is given twice: the method, the parameters and the variant.
const GIVEN_TWICE: &str = r#"
    tools/call          | "name":"delete_all","name":"search" | only
    tools/call          | "name":"delete_all","\u006eame":"search" | only
    tools/call          | "name":"search","task":{"ttl":1,"ttl":2} | only
    completion/complete | "ref":{"type":"ref/prompt","name":"secret","name":"greet"},"argument":{"name":"to","value":""} | only
    completion/complete | "ref":{"type":"ref/resource","uri":"log:{day}","u\u0072i":"doc:{name}"},"argument":{"name":"name","value":""} | only
    completion/complete | "ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"x","name":"to","value":""} | only
    completion/complete | "ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"to","value":""},"context":{"arguments":{},"arguments":{}} | only
    completion/complete | "ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"to","value":""},"context":{"arguments":{"to":"a","to":"b"}} | bound
    tools/call          | "name":"search","arguments":{"query":"a","\u0071uery":"b"} | bound
    prompts/get         | "name":"greet","arguments":{"to":"a","to":"b"} | bound
"#;

/// SV-12: readers that take the first of two equal keys would see what was not checked.
#[tokio::test]
async fn a_key_that_is_given_twice_in_an_object_that_is_checked_is_refused() {
    let harness = Harness::with_server(server(Era::Legacy), variants).await;
    for (index, [method, params, variant]) in rows(GIVEN_TWICE).enumerate() {
        let raw = Raw::new(method, params).under(variant);
        is_refused(&harness, &raw, -32602, &["is given twice"]).await;
        let expected = 4 * (index as u64 + 1);
        assert_eq!(count(&harness, DUPLICATES), expected, "{params}");
    }
    assert_eq!(count(&harness, LOOKALIKES), 0);
}

/// SV-11: what a variant hides, fixes or renames is not given in another spelling.
#[tokio::test]
async fn an_argument_that_imitates_a_bound_one_is_refused() {
    for era in [Era::Legacy, Era::Modern] {
        let harness = Harness::with_server(server(era), variants).await;
        for (arguments, known) in [
            (r#"{"Limit":9}"#, "\"limit\""),
            (r#"{"limit\u0000":9}"#, "\"limit\""),
            (r#"{"Owner":"evil"}"#, "\"owner\""),
            (r#"{"OWNER\u0000":"evil"}"#, "\"owner\""),
            (r#"{"query":"a","Q":"b"}"#, "\"q\""),
            (r#"{"l\u0131mit":1}"#, "\"limit\""),
            (r#"{"Unlisted":1}"#, "\"unlisted\""),
        ] {
            let call = format!(r#""name":"search","arguments":{arguments}"#);
            let raw = Raw::new("tools/call", call).under("bound");
            is_refused(&harness, &raw, -32602, &[known]).await;
        }
        for [method, params, known] in rows(
            r#"
            prompts/get         | "name":"greet","arguments":{"Tone":"rude"} | "tone"
            completion/complete | "ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"to","value":""},"context":{"arguments":{"Tone":"rude"}} | "tone"
            completion/complete | "ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"Tone","value":""} | argument
        "#,
        ) {
            let raw = Raw::new(method, params).under("bound");
            is_refused(&harness, &raw, -32602, &[known]).await;
        }
        // Both spellings are in the server's schema, so that both mean what they say.
        for way in ClientKind::ALL {
            let call =
                r#""name":"search","arguments":{"query":"a","limit2":1,"Limit2":2,"other":3}"#;
            let said = Raw::new("tools/call", call)
                .under("bound")
                .send_to(&harness, way)
                .await;
            let said = &said["result"]["said"]["arguments"];
            let expected = json!({"q": "a", "limit2": 1, "Limit2": 2, "other": 3, "owner": "acme"});
            assert_eq!(*said, expected, "{way:?}");
        }
    }
}

/// Where nothing is bound, arguments are the server's to read, and arrive as they were written.
#[tokio::test]
async fn arguments_that_nobody_binds_arrive_byte_for_byte() {
    let harness = Harness::with_server(server(Era::Legacy), variants).await;
    for way in ClientKind::ALL {
        let call = r#""name":"search","arguments":{ "q":"a","Q":1e2,"Limit":[{"a":1,"a":2.0}] },"nam":1,"names":2"#;
        let said = Raw::new("tools/call", call).send_to(&harness, way).await;
        let said = &said["result"]["said"];
        assert_eq!(said["arguments"]["Q"], json!(1e2), "{way:?} {said}");
        assert_eq!((&said["nam"], &said["names"]), (&json!(1), &json!(2)));
    }
    assert_eq!(harness.gateway.status().counters.len(), 0);
}

/// A request to complete an argument of this reference, in the variant that has few of them.
fn completion(reference: &str) -> Raw<'static> {
    let argument = r#""argument":{"name":"day","value":""}"#;
    let params = format!(r#""ref":{reference},{argument}"#);
    Raw::new("completion/complete", params).under("only")
}

/// SV-12: a reference goes by its `type`, as it does at the server.
#[tokio::test]
async fn a_completion_goes_by_the_type_of_its_reference() {
    let harness = Harness::with_server(server(Era::Legacy), variants).await;
    for [reference, word] in rows(
        r#"
        {"type":"ref/resource","name":"greet","uri":"log:{day}"} | `ref.name`
        {"type":"ref/prompt","name":"greet","uri":"log:{day}"} | `ref.uri`
        {"type":"ref/prompt","uri":"doc:{name}"} | `ref.uri`
        {"type":"ref/prompt"} | `ref.name` must be a string
        {"type":"ref/resource","uri":7} | `ref.uri` must be a string
        {"name":"greet"} | `ref.type`
        {"type":"Ref/resource","uri":"doc:{name}"} | `ref.type`
        {"type":"ref/resource","Type":"ref/prompt","uri":"doc:{name}"} | "Type"
    "#,
    ) {
        is_refused(&harness, &completion(reference), -32602, &[word]).await;
    }
    for reference in [
        r#"{"type":"ref/prompt","name":"secret"}"#,
        r#"{"type":"ref/resource","uri":"log:{day}"}"#,
    ] {
        let raw = completion(reference);
        for way in ClientKind::ALL {
            let answer = raw.send_to(&harness, way).await;
            let code = answer["error"]["code"].as_i64();
            assert!(matches!(code, Some(-32602 | -32002)), "{way:?} {answer}");
        }
    }
    assert!(harness.peer.of("completion/complete").is_empty());
    for reference in [
        r#"{"type":"ref/prompt","name":"greet","title":"Greet"}"#,
        r#"{"type":"ref/resource","uri":"doc:{name}"}"#,
    ] {
        let raw = completion(reference);
        for way in ClientKind::ALL {
            let answer = raw.send_to(&harness, way).await;
            let said = &answer["result"]["said"]["ref"];
            let expected = serde_json::from_str::<Value>(reference).unwrap();
            assert_eq!(*said, expected, "{way:?} {answer}");
        }
    }
}

/// SV-26: a state is bound to what every reader sees, be it one that takes the first key, the last, or any case.
#[tokio::test]
async fn a_state_is_not_taken_with_arguments_that_readers_read_differently() {
    let harness = Harness::with_server(server(Era::Modern), variants).await;
    let call = |arguments: &str, state: Option<&Value>| {
        let state = state
            .map(|state| format!(r#","requestState":{state}"#))
            .unwrap_or_default();
        Raw::new(
            "tools/call",
            format!(r#""name":"search","arguments":{arguments}{state}"#),
        )
    };
    let plain = r#"{"later":true,"q":"pay 5","to":{"a":1}}"#;
    for way in [ClientKind::HttpModern, ClientKind::StdioModern] {
        let asked = call(plain, None).send_to(&harness, way).await;
        let state = asked["result"]["requestState"].clone();
        assert!(state.is_string(), "{way:?} {asked}");
        for arguments in [
            r#"{"later":true,"q":"pay 500","q":"pay 5","to":{"a":1}}"#,
            r#"{"later":true,"\u0071":"pay 500","q":"pay 5","to":{"a":1}}"#,
            r#"{"later":true,"q":"pay 5","to":{"a":2,"a":1}}"#,
        ] {
            let answer = call(arguments, Some(&state)).send_to(&harness, way).await;
            let found = &answer["error"]["code"];
            assert_eq!(*found, -32602, "{way:?} {arguments} {answer}");
            answer.contains("/error/message", "is given twice");
        }
        let escaped = call(
            r#"{"to":{"a":1},"\u0071":"pay 5","later":true}"#,
            Some(&state),
        )
        .send_to(&harness, way)
        .await;
        assert!(escaped["result"]["said"].is_object(), "{way:?} {escaped}");
        // What was asked of such a request is not answered to one that means one of the two.
        for arguments in [
            r#"{"later":true,"q":"pay 500","q":"pay 5"}"#,
            r#"{"later":true,"q":"pay 5","Q":"pay 500"}"#,
        ] {
            let asked = call(arguments, None).send_to(&harness, way).await;
            let state = asked["result"]["requestState"].clone();
            assert!(state.is_string(), "{way:?} {asked}");
            for arguments in [arguments, r#"{"later":true,"q":"pay 5"}"#] {
                let answer = call(arguments, Some(&state)).send_to(&harness, way).await;
                let found = &answer["error"]["code"];
                assert_eq!(*found, -32602, "{way:?} {arguments} {answer}");
            }
        }
    }
    // Three of the first state, and each request that repeats itself.
    assert_eq!(count(&harness, DUPLICATES), 2 * (3 + 2));
}
