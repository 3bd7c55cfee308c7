//! The HTTP front as a whole: a gateway on a socket, a server behind it that says what reached it, and any bytes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use mcp_vary::variant::ServerVariant;
use mcp_vary_gateway::{
    Config, Environment, Gateway, Limits, Target, UpstreamConfig, VariantConfig,
};
use serde_json::{Value, json};

use super::paths::resolved;
use super::readers::seen_by_all;

/// A gateway whose only variant shows one tool, one prompt and one resource.
struct House {
    address: SocketAddr,
    /// The id of a session.
    session: String,
    /// The messages that reached the server.
    reached: Arc<Mutex<Vec<String>>>,
    _runtime: tokio::runtime::Runtime,
}

/// Whatever bytes come, the gateway answers in HTTP or closes the connection, goes on, and lets nothing hidden be reached.
///
/// What begins like JSON is the body of a modern request and of one of a session; other bytes are sent as they are.
pub fn http_front(data: &[u8]) {
    static HOUSE: OnceLock<House> = OnceLock::new();
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    if data.len() > 64 << 10 {
        return;
    }
    let house = HOUSE.get_or_init(House::open);
    match data.first() {
        Some(b'{' | b'[') => {
            house.exchange(
                &post(&[("Mcp-Session-Id", house.session.as_str())], data),
                WHOLE,
            );
            let headers = modern_headers(data);
            let headers: Vec<_> = headers
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect();
            house.exchange(&post(&headers, data), WHOLE);
        }
        _ => drop(house.exchange(data, Duration::from_millis(20))),
    }
    let reached =
        std::mem::take(&mut *house.reached.lock().unwrap_or_else(PoisonError::into_inner));
    reached
        .iter()
        .for_each(|message| shows_nothing_hidden(message));
    if COUNT.fetch_add(1, Ordering::Relaxed).is_multiple_of(64) {
        let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let answer = house.exchange(
            &post(&[("Mcp-Session-Id", house.session.as_str())], ping),
            WHOLE,
        );
        assert!(
            answer.ends_with(r#""result":{}}"#),
            "the gateway does not go on: {answer}"
        );
    }
}

/// The headers that a modern request with this body needs, as far as it can be read.
fn modern_headers(body: &[u8]) -> Vec<(&'static str, String)> {
    let read: Value = serde_json::from_slice(body).unwrap_or_default();
    let plain = |value: &Value| {
        let text = value.as_str().unwrap_or_default();
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_plain {
            text.to_owned()
        } else {
            String::new()
        }
    };
    let params = &read["params"];
    let named = ["name", "uri", "taskId"].map(|key| plain(&params[key]));
    let mut headers = vec![
        ("MCP-Protocol-Version", "2026-07-28".to_owned()),
        ("Mcp-Method", plain(&read["method"])),
    ];
    headers.extend(
        named
            .into_iter()
            .find(|name| !name.is_empty())
            .map(|name| ("Mcp-Name", name)),
    );
    headers
}

fn post(headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = String::from(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nAccept: application/json, text/event-stream\r\n",
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    [head.as_bytes(), body].concat()
}

/// Panics when a reader sees something in a message to the server that the variant does not show.
fn shows_nothing_hidden(message: &str) {
    let method: String = seen_by_all(message, "method")
        .and_then(|method| serde_json::from_str(method).ok())
        .unwrap_or_default();
    let params = seen_by_all(message, "params").unwrap_or("{}");
    let shown: &[(&str, &str)] = match method.as_str() {
        "tools/call" => &[("name", r#""search""#)],
        "prompts/get" => &[("name", r#""greet""#)],
        "resources/read" | "resources/subscribe" => {
            let uri = seen_by_all(params, "uri").unwrap_or_default();
            assert!(is_shown(uri), "{message}");
            &[]
        }
        "completion/complete" => {
            let reference = seen_by_all(params, "ref").unwrap_or("{}");
            let name = seen_by_all(reference, "name").unwrap_or(r#""greet""#);
            assert_eq!(name, r#""greet""#, "{message}");
            let uri = seen_by_all(reference, "uri");
            assert!(uri.is_none_or(is_shown), "{message}");
            &[]
        }
        "initialize" | "server/discover" | "ping" | "" => &[],
        listed if listed.ends_with("/list") || listed.starts_with("notifications/") => &[],
        "resources/unsubscribe" | "logging/setLevel" => &[],
        other => panic!("{other} reached the server: {message}"),
    };
    for (key, value) in shown {
        let seen = seen_by_all(params, key);
        let text = |json: &str| serde_json::from_str::<String>(json).ok();
        assert_eq!(seen.and_then(text), text(value), "{message}");
    }
}

/// Whether a server that decodes URIs and resolves paths finds what is selected.
fn is_shown(uri: &str) -> bool {
    let uri: String = serde_json::from_str(uri).unwrap_or_default();
    let path = resolved(&uri);
    uri.starts_with("file://") && path.starts_with("/data/app/")
}

impl House {
    fn open() -> Self {
        let (server, reached) = serve_mcp();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let address = runtime.block_on(async {
            let outside = Environment::new(|| 1_000_000, |bytes| bytes.fill(7));
            let url = format!("http://{server}/mcp").parse().expect("a URL");
            let server = UpstreamConfig::new("server", Target::http(url));
            let limits = Limits::default().with_read_timeout(Duration::from_secs(2));
            let config = Config::new(server, outside).with_limits(limits);
            let config = config.with_variants_of(vec![only()]).expect("a variant");
            let gateway = Gateway::start(config).await.expect("the server answers");
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
                .await
                .expect("a port");
            let address = listener.local_addr().expect("an address");
            tokio::spawn(async move { gateway.serve_http(listener, std::future::pending()).await });
            address
        });
        let mut house = Self {
            address,
            session: String::new(),
            reached,
            _runtime: runtime,
        };
        let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"},
        }});
        let answer = house.exchange(&post(&[], begin.to_string().as_bytes()), WHOLE);
        let mut lines = answer.lines();
        let session = lines.find_map(|line| line.strip_prefix("mcp-session-id: "));
        session.expect("a session").clone_into(&mut house.session);
        house
    }

    /// Sends these bytes and reads until the end, or until nothing came for so long.
    fn exchange(&self, bytes: &[u8], patience: Duration) -> String {
        let mut stream = TcpStream::connect(self.address).expect("the gateway listens");
        stream.set_read_timeout(Some(patience)).expect("a timeout");
        // The gateway may have refused the request before it was whole.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let mut buffer = [0; 8192];
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            answer.extend_from_slice(&buffer[..read]);
            // A stream of events may not end.
            if answer.len() > 1 << 20 || answer.windows(17).any(|at| at == b"text/event-stream") {
                break;
            }
        }
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1."),
            "{}",
            String::from_utf8_lossy(&answer)
        );
        String::from_utf8_lossy(&answer).into_owned()
    }
}

/// For a request that is whole.
const WHOLE: Duration = Duration::from_secs(30);

fn only() -> VariantConfig {
    let mut only = VariantConfig::new(ServerVariant::new(
        "only".parse().expect("an id"),
        "For tests.",
    ));
    let selects = |id: &str| serde_json::from_value(json!({"include": [id]})).expect("a selection");
    only.tools = selects("search");
    only.prompts = selects("greet");
    only.resources = selects("file:///data/app/*");
    only
}

/// A server of 2025-11-25 that has more than the variant shows.
pub(super) fn serve_mcp() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let reached = Arc::<Mutex<Vec<String>>>::default();
    let all = Arc::clone(&reached);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let reached = Arc::clone(&reached);
            std::thread::spawn(move || serve_connection(stream, &reached));
        }
    });
    (address, all)
}

fn serve_connection(stream: TcpStream, reached: &Mutex<Vec<String>>) -> Option<()> {
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let (mut line, mut length, mut is_post) = (String::new(), 0, false);
        loop {
            line.clear();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            is_post |= line.starts_with("POST ");
            let header = line.trim_end().to_ascii_lowercase();
            if let Some(sent) = header.strip_prefix("content-length: ") {
                length = sent.parse().ok()?;
            }
            if header.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body = String::from_utf8_lossy(&body).into_owned();
        let (status, answer) = if is_post {
            answer(&body)
        } else {
            ("405 Method Not Allowed", String::new())
        };
        if is_post {
            reached
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(body);
        }
        let length = answer.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nMcp-Session-Id: s\r\nContent-Length: {length}\r\n\r\n"
        );
        writer.write_all(head.as_bytes()).ok()?;
        writer.write_all(answer.as_bytes()).ok()?;
    }
}

fn answer(body: &str) -> (&'static str, String) {
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    let id = &message["id"];
    if id.is_null() {
        return ("202 Accepted", String::new());
    }
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "serverInfo": {"name": "server", "version": "1"},
            "capabilities": {
                "tools": {}, "resources": {"subscribe": true}, "prompts": {}, "completions": {}, "logging": {},
                "extensions": {"com.example/ledger": {}},
            },
        }),
        "tools/list" => list("tools", "name", ["search", "delete_all"]),
        "prompts/list" => list("prompts", "name", ["greet", "secret"]),
        "resources/list" => list(
            "resources",
            "uri",
            ["file:///data/app/a", "file:///data/secret"],
        ),
        "resources/templates/list" => {
            json!({"resourceTemplates": [{"uriTemplate": "file:///data/{+path}", "name": "data"}]})
        }
        "tools/call" | "prompts/get" | "resources/read" => {
            json!({"content": [], "messages": [], "contents": []})
        }
        "completion/complete" => json!({"completion": {"values": []}}),
        "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => json!({}),
        _ => {
            let error = json!({"code": -32601, "message": "Method not found"});
            return (
                "200 OK",
                json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string(),
            );
        }
    };
    (
        "200 OK",
        json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string(),
    )
}

/// A list of items that are called so.
fn list(kind: &str, key: &str, ids: [&str; 2]) -> Value {
    let item = |id| json!({key: id, "name": id, "inputSchema": {"type": "object"}});
    json!({kind: ids.map(item)})
}
