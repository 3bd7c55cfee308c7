//! What handlers receive behind variants, and how their answers change.

use crate::prelude::*;
use crate::shop::Shop;
use crate::support::{Told, initialized, lines_and_more, serve_http_with};
use crate::variants::{said, variant};
use rmcp::model::{
    CallToolResponse, CancelTaskParams, CreateTaskResult, CustomRequest, CustomResult, ErrorCode,
    GetTaskParams, GetTaskResult, ServerNotification, ServerRequest,
};

/// The variants `a`, which is the default, and `b`.
fn server<H: ServerHandler>(handler: impl Fn(&'static str) -> H) -> VaryServer {
    let server = VaryServer::builder()
        .with_negotiation()
        .with_variant(variant("a"), handler("a"))
        .with_variant(variant("b"), handler("b"));
    server.build().unwrap()
}

/// Has two pages of each list, with its own cursor for the second.
struct Paged(&'static str);

impl Paged {
    fn turn(&self, params: PageParams) -> McpResult<(&'static str, Option<String>)> {
        match params.and_then(|params| params.cursor) {
            None => Ok(("first", Some(self.0.to_owned()))),
            Some(cursor) if cursor == self.0 => Ok(("second", None)),
            Some(cursor) => Err(ErrorData::internal_error(cursor, None)),
        }
    }
}

macro_rules! paged {
    ($function:ident, $result:ident, $item:expr) => {
        async fn $function(&self, params: PageParams, _context: Context) -> McpResult<$result> {
            let (name, next) = self.turn(params)?;
            let mut list = $result::with_all_items(vec![$item(name)]);
            list.next_cursor = next;
            Ok(list)
        }
    };
}

impl ServerHandler for Paged {
    paged!(list_tools, ListToolsResult, |name: &'static str| {
        let mut tool = Tool::default();
        tool.name = name.into();
        tool
    });
    paged!(list_prompts, ListPromptsResult, |name| {
        Prompt::new(name, None::<String>, None)
    });
    paged!(list_resources, ListResourcesResult, |name| {
        Resource::new("a:b", name)
    });
    paged!(
        list_resource_templates,
        ListResourceTemplatesResult,
        |name| { ResourceTemplate::new("a:{b}", name) }
    );
}

/// SV-13: a handler receives its own cursors, even an empty one; clients see sealed cursors.
#[tokio::test]
async fn every_list_is_followed_by_cursors_of_ours() {
    let lists = [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ];
    for own in ["page 2", ""] {
        for way in each(WAYS) {
            let client = connect(&server(|_| Paged(own)), way).await;
            for (method, items) in lists {
                let first = client.result("b", method, json!({})).await;
                assert_eq!(names(&first[items]), ["first"], "{method}");
                let cursor = &first["nextCursor"];
                assert!(cursor.is_string() && *cursor != own, "{method}");
                let params = json!({"cursor": cursor});
                let second = client.result("b", method, params).await;
                assert_eq!(names(&second[items]), ["second"], "{method}");
                assert_eq!(second.get("nextCursor"), None, "{method}");
            }
        }
    }
}

/// Returns an error.
#[derive(Clone)]
struct Failing(i32, Option<Value>);

impl Failing {
    fn error(&self) -> ErrorData {
        ErrorData::new(ErrorCode(self.0), "because", self.1.clone())
    }
}

impl ServerHandler for Failing {
    async fn list_tools(&self, _: PageParams, _: Context) -> McpResult<ListToolsResult> {
        Err(self.error())
    }

    async fn call_tool(&self, _: CallParams, _: Context) -> CallResult {
        Err(self.error())
    }
}

/// SV-12: the active variant is added to errors about the request, and to no others.
#[tokio::test]
async fn only_errors_about_the_request_say_the_active_variant() {
    let data = || Some(json!({"own": 1}));
    let extended = Some(json!({"own": 1, "activeVariant": "b"}));
    let cases = [
        (-32602, None, Some(json!({"activeVariant": "b"}))),
        (-32602, data(), extended),
        (-32602, Some(json!("own")), Some(json!("own"))),
        (-32603, data(), data()),
        (-32000, None, None),
    ];
    for (code, own, expected) in cases {
        for way in each(WAYS) {
            let client = connect(&server(|_| Failing(code, own.clone())), way).await;
            for method in ["tools/list", "tools/call"] {
                let error = client.error("b", method, json!({"name": "any"})).await;
                assert_eq!((error.code.0, &*error.message), (code, "because"));
                assert_eq!(error.data, expected, "{method} {code}");
            }
        }
    }
}

/// Returns what it received; sends requests and notifications on demand.
struct Witness;

impl ServerHandler for Witness {
    async fn call_tool(&self, request: CallParams, context: Context) -> CallResult {
        let arguments = json!(request.arguments);
        let reported = match &*request.name {
            "given" => {
                let parts = context.extensions.get::<http::request::Parts>();
                let role = parts.and_then(|parts| parts.headers.get("x-role")?.to_str().ok());
                let capabilities = context.client_capabilities();
                let elicits = capabilities.is_some_and(|known| known.elicitation.is_some());
                json!({"role": role, "elicits": elicits})
            }
            "ask" => {
                let question: ServerRequest = serde_json::from_value(arguments).unwrap();
                let answer = context.peer.send_request(question).await;
                json!(answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?)
            }
            _ => {
                let token = context.meta.get_progress_token().unwrap();
                for step in [1.0, 2.0] {
                    let progress = ProgressNotificationParam::new(token.clone(), step);
                    context.peer.notify_progress(progress).await.unwrap();
                    let log = json!({
                        "method": "notifications/message",
                        "params": {"level": "info", "data": step},
                    });
                    let log: ServerNotification = serde_json::from_value(log).unwrap();
                    context.peer.send_notification(log).await.unwrap();
                }
                Value::Null
            }
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(reported.to_string())]).into())
    }

    async fn on_custom_request(
        &self,
        custom: CustomRequest,
        _: Context,
    ) -> McpResult<CustomResult> {
        Ok(CustomResult::new(json!({"asked": custom.method})))
    }
}

/// A handler sees the headers of the request and the client's real capabilities.
#[tokio::test]
async fn a_handler_is_given_the_requests_own_context() {
    let server = serve_http(server(|_| Witness)).await;
    for era in each([Era::Legacy, Era::Modern]) {
        for (role, elicits) in [("one", true), ("other", false)] {
            let capabilities = if elicits {
                declaring(&[], json!({}))
            } else {
                json!({})
            };
            let client = join(&server.url, era, capabilities, &[("x-role", role)]).await;
            let given = client.call("b", "given", json!({})).await;
            let expected = json!({"role": role, "elicits": elicits});
            assert_eq!(said(&given), expected);
        }
    }
}

/// SV-28: requests of a handler reach its client, and the responses come back.
#[tokio::test]
async fn every_question_of_a_handler_reaches_its_client() {
    let sampling = json!({
        "method": "sampling/createMessage",
        "params": {"messages": [], "maxTokens": 1},
    });
    for wire in each([Wire::Pipe, Wire::Http]) {
        let server = server(|_| Witness);
        let capabilities = json!({"roots": {}, "sampling": {}, "elicitation": {}});
        let mut client = connect_with(&server, (Era::Legacy, wire), capabilities).await;
        let sampled = client.call("b", "ask", sampling.clone()).await;
        assert_eq!(client.hear().await, Told::Asked("sampling".to_owned()));
        assert_eq!(said(&sampled)["content"]["text"], "hm");
        let roots = json!({"method": "roots/list"});
        let rooted = client.call("b", "ask", roots).await;
        assert_eq!(client.hear().await, Told::Asked("roots".to_owned()));
        assert_eq!(said(&rooted)["roots"][0]["uri"], "file:///a");
    }
}

/// Notifications of a call leave before its result, in order.
#[tokio::test]
async fn progress_and_log_leave_in_order() {
    let call = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "tell", "_meta": {VARIANT: "b", "progressToken": 7}},
    });
    let messages = [initialize(json!({})), initialized(), call];
    let told = lines_and_more(server(|_| Witness), &messages, 4).await;
    let members = |line: &String| {
        let message: Value = serde_json::from_str(line).unwrap();
        let params = &message["params"];
        json!([message["method"], params["progress"], params["data"]])
    };
    let told: Vec<_> = told[1..].iter().map(members).collect();
    let (progress, log) = ("notifications/progress", "notifications/message");
    let expected = json!([
        [progress, 1.0, null],
        [log, null, 1.0],
        [progress, 2.0, null],
        [log, null, 2.0],
        [null, null, null],
    ]);
    assert_eq!(json!(told), expected);
}

/// Progress goes to the client of the call, whatever others are connected.
#[tokio::test]
async fn progress_reaches_its_caller_only() {
    let server = serve_http(server(Shop::new)).await;
    for era in each([Era::Legacy, Era::Modern]) {
        let mut one = join(&server.url, era, json!({}), &[]).await;
        let mut other = join(&server.url, era, json!({}), &[]).await;
        other.call("b", "get_who", json!({})).await;
        one.call("b", "put_progress", json!({})).await;
        for _ in 0..3 {
            assert!(matches!(one.hear().await, Told::Progress(_)));
        }
        other.call("b", "get_who", json!({})).await;
        assert!(other.told.try_recv().is_err());
    }
}

/// A method of another extension reaches the handlers unchanged.
#[tokio::test]
async fn a_method_of_the_handlers_own_is_answered_by_it() {
    for way in each(WAYS) {
        let client = connect(&server(|_| Witness), way).await;
        for method in ["com.example/any", "skills/list", "resources/directory/read"] {
            let answer = client.under("b", method, json!({})).await;
            assert_eq!(answer.unwrap()["asked"], method);
        }
    }
}

/// Lists nothing, and has one resource, to which its tool links.
struct Linking;

impl ServerHandler for Linking {
    async fn call_tool(&self, _: CallParams, _: Context) -> CallResult {
        let link = ContentBlock::resource_link(Resource::new("a:linked", "linked"));
        Ok(CallToolResult::success(vec![link]).into())
    }

    async fn read_resource(&self, request: ReadParams, _: Context) -> ReadResult {
        match &*request.uri {
            "a:linked" => Ok(ReadResourceResult::new(Vec::new()).into()),
            _ => Err(ErrorData::resource_not_found("nothing there", None)),
        }
    }
}

/// SV-14: a resource that only a tool links to exists if the view's URI filter accepts it, listed
/// or not, for every client and in every replica; no state is needed.
#[tokio::test]
async fn what_is_only_linked_can_be_read() {
    let linking = VariantHandler::new(Linking);
    let hiding = View::new().with_resources_where(|uri| !uri.starts_with("a:"));
    let server = VaryServer::builder()
        .with_variant(variant("all"), linking.clone())
        .with_variant(variant("tools"), linking.clone().with_view(View::new()))
        .with_variant(variant("less"), linking.with_view(hiding))
        .build()
        .unwrap();
    for way in each(WAYS) {
        let client = connect(&server, way).await;
        for (variant, is_there) in [("all", true), ("tools", true), ("less", false)] {
            let linked = json!({"uri": "a:linked"});
            let read = client.under(variant, "resources/read", linked).await;
            assert_eq!(read.is_ok(), is_there, "{variant}");
        }
    }
}

/// Creates a task for every call, and knows only its own tasks.
struct Working(&'static str);

impl ServerHandler for Working {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tasks();
        ServerConfig::new(capabilities.build())
    }

    async fn call_tool(&self, _: CallParams, _: Context) -> CallResult {
        let task = json!({
            "resultType": "task", "taskId": self.0, "status": "working",
            "createdAt": "2026-11-20T00:00:00Z", "lastUpdatedAt": "2026-11-20T00:00:00Z",
            "ttlMs": null,
        });
        let task: CreateTaskResult = serde_json::from_value(task).unwrap();
        Ok(CallToolResponse::Task(task))
    }

    async fn get_task(&self, request: GetTaskParams, _: Context) -> McpResult<GetTaskResult> {
        self.knows(&request.task_id)?;
        let task = json!({
            "resultType": "complete", "taskId": self.0, "status": "completed",
            "createdAt": "2026-11-20T00:00:00Z", "lastUpdatedAt": "2026-11-20T00:00:00Z",
            "ttlMs": null, "result": {"content": [{"type": "text", "text": self.0}]},
        });
        Ok(serde_json::from_value(task).unwrap())
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: Context) -> McpResult<()> {
        self.knows(&request.task_id)
    }
}

impl Working {
    fn knows(&self, task: &str) -> McpResult<()> {
        if task == self.0 {
            Ok(())
        } else {
            Err(ErrorData::invalid_params("unknown task", None))
        }
    }
}

/// SV-28: a task belongs to the variant in which it was created, whatever variant later requests
/// select.
#[tokio::test]
async fn a_task_stays_where_it_was_made() {
    let capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    for wire in each([Wire::Pipe, Wire::Http]) {
        let (server, way) = (server(Working), (Era::Modern, wire));
        let client = connect_with(&server, way, capabilities.clone()).await;
        for made in ["a", "b"] {
            let task = client.call(made, "any", json!({})).await;
            assert_eq!(task["taskId"], made);
            for selected in ["", "a", "b", "none"] {
                let id = json!({"taskId": made});
                let got = client.result(selected, "tasks/get", id.clone()).await;
                assert_eq!(got["result"]["content"][0]["text"], made);
                client.result(selected, "tasks/cancel", id).await;
            }
        }
        let unknown = json!({"taskId": "none"});
        let error = client.error("a", "tasks/get", unknown).await;
        assert_eq!((error.code.0, &*error.message), (-32602, "unknown task"));
    }
}

/// A client that could not read a task gets the error of rmcp.
#[tokio::test]
async fn a_client_that_declares_no_tasks_gets_none() {
    for wire in each([Wire::Pipe, Wire::Http]) {
        let client = connect(&server(Working), (Era::Modern, wire)).await;
        let call = json!({"name": "any", "arguments": {}});
        let error = client.error("b", "tools/call", call).await;
        let code = ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY.0;
        let needed = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        let data = json!({"requiredCapabilities": needed});
        let message = "Missing required client capability";
        assert_eq!(data_of(error, code, message), data);
    }
}

/// SV-8: a client without the extension gets the default variant, and only that.
#[tokio::test]
async fn a_client_that_knows_no_variants_gets_the_default() {
    for way in each(WAYS) {
        let client = connect(&server(Shop::new), way).await;
        let tools = client.names("", "tools").await;
        assert!(tools.contains(&"get_a".to_owned()));
        assert!(!tools.contains(&"get_b".to_owned()));
        let who = client.call("", "get_who", json!({})).await;
        assert_eq!(said(&who), json!(["a", "a"]));
        let of_b = json!({"uri": "shop:///b"});
        let error = client.error("", "resources/read", of_b).await;
        let code = if way.0 == Era::Legacy { -32002 } else { -32602 };
        let data = json!({"shop": "a", "activeVariant": "a"});
        assert_eq!(data_of(error, code, "nothing there"), data);
    }
}

/// SV-8: clients in different variants do not affect each other, with sessions and without.
#[tokio::test]
async fn clients_in_different_variants_do_not_mix() {
    for sessions in [true, false] {
        let configure = |config: rmcp::transport::StreamableHttpServerConfig| {
            config.with_legacy_session_mode(sessions)
        };
        let server = serve_http_with(server(Shop::new), configure).await;
        let mut clients = tokio::task::JoinSet::new();
        for era in each([Era::Legacy, Era::Modern]) {
            for variant in ["a", "b", "a", "b"] {
                let url = server.url.clone();
                clients.spawn(async move {
                    let client = join(&url, era, json!({}), &[]).await;
                    stays_in(&client, variant).await;
                });
            }
        }
        while let Some(ended) = soon(clients.join_next()).await {
            ended.unwrap();
        }
    }
}

async fn stays_in(client: &Client, variant: &str) {
    for _ in 0..3 {
        let who = client.call(variant, "get_who", json!({})).await;
        assert_eq!(said(&who), json!([variant, variant]));
        let native = format!("get_{variant}");
        assert!(client.names(variant, "tools").await.contains(&native));
        tokio::task::yield_now().await;
    }
}

/// SV-8: missing parameters mean no selector, and are not an error.
#[tokio::test]
async fn missing_parameters_select_the_default() {
    let request = |id: u32, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method});
    let messages = [
        initialize(json!({})),
        initialized(),
        request(1, "tools/list"),
        request(2, "tools/call"),
        request(3, "prompts/list"),
    ];
    let answers = lines(server(Shop::new), &messages).await;
    assert!(answers[1].contains(r#""name":"get_a""#), "{answers:?}");
    assert!(answers[2].contains(r#""error""#), "{answers:?}");
    assert!(answers[3].contains(r#""name":"a""#), "{answers:?}");
}

/// CN-16: declared features never change what exists.
#[tokio::test]
async fn features_open_and_close_nothing() {
    for way in each(WAYS) {
        let mut seen = Vec::new();
        for tags in [&[][..], &["agent", "!interactive"], &["human", "sampling"]] {
            let server = server(Shop::new);
            let client = connect_tagged(&server, way, tags).await;
            let refused = client.under("b", "tools/call", json!({"name": "none"}));
            seen.push((
                client.names("b", "tools").await,
                client.names("b", "prompts").await,
                client.names("b", "resources").await,
                refused.await.unwrap_err().message,
            ));
        }
        assert!(seen.iter().all(|one| *one == seen[0]), "{seen:?}");
    }
}
