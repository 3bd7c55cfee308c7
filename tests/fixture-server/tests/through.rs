//! What the fixture asks of a client of the SDK, with Vary between them.
#![expect(
    deprecated,
    reason = "sampling is on its way out of the protocol, but servers still ask for it"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use fixture_server::Options;
use mcp_vary_gateway::{Config, Environment, Gateway, Target, UpstreamConfig};
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ContentBlock,
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    ElicitationAction, Implementation, SamplingMessage,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt as _, RequestContext, RoleClient, RunningService,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientHandler, ErrorData};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

const FIXTURE: &str = env!("CARGO_BIN_EXE_fixture-server");

/// A client whose person is called so.
struct Person(String);

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder()
            .enable_elicitation()
            .enable_sampling()
            .build();
        ClientConfig::new(capabilities, Implementation::new("person", "1"))
    }

    async fn create_elicitation(
        &self,
        _request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let content = json!({"username": self.0, "email": "a@example.org"});
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }

    async fn create_message(
        &self,
        _request: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let message = SamplingMessage::assistant_text(format!("I am {}", self.0));
        Ok(CreateMessageResult::new(message, "m".to_owned()))
    }
}

type Client = RunningService<RoleClient, Person>;

/// Bytes that are others each time, so that sessions are.
fn differs(bytes: &mut [u8]) {
    static CALLS: AtomicU8 = AtomicU8::new(0);
    bytes.fill(CALLS.fetch_add(1, Ordering::Relaxed));
}

/// Vary before `target`.
async fn gateway(target: Target) -> Arc<Gateway> {
    let outside = Environment::new(|| 1_000_000, differs);
    let server = UpstreamConfig::new("fixture", target);
    let gateway = Gateway::start(Config::new(server, outside)).await;
    gateway.expect("the fixture is there")
}

async fn over_http(gateway: &Arc<Gateway>, name: &str) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = Arc::clone(gateway);
    tokio::spawn(async move { serving.serve_http(listener, std::future::pending()).await });
    let transport = StreamableHttpClientTransport::from_uri(format!("http://{address}/mcp"));
    let client = Person(name.to_owned());
    let client = client.serve_with_lifecycle(transport, ClientLifecycleMode::Initialize);
    client.await.expect("Vary is there")
}

async fn over_stdio(gateway: &Arc<Gateway>, name: &str) -> Client {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(theirs);
    let serving = Arc::clone(gateway);
    tokio::spawn(async move {
        let forever = std::future::pending();
        serving.serve_stdio(input, output, forever).await
    });
    let client = Person(name.to_owned());
    let client =
        client.serve_with_lifecycle(tokio::io::split(ours), ClientLifecycleMode::Initialize);
    client.await.expect("Vary is there")
}

async fn calls(client: &Client, tool: &'static str, key: &str) -> String {
    let arguments = json!({key: "who are you?"});
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    let result = client.call_tool(params).await.expect("the tool is there");
    let text = |block: &ContentBlock| block.as_text().map(|text| text.text.clone());
    result.content.iter().filter_map(text).collect()
}

/// Each client answers for itself, however many there are.
async fn are_asked(gateway: &Arc<Gateway>) {
    let clients = [
        over_http(gateway, "Ada").await,
        over_stdio(gateway, "Grace").await,
        over_http(gateway, "Edsger").await,
    ];
    for _ in 0..3 {
        let requested = clients.iter().map(|client| async {
            let name = &client.service().0;
            let reported = calls(client, "test_sampling", "prompt").await;
            assert_eq!(reported, format!("LLM response: I am {name}"));
            let reported = calls(client, "test_elicitation", "message").await;
            assert!(reported.contains("action=accept"), "{reported}");
            assert!(
                reported.contains(&format!("\"username\":\"{name}\"")),
                "{reported}"
            );
        });
        let [one, two, three] = requested
            .collect::<Vec<_>>()
            .try_into()
            .ok()
            .expect("three");
        tokio::join!(one, two, three);
    }
    for client in clients {
        client.cancel().await.expect("it ends");
    }
}

#[tokio::test]
async fn clients_of_a_process_are_asked() {
    for era in ["legacy", "both"] {
        let args = ["--stdio", "--era", era].map(str::to_owned);
        let gateway = gateway(Target::command(FIXTURE, args)).await;
        are_asked(&gateway).await;
        gateway.close().await;
    }
}

#[tokio::test]
async fn clients_of_a_server_in_this_process_are_asked() {
    let gateway = gateway(Target::in_process(|| {
        let (gateway, server) = tokio::io::duplex(1 << 16);
        tokio::spawn(fixture_server::serve(Options::default(), server));
        gateway
    }));
    let gateway = gateway.await;
    are_asked(&gateway).await;
    gateway.close().await;
}

#[tokio::test]
async fn clients_of_an_endpoint_are_asked() {
    let (_fixture, url) = endpoint().await;
    let gateway = gateway(Target::http(url.parse().expect("an address"))).await;
    are_asked(&gateway).await;
    gateway.close().await;
}

/// The fixture over HTTP; it ends with its input.
async fn endpoint() -> (Child, String) {
    let mut command = Command::new(FIXTURE);
    command.args(["--http", "127.0.0.1:0", "--era", "legacy"]);
    command.stdin(std::process::Stdio::piped());
    command.stdout(std::process::Stdio::piped());
    let mut fixture = command.kill_on_drop(true).spawn().expect("it starts");
    let output = fixture.stdout.take().expect("standard output is piped");
    let line = BufReader::new(output).lines().next_line().await;
    let line = line.ok().flatten().expect("it says where it listens");
    let url = line.trim_start_matches("listening on ").to_owned();
    (fixture, url)
}
