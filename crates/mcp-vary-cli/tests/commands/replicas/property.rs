//! Whatever clients do, three replicas answer as one gateway does.

use std::net::SocketAddr;

use mcp_vary_testkit::generate::random::Random;
use mcp_vary_testkit::message::link;
use mcp_vary_testkit::scripted_server::ScriptedServer;
use serde_json::Value;

use super::forwarding::{Asking, call_in, compact, modern_call, next_round, of, roots};
use super::*;

/// What a client does. Numbers of sessions are places among those that are open; numbers of replicas say which one gets
/// the request, of which a single gateway gets all.
#[derive(Clone, Copy, Debug)]
enum Event {
    Open {
        can_be_asked: bool,
        at: usize,
    },
    List {
        session: usize,
        at: usize,
    },
    Call {
        session: usize,
        tool: &'static str,
        at: usize,
    },
    /// A call in which the server asks; the answer arrives elsewhere.
    Ask {
        session: usize,
        at: usize,
        answered_at: usize,
    },
    Delete {
        session: usize,
        at: usize,
    },
    ModernCall {
        tool: &'static str,
        at: usize,
    },
    /// A call in two rounds, and the second one again.
    ModernAsk {
        at: [usize; 3],
    },
    /// A result that is shortened, and read elsewhere.
    Shortened {
        at: usize,
        read_at: usize,
    },
}

fn event(random: &mut Random) -> Event {
    let (at, other, session) = (random.below(3), random.below(3), random.below(8));
    let tool = *random.pick(&["plain", "plain", "unknown"]);
    match random.below(16) {
        0..=2 => Event::Open {
            can_be_asked: random.chance(50),
            at,
        },
        3 => Event::List { session, at },
        4..=7 => Event::Call { session, tool, at },
        8..=10 => Event::Ask {
            session,
            at,
            answered_at: other,
        },
        11 => Event::Delete { session, at },
        12 | 13 => Event::ModernCall { tool, at },
        14 => Event::ModernAsk {
            at: [at, other, random.below(3)],
        },
        _ => Event::Shortened { at, read_at: other },
    }
}

/// Gateways, and the sessions that were opened in them.
struct Side {
    addresses: Vec<SocketAddr>,
    http: Vec<RawHttp>,
    sessions: Vec<Session>,
}

struct Session {
    id: String,
    can_be_asked: bool,
    is_deleted: bool,
}

impl Side {
    async fn before(gateways: &[&Gateway]) -> Self {
        let mut http = Vec::new();
        for gateway in gateways {
            http.push(gateway.connect().await);
        }
        Self {
            addresses: gateways.iter().map(|it| it.server.address).collect(),
            http,
            sessions: Vec::new(),
        }
    }

    fn at(&mut self, place: usize) -> &mut RawHttp {
        let number = self.http.len();
        &mut self.http[place % number]
    }

    async fn connect(&self, place: usize) -> RawHttp {
        RawHttp::connect(self.addresses[place % self.addresses.len()]).await
    }

    /// What the client sees: the status and the message.
    async fn seen(&mut self, place: usize, request: &HttpRequest) -> Value {
        let answer = self.at(place).ask(request).await;
        if answer.body.is_empty() {
            return json!([answer.status]);
        }
        json!([answer.status, answer.answer()])
    }

    /// The session with this number, if any is open.
    fn session(&self, number: usize) -> Option<usize> {
        (!self.sessions.is_empty()).then(|| number % self.sessions.len())
    }

    async fn play(&mut self, event: Event) -> Value {
        match event {
            Event::Open { can_be_asked, at } => self.open(can_be_asked, at).await,
            Event::List { session, at } => {
                let list = |id: &str| of(id, &request(json!(1), "tools/list", json!({})));
                self.in_session(session, at, list).await
            }
            Event::Call { session, tool, at } => {
                self.in_session(session, at, |id| call_in(id, tool)).await
            }
            Event::Ask {
                session,
                at,
                answered_at,
            } => self.asking_call(session, at, answered_at).await,
            Event::Delete { session, at } => self.delete(session, at).await,
            Event::ModernCall { tool, at } => self.seen(at, &modern_call(tool, Value::Null)).await,
            Event::ModernAsk { at } => self.ask_modern(at).await,
            Event::Shortened { at, read_at } => self.shorten(at, read_at).await,
        }
    }

    async fn open(&mut self, can_be_asked: bool, at: usize) -> Value {
        let capabilities = if can_be_asked {
            json!({"roots": {}})
        } else {
            json!({})
        };
        let first = HttpRequest::new(initialize("2025-11-25", &capabilities).to_string());
        let answer = self.at(at).ask(&first).await;
        let id = answer.header("mcp-session-id").unwrap().to_owned();
        self.sessions.push(Session {
            id,
            can_be_asked,
            is_deleted: false,
        });
        json!([answer.status, answer.answer()])
    }

    async fn in_session(
        &mut self,
        session: usize,
        at: usize,
        request: impl Fn(&str) -> HttpRequest,
    ) -> Value {
        let Some(place) = self.session(session) else {
            return Value::Null;
        };
        let request = request(&self.sessions[place].id);
        self.seen(at, &request).await
    }

    async fn asking_call(&mut self, session: usize, at: usize, answered_at: usize) -> Value {
        let Some(place) = self.session(session) else {
            return Value::Null;
        };
        let Session {
            id,
            can_be_asked,
            is_deleted,
        } = &self.sessions[place];
        let (id, is_asked) = (id.clone(), *can_be_asked && !is_deleted);
        let call = call_in(&id, if is_asked { "ask" } else { "plain" });
        if !is_asked {
            return self.seen(at, &call).await;
        }
        let mut asking = self.connect(at).await;
        asking.send(&call.bytes()).await;
        let status = asking.head().await.status;
        let question = asking.event().await.unwrap();
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": roots()});
        let answer = of(&id, &answer);
        let accepted = self.connect(answered_at).await.ask(&answer).await.status;
        let events = asking.events().await;
        assert_eq!(events.len(), 1, "{events:?}");
        json!([status, question["method"], accepted, events])
    }

    async fn delete(&mut self, session: usize, at: usize) -> Value {
        let Some(place) = self.session(session) else {
            return Value::Null;
        };
        let session = &mut self.sessions[place];
        session.is_deleted = true;
        let id = session.id.clone();
        let seen = self.seen(at, &deletion_of(&id)).await;
        // The others learn of it within a second.
        let ping = of(&id, &request(json!(1), "ping", json!({})));
        for http in &mut self.http {
            until(async || http.ask(&ping).await.status == 404).await;
        }
        seen
    }

    async fn ask_modern(&mut self, at: [usize; 3]) -> Value {
        let [first, second, third] = at;
        let first_round = modern_call("ask", Value::Null);
        let first_round = self.at(first).ask(&first_round).await;
        let required = first_round.answer();
        let again = modern_call("ask", next_round(&required));
        let answered = self.seen(second, &again).await;
        let used = self.seen(third, &again).await;
        json!([
            first_round.status,
            required["result"]["resultType"],
            answered,
            used
        ])
    }

    async fn shorten(&mut self, at: usize, read_at: usize) -> Value {
        let rows = json!({"name": "rows", "arguments": {}});
        let shortened = self.at(at).ask(&compact("tools/call", rows)).await.answer();
        let uri = link(&shortened["result"]);
        let read = compact("resources/read", json!({"uri": uri}));
        let read = self.seen(read_at, &read).await;
        let id = uri.rsplit('/').next().unwrap();
        let text = json!([shortened, read]).to_string().replace(id, "ID");
        Value::String(text)
    }

    /// Ends what a case has left open.
    async fn end(&mut self) {
        for session in 0..self.sessions.len() {
            if !self.sessions[session].is_deleted {
                self.delete(session, 0).await;
            }
        }
        self.sessions.clear();
    }
}

/// Plays this many cases of a dozen events.
async fn three_answer_as_one(cases: u64) {
    let (one_server, three_server) = (Asking::start().await, Asking::start().await);
    let entry = |server: &ScriptedServer| format!("{{url: \"{}\"}}", server.url);
    let name = format!("property-{cases}");
    let replicas = Replicas::before(&entry(&three_server), &name, &[""; 3]).await;
    let file = replicas.folder.join("one.yaml");
    let key = "a-key-for-all-gateways-0123456789abcdefg";
    let text = format!("servers: {{sky: {}}}\nkeys: [{key}]\n", entry(&one_server));
    fs::write(&file, text).unwrap();
    let single = Gateway::start(&file, Vec::new());
    until(async || single.get("/readyz").await.status == 200).await;
    let mut one = Side::before(&[&single]).await;
    let all: Vec<_> = replicas.all.iter().collect();
    let mut three = Side::before(&all).await;
    for seed in 0..cases {
        let mut random = Random(seed);
        let mut played = Vec::new();
        for _ in 0..12 {
            let event = event(&mut random);
            played.push(event);
            let (by_one, by_three) = tokio::join!(one.play(event), three.play(event));
            assert_eq!(by_three, by_one, "seed {seed}: {played:?}");
        }
        tokio::join!(one.end(), three.end());
    }
    let calls = [&one_server, &three_server].map(|it| it.of("tools/call").len());
    assert_eq!(
        calls[0], calls[1],
        "a call was executed twice, or not at all"
    );
    assert!(calls[0] > 0);
    single.end();
    replicas.end();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "`cargo xtask test replicas` runs it"]
async fn three_replicas_answer_as_one_gateway_does() {
    three_answer_as_one(60).await;
}

mod at_length {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "`cargo xtask test-extra replicas` runs it"]
    async fn three_replicas_answer_as_one_gateway_does_in_2_000_cases() {
        three_answer_as_one(2_000).await;
    }
}
