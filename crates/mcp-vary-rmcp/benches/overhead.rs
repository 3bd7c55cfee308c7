//! The CPU time that [`VaryServer`] adds to a request, measured in paired rounds against the bare
//! handler.
//!
//! `cargo bench -p mcp-vary-rmcp`. Everything runs on one thread without sockets, so its CPU time
//! is that of the request: parsed by rmcp, answered by the handler, written as bytes. Each subject
//! gets the same bytes. In each round all subjects take turns, and the figures are the differences
//! within a round. `--check` sends a few requests and only checks the responses.
#![expect(clippy::print_stdout, reason = "the figures are printed")]
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::process::ExitCode;
use std::sync::Arc;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use mcp_vary::variant::ServerVariant;
use mcp_vary_rmcp::server::{ToolView, VariantHandler, VaryServer, View};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf,
};

/// The number of paired rounds, and of requests to each subject in each round.
const ROUNDS: usize = 20;
const REQUESTS: usize = 1_000;

/// The limit for the added CPU time of a request, in microseconds.
const BAR: f64 = 5.0;

/// Student's t: two-sided 95 %, 19 degrees of freedom.
const STUDENT: f64 = 2.093;

fn main() -> ExitCode {
    let check = std::env::args().any(|argument| argument == "--check");
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    if runtime.block_on(measure(check)) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Returns whether every row is within the limit.
async fn measure(check: bool) -> bool {
    let rounds = if check { 1 } else { ROUNDS };
    let requests = if check { 5 } else { REQUESTS };
    let mut holds = true;
    println!("{:<28} {:>9}  more with", "", "bare");
    for method in ["tools/call", "tools/list"] {
        for client_kind in [Way::Http, Way::Pipe] {
            let mut subjects = subjects(method, client_kind).await;
            let mut table = vec![Vec::new(); subjects.len()];
            for round in 0..rounds {
                for step in 0..subjects.len() {
                    // Rotate the order, so that no subject is always first.
                    let at = (round + step) % subjects.len();
                    let cost = cost(&mut subjects[at].1, requests).await;
                    table[at].push(cost);
                }
            }
            if !check {
                holds &= report(&format!("{method}, {client_kind:?}"), &subjects, &table);
            }
        }
    }
    holds
}

/// Prints a row, and returns whether it is within the limit.
fn report(name: &str, subjects: &[(&str, Subject)], table: &[Vec<f64>]) -> bool {
    let mut holds = true;
    let bare = &table[0];
    let mut line = format!("{name:<28} {:>6.1} µs", mean(bare));
    for ((subject, _), costs) in subjects.iter().zip(table).skip(1) {
        let pairs = costs.iter().zip(bare);
        let more: Vec<f64> = pairs.map(|(with, bare)| with - bare).collect();
        let (mean, interval) = (mean(&more), interval(&more));
        let verdict = if mean <= BAR { "" } else { " MISSED" };
        holds &= mean <= BAR;
        line.push_str(&format!(
            "  {subject} {mean:+.1} ± {interval:.1} µs{verdict}"
        ));
    }
    println!("{line}");
    holds
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn interval(values: &[f64]) -> f64 {
    let (mean, count) = (mean(values), values.len() as f64);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    STUDENT * (squares / (count - 1.0)).sqrt() / count.sqrt()
}

/// Microseconds of CPU time for one request.
async fn cost(subject: &mut Subject, requests: usize) -> f64 {
    subject.exchange(requests / 10).await;
    let before = used();
    subject.exchange(requests).await;
    (used() - before) * 1e6 / requests as f64
}

/// Seconds of CPU time that this thread has used.
fn used() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The two connections that are measured: a modern client over HTTP, and a legacy session over a
/// pipe.
#[derive(Clone, Copy, Debug)]
enum Way {
    Http,
    Pipe,
}

/// A measured server and its requests.
enum Subject {
    Http(Box<dyn Fn(usize) -> Answering>),
    Pipe {
        lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
        writer: WriteHalf<DuplexStream>,
        messages: Vec<String>,
    },
}

type Answering = std::pin::Pin<Box<dyn Future<Output = Bytes>>>;

impl Subject {
    async fn exchange(&mut self, requests: usize) {
        for number in 0..requests {
            match self {
                Self::Http(ask) => good(&ask(number).await),
                Self::Pipe {
                    lines,
                    writer,
                    messages,
                } => {
                    let message = &messages[number % messages.len()];
                    writer.write_all(message.as_bytes()).await.unwrap();
                    good(lines.next_line().await.unwrap().unwrap().as_bytes());
                }
            }
        }
    }
}

/// A wrong response would make the measurement useless.
fn good(answer: &[u8]) {
    let text = std::str::from_utf8(answer).unwrap();
    assert!(text.contains("\"result\""), "{text}");
    assert!(!text.contains("\"error\""), "{text}");
}

/// The bare handler, in four variants, with negotiation, with both, and four handlers with both.
async fn subjects(method: &str, client_kind: Way) -> Vec<(&'static str, Subject)> {
    let variants = || {
        let echo = VariantHandler::new(Echo);
        let named = |description: &str| ToolView::new().with_description(description);
        let short = View::new().with_tool("echo", named("Says it again"));
        let few = View::new().with_tools(["echo", "tool_1", "tool_2"]);
        let renamed = View::new().with_tool("tool_1", named("One").with_name("one"));
        VaryServer::builder()
            .with_variant(variant("all"), echo.clone())
            .with_variant(variant("short"), echo.clone().with_view(short))
            .with_variant(variant("few"), echo.clone().with_view(few))
            .with_variant(variant("renamed"), echo.with_view(renamed))
    };
    let handlers = || {
        let ids = ["all", "short", "few", "renamed"].into_iter();
        ids.fold(VaryServer::builder(), |builder, id| {
            builder.with_variant(variant(id), Echo)
        })
    };
    let negotiation = VaryServer::new(Echo);
    let both = variants().with_negotiation().build().unwrap();
    let variants = variants().build().unwrap();
    let handlers = handlers().with_negotiation().build().unwrap();
    vec![
        ("bare", subject(Echo, method, client_kind, true).await),
        (
            "variants",
            subject(variants, method, client_kind, true).await,
        ),
        (
            "negotiation",
            subject(negotiation, method, client_kind, false).await,
        ),
        ("both", subject(both, method, client_kind, true).await),
        (
            "handlers",
            subject(handlers, method, client_kind, true).await,
        ),
    ]
}

fn variant(id: &str) -> ServerVariant {
    ServerVariant::new(id.parse().unwrap(), "")
}

async fn subject<S: ServerHandler + Clone>(
    server: S,
    method: &str,
    client_kind: Way,
    selects: bool,
) -> Subject {
    let messages = messages(method, matches!(client_kind, Way::Http), selects);
    match client_kind {
        Way::Http => http(server, method, messages),
        Way::Pipe => pipe(server, messages).await,
    }
}

fn http<S: ServerHandler + Clone>(server: S, method: &str, messages: Vec<String>) -> Subject {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true);
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    let method = method.to_owned();
    let bodies: Vec<Bytes> = messages.into_iter().map(Bytes::from).collect();
    Subject::Http(Box::new(move |number| {
        let body = bodies[number % bodies.len()].clone();
        let mut request = http::Request::post("/mcp")
            .header("Host", "localhost")
            .header("Accept", "application/json, text/event-stream")
            .header("Content-Type", "application/json")
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", &method);
        if method == "tools/call" {
            request = request.header("Mcp-Name", "echo");
        }
        let request = request.body(Full::new(body)).unwrap();
        let service = service.clone();
        Box::pin(async move {
            let answer = service.handle(request).await;
            answer.into_body().collect().await.unwrap().to_bytes()
        })
    }))
}

async fn pipe<S: ServerHandler>(server: S, messages: Vec<String>) -> Subject {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
    let (reader, mut writer) = tokio::io::split(ours);
    let mut lines = BufReader::new(reader).lines();
    let initialize = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": capabilities(),
            "clientInfo": {"name": "client", "version": "1.0.0"},
        },
    });
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let begin = format!("{initialize}\n{initialized}\n");
    writer.write_all(begin.as_bytes()).await.unwrap();
    lines.next_line().await.unwrap().unwrap();
    let messages = messages.into_iter().map(|message| message + "\n").collect();
    Subject::Pipe {
        lines,
        writer,
        messages,
    }
}

/// The declarations of every client.
fn capabilities() -> Value {
    json!({"extensions": {
        "io.modelcontextprotocol/content-negotiation": {"features": ["agent", "format=json"]},
        "io.modelcontextprotocol/server-variants": {"variantHints": {"hints": {"useCase": "coding"}}},
    }})
}

/// The requests that take turns; three select a variant. A server that negotiates and has no
/// variants rejects a selector: for such servers (`selects` is false) the requests carry another
/// key of the same length.
fn messages(method: &str, is_modern: bool, selects: bool) -> Vec<String> {
    let message = |variant: Option<&str>| {
        let mut meta = json!({});
        if is_modern {
            meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "client", "version": "1.0.0"},
                "io.modelcontextprotocol/clientCapabilities": capabilities(),
            });
        }
        if let Some(variant) = variant {
            meta[if selects { SELECTOR } else { OTHER }] = json!(variant);
        }
        let mut params = json!({"_meta": meta});
        if method == "tools/call" {
            params["name"] = json!("echo");
            params["arguments"] = json!({"text": "hello"});
        }
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
    };
    let variants = [None, Some("short"), Some("few"), Some("renamed")];
    variants.into_iter().map(message).collect()
}

const SELECTOR: &str = "io.modelcontextprotocol/server-variant";
/// As long as the selector's key, and without a meaning.
const OTHER: &str = "io.modelcontextprotocol/server-nothing";

/// A server as authors write them, with ten tools.
#[derive(Clone)]
struct Echo;

impl Echo {
    fn tools() -> Vec<Tool> {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let schema = Arc::new(schema.as_object().unwrap().clone());
        let names = std::iter::once("echo".to_owned()).chain((1..10).map(|n| format!("tool_{n}")));
        names
            .map(|name| {
                Tool::new(
                    name,
                    "Says what it is given, as it was given",
                    schema.clone(),
                )
            })
            .collect()
    }
}

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        static TOOLS: std::sync::LazyLock<Vec<Tool>> = std::sync::LazyLock::new(Echo::tools);
        TOOLS.iter().find(|tool| tool.name == name).cloned()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        static TOOLS: std::sync::LazyLock<Vec<Tool>> = std::sync::LazyLock::new(Echo::tools);
        Ok(ListToolsResult::with_all_items(TOOLS.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let text = arguments["text"].as_str().unwrap_or_default().to_owned();
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}
