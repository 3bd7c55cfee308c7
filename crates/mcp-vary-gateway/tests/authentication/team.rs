//! A team before one gateway on defaults: sixty people with four clients each, and nobody is refused.

use std::io::{BufRead as _, Write as _};
use std::net::SocketAddr;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::clients::{key, keys};
use super::full_servers::with_sessions;
use crate::support::people::PersonClient;
use crate::support::*;

const PEOPLE: usize = 60;
/// Requests at once.
const AT_ONCE: usize = 64;
/// Two programs, two servers with sessions, and one without.
const SERVERS: [&str; 5] = ["one", "two", "three", "four", "five"];
/// The team starts some 800 processes. On two quiet cores that takes a third of a minute.
const LONGEST: Duration = Duration::from_secs(300);
/// The argument by which this program is a server.
const SERVE: &str = "serve-stdio";

/// The program of the first two servers is this one, as long as its input is open.
#[test]
fn this_program_can_be_a_server() {
    if !std::env::args().any(|argument| argument == SERVE) {
        return;
    }
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let id = &message["id"];
        if id.is_null() {
            continue;
        }
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => introduced("program", json!({"tools": {}})),
            "tools/list" => {
                json!({"tools": [{"name": "odd", "inputSchema": {"type": "object"}}]})
            }
            "tools/call" => json!({"content": []}),
            "ping" => json!({}),
            _ => {
                let error = json!({"code": -32601, "message": "Method not found"});
                let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
                writeln!(output, "{answer}").unwrap();
                continue;
            }
        };
        writeln!(
            output,
            "{}",
            json!({"jsonrpc": "2.0", "id": id, "result": result})
        )
        .unwrap();
    }
}

fn program() -> Target {
    let this = std::env::current_exe().unwrap();
    let test = "authentication::team::this_program_can_be_a_server";
    let args = [SERVE, test, "--exact", "--nocapture", "--quiet"];
    Target::command(this.to_str().unwrap(), args.map(str::to_owned))
}

fn person(number: usize) -> String {
    format!("person-{number}")
}

/// A gateway with defaults.
async fn before_five_servers() -> (Harness, [ScriptedServer; 2]) {
    let (three, four) = (
        with_sessions(&Arc::default()).await,
        with_sessions(&Arc::default()).await,
    );
    let five = places_server::start(Era::Modern).await;
    let targets = [
        program(),
        program(),
        Target::http(three.url.clone()),
        Target::http(four.url.clone()),
        Target::http(five.url.clone()),
    ];
    let servers = SERVERS.into_iter().zip(targets);
    let mut config: Config = config(program());
    config.servers = servers
        .map(|(name, target)| UpstreamConfig::new(name, target))
        .collect();
    let people: Vec<_> = (0..PEOPLE).map(person).collect();
    let people: Vec<_> = people.iter().map(String::as_str).collect();
    config.authentication = Some(keys(&people));
    (Harness::behind(three, config).await, [four, five])
}

/// A client lists the tools, and calls one of each server. Each request waits for its turn before it connects.
async fn work(address: SocketAddr, key: String, kind: (Era, Value), turns: Arc<Semaphore>) {
    let link = {
        let _turn = turns.acquire().await.unwrap();
        PersonClient::open(address, kind.0, &key, kind.1).await
    };
    let (link, key, turns) = (&link, &key, &turns);
    let ask = |method: &'static str, params: Value| async move {
        let _turn = turns.acquire().await.unwrap();
        let answer = link.ask(key, method, params).await;
        assert!(answer["result"].is_object(), "{method}: {answer}");
        answer
    };
    let list = ask("tools/list", json!({})).await;
    for server in SERVERS {
        let name = format!("{server}_odd");
        assert!(names(&list).contains(&&*name), "{name}: {list}");
        ask("tools/call", tool(&name)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_people_with_four_clients_each_are_served_on_defaults() {
    let (harness, _servers) = before_five_servers().await;
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut clients = JoinSet::new();
    for number in 0..PEOPLE {
        for kind in [
            (Era::Legacy, json!({})),
            (Era::Legacy, json!({"elicitation": {}})),
            (Era::Modern, json!({"sampling": {}})),
            (Era::Modern, json!({"roots": {}})),
        ] {
            let key = key(&person(number));
            clients.spawn(work(harness.address, key, kind, Arc::clone(&turns)));
        }
    }
    let served = tokio::time::timeout(LONGEST, clients.join_all()).await;
    assert_eq!(served.unwrap().len(), 4 * PEOPLE);
    for server in harness.gateway.status().servers {
        let calls = server.calls.unwrap();
        assert_eq!((calls.count, calls.errors), (240, 0), "{}", server.name);
    }
    harness.gateway.close().await;
}
