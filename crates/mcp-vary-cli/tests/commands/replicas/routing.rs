//! The files for load balancers, as they are in the documentation.

use std::collections::BTreeSet;
use std::sync::Mutex;

use mcp_vary_testkit::message::notification;
use mcp_vary_testkit::scripted_server::{ReceivedRequest, Reply, ScriptedServer, event};

use super::forwarding::{call_in, forwarded, text_of};
use super::*;
use crate::gateways::nginx_including;
use crate::load::session;

const FILES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/how-to/load-balancers"
);

fn shown(name: &str) -> String {
    fs::read_to_string(Path::new(FILES).join(name)).unwrap()
}

impl Replicas {
    /// A file of the documentation, with the addresses of these three.
    pub(super) fn addressed(&self, name: &str) -> String {
        let mut text = shown(name);
        for (number, replica) in self.all.iter().enumerate() {
            let address = format!("10.0.0.1{}:8800", number + 1);
            assert!(text.contains(&address), "{text}");
            text = text
                .replace(&format!("{address} check port 8802"), &replica.checked())
                .replace(&address, &replica.server.address.to_string());
        }
        text
    }
}

#[test]
#[ignore = "`cargo xtask test replicas` runs it"]
fn haproxy_and_nginx_accept_their_files_as_shown() {
    let folder = std::env::temp_dir().join(format!("vary-routing-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut haproxy = Command::new("haproxy");
    haproxy
        .args(["-c", "-f"])
        .arg(Path::new(FILES).join("haproxy.cfg"));
    let mut nginx = Command::new("nginx");
    nginx
        .arg("-t")
        .arg("-c")
        .arg(nginx_including(&shown("nginx.conf"), &folder));
    for (mut command, verdict) in [
        (haproxy, "Configuration file is valid"),
        (nginx, "test is successful"),
    ] {
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        assert!(output.status.success() && text.contains(verdict), "{text}");
        assert!(!text.to_lowercase().contains("warn"), "{text}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

/// Three replicas before a server whose tool `which` answers with the number of the replica that calls it, `stream`
/// begins a stream that does not end, and `silent` never answers.
async fn replicas(name: &str) -> (ScriptedServer, Replicas) {
    let open = Mutex::new(Vec::new());
    let server = ScriptedServer::start(move |seen| {
        let name = seen.body["params"]["name"].as_str();
        match (seen.method(), name) {
            ("tools/list", _) => {
                let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}});
                let tools = ["which", "stream", "silent"].map(tool);
                Some(seen.answer(&json!({"tools": tools})))
            }
            ("tools/call", Some("which")) => {
                let number = seen.header("x-replica").unwrap();
                let text = json!({"type": "text", "text": number});
                Some(seen.answer(&json!({"content": [text]})))
            }
            ("tools/call", Some("stream")) => {
                let (stream, reply) = Reply::stream();
                let params = json!({"level": "error", "data": "on the way"});
                let log = notification("notifications/message", params);
                stream.send(event(&log).into()).unwrap();
                open.lock().unwrap().push(stream);
                Some(reply)
            }
            ("tools/call", _) => Some(Reply::silence()),
            _ => None,
        }
    })
    .await;
    let entry = format!(
        "{{url: \"{}\", headers: {{X-Replica: \"NUMBER\"}}}}",
        server.url
    );
    let replicas = Replicas::before(&entry, name, &[""; 3]).await;
    (server, replicas)
}

/// The replica that a call goes to.
async fn which(http: &mut RawHttp, call: &HttpRequest) -> usize {
    let answer = http.ask(call).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    text_of(&answer.answer()).parse().unwrap()
}

/// The calls of a session go to one replica, those without one to all, and events arrive as they are sent.
async fn routes(proxy: &Proxy, capabilities: &serde_json::Value) {
    let mut used = BTreeSet::new();
    for _ in 0..8 {
        let session = session(proxy.address, capabilities).await;
        let call = call_in(&session, "which");
        let mut http = RawHttp::connect(proxy.address).await;
        let first = which(&mut http, &call).await;
        for _ in 0..3 {
            let mut http = RawHttp::connect(proxy.address).await;
            assert_eq!(which(&mut http, &call).await, first);
        }
        used.insert(first);
        http.send(&call_in(&session, "stream").bytes()).await;
        assert_eq!(http.head().await.status, 200);
        assert!(http.event().await.unwrap()["params"]["data"] == "on the way");
    }
    assert!(used.len() > 1, "{used:?}");
    let mut http = RawHttp::connect(proxy.address).await;
    let mut used = BTreeSet::new();
    for _ in 0..60 {
        used.insert(which(&mut http, &call("which")).await);
    }
    assert_eq!(used.len(), 3, "{used:?}");
}

/// A call whose replica is killed fails, and is not sent again; the next one of its session reaches another replica.
async fn is_sent_once(proxy: &Proxy, server: &ScriptedServer, replicas: &mut Replicas) {
    let is_silent = |seen: &ReceivedRequest| seen.body["params"]["name"] == "silent";
    let silent = || {
        let calls = server.of("tools/call").into_iter();
        calls.filter(is_silent).collect::<Vec<_>>()
    };
    let session = session(proxy.address, &json!({})).await;
    let mut http = RawHttp::connect(proxy.address).await;
    http.send(&call_in(&session, "silent").bytes()).await;
    until(async || !silent().is_empty()).await;
    let number: usize = silent()[0].header("x-replica").unwrap().parse().unwrap();
    let mut dead = replicas.all.remove(number);
    signal("KILL", dead.server.child.id());
    dead.server.child.wait().unwrap();
    assert_eq!(http.response().await.status, 502);
    let mut http = RawHttp::connect(proxy.address).await;
    let next = which(&mut http, &call_in(&session, "which")).await;
    assert_ne!(next, number);
    assert_eq!(silent().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn haproxy_sends_the_requests_of_a_session_to_the_replica_that_opened_it() {
    let (server, mut replicas) = replicas("haproxy").await;
    let proxy = Proxy::haproxy(&replicas.addressed("haproxy.cfg"), &replicas.folder).await;
    // Sessions that are forwarded from all others.
    routes(&proxy, &json!({"roots": {}})).await;
    for replica in &replicas.all {
        assert_eq!(forwarded(replica, "ok").await, 0);
    }
    is_sent_once(&proxy, &server, &mut replicas).await;
    replicas.end();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn nginx_sends_the_requests_of_a_session_to_one_replica() {
    let (server, mut replicas) = replicas("nginx").await;
    let proxy = Proxy::nginx(&replicas.addressed("nginx.conf"), &replicas.folder).await;
    routes(&proxy, &json!({})).await;
    is_sent_once(&proxy, &server, &mut replicas).await;
    replicas.end();
}
