//! What is for all clients, of which each has a share: one client uses up its share, and another one is served all the
//! same.

use mcp_vary_testkit::credentials::{DIGEST_OF_CI, KEY_OF_CI, KEY_OF_OLD};
use mcp_vary_testkit::defaults::default_with;
use mcp_vary_testkit::http_client::HttpRequest;
use mcp_vary_testkit::message::{request, tool};
use serde_json::{Value, json};

use super::{Case, Cases, MIB, in_short};
use crate::amplify::client::{Answer, Client, at_once};
use crate::amplify::server::{Kind, Server};

impl Cases {
    /// A case for each share.
    pub(super) fn shares(&self) -> Vec<Case> {
        vec![
            self.large_answers(),
            self.exchanges(),
            self.stored_results(),
            self.dedicated_connections(),
            self.requests_in_flight(),
            self.windows(),
        ]
    }

    /// The configuration with a key for each of two principals, who may read the page.
    fn config_with_keys(&self) -> Value {
        let mut config = self.config();
        let keys = [("one", DIGEST_OF_CI), ("other", DIGEST_OF_OLD)].map(|(name, digest)| {
            json!({"name": name, "sha256": digest, "claims": {"groups": ["operators"]}})
        });
        config["auth"] = json!({"anonymous": "on", "keys": keys});
        config
    }

    /// Answers of which one fits into the share of a principal.
    fn large_answers(&self) -> Case {
        let bytes = self.of(48_000_000, 5_600_000);
        Case {
            bound: self.memory() / 2,
            what: "half of `limits.memory`",
            expected: Some("2 × 200 `-32603`, 1 × 200; another key 200"),
            config: self.config_with_keys(),
            server: default_with::<Kind>(|it| it.text = bytes),
            ..self.case(
                self.or(
                    "three answers of 60 MB to one key, one of them not read; one to another key",
                    "three answers of 7 MB to one key, one of them not read; one to another key",
                ),
                |client, _| {
                    let mut unread = client.send(call_with(KEY_OF_CI))?;
                    unread.status()?;
                    let post = |key| Ok::<_, String>(client.post(call_with(key))?.in_short());
                    let mut of_one = at_once(2, |_| post(KEY_OF_CI))?;
                    let of_other = post(KEY_OF_OLD)?;
                    of_one.push(unread.answer().in_short());
                    Ok(beside(&of_one, "another key", &[of_other]))
                },
            )
        }
    }

    /// Streams of sessions that are at home at the other replica, more than the share of one key.
    fn exchanges(&self) -> Case {
        Case {
            bound: 64 * MIB,
            what: "1,024 exchanges, each with 64 KiB on its way",
            expected: Some("503 `-32603`; another key 200"),
            config: self.config_with_keys(),
            is_replicated: true,
            ..self.case(
                "280 streams of one key at a replica that does not have its sessions, \
                 and calls beside them; calls of another key",
                |client, _| {
                    let home = client.at_replica()?;
                    let first = HttpRequest::initialize(&json!({"roots": {}}));
                    let open = |key| home.open(with_key(first.clone(), key));
                    let mut streams = Vec::new();
                    for _ in 0..70 {
                        let stream = with_key(HttpRequest::get(&open(KEY_OF_CI)?), KEY_OF_CI);
                        for _ in 0..4 {
                            let mut opened = client.send(stream.clone())?;
                            opened.status()?;
                            streams.push(opened);
                        }
                    }
                    let calls_of = |key| {
                        let session = open(key)?;
                        let call = |id| {
                            let post = with_key(call_in(&session, id, "text"), key);
                            Ok::<_, String>(client.post(post)?.in_short())
                        };
                        (1..5).map(call).collect::<Result<Vec<_>, _>>()
                    };
                    Ok(beside(
                        &calls_of(KEY_OF_CI)?,
                        "another key",
                        &calls_of(KEY_OF_OLD)?,
                    ))
                },
            )
        }
    }

    /// Results of 950,002 bytes, of which eight fit into the store: the two of another key, and six.
    fn stored_results(&self) -> Case {
        let mut config = self.config_with_keys();
        config["limits"]["result-store"] = json!("8 MiB");
        let rule = json!({"tools": ["text"], "limits": {"tokens": 300}, "for": "everyone"});
        config["results"] = json!([rule]);
        Case {
            bound: 16 * MIB,
            what: "`limits.result-store`, and as much for one result on its way",
            expected: Some("6 × 200 `-32602`, 6 × 200; another key 200"),
            config,
            server: default_with::<Kind>(|it| it.text = 760_000),
            ..self.case(
                "parts of 12 stored results of one key, and of two older ones of another key",
                |client, _| {
                    let of_other = store_results(client, KEY_OF_OLD, 2)?;
                    let of_one = store_results(client, KEY_OF_CI, 12)?;
                    let read = read_results(client, KEY_OF_CI, &of_one)?;
                    let read_by_other = read_results(client, KEY_OF_OLD, &of_other)?;
                    Ok(beside(&read, "another key", &read_by_other))
                },
            )
        }
    }

    /// More sessions than connections. That of a session that always calls is never the least recently used one.
    fn dedicated_connections(&self) -> Case {
        let mut config = self.config();
        config["limits"]["dedicated-connections"] = json!(4);
        Case {
            bound: 16 * MIB,
            what: "four connections: `limits.dedicated-connections`",
            expected: Some(
                "200 on a new connection; another session 1 × 200 on a new connection, 9 × 200",
            ),
            config,
            ..self.case(
                "a call in each of eight sessions that the server can ask, and again in the first; \
                 one in another session after each",
                |client, server| {
                    let capabilities = json!({"elicitation": {}});
                    let sessions = (0..8).map(|_| client.session(&capabilities));
                    let sessions_of_one = sessions.collect::<Result<Vec<_>, _>>()?;
                    let other = client.session(&capabilities)?;
                    let mut of_other = vec![called(client, server, call_in(&other, 1, "text"))?];
                    let mut of_one = Vec::new();
                    let calls = sessions_of_one.iter().chain(sessions_of_one.first());
                    for (session, id) in calls.zip(2..) {
                        of_one.push(called(client, server, call_in(session, id, "text"))?);
                        of_other.push(called(client, server, call_in(&other, id, "text"))?);
                    }
                    Ok(beside(&of_one, "another session", &of_other))
                },
            )
        }
    }

    /// Calls that the server does not answer before all others are answered.
    fn requests_in_flight(&self) -> Case {
        let mut config = self.config();
        config["limits"]["in-flight"] = json!(4);
        Case {
            expected: Some(
                "4 × 400 `-32600`: too many requests of this session are in flight, 4 × 200; \
                 another session 200",
            ),
            config,
            ..self.case(
                "eight slow calls of one session, of which `limits.in-flight` allows four; \
                 four calls of another session",
                |client, server| {
                    let one = client.session(&json!({}))?;
                    let other = client.session(&json!({}))?;
                    let send = |id| client.send(call_in(&one, id, "wait"));
                    let in_flight = (1..5).map(send).collect::<Result<Vec<_>, _>>()?;
                    server.until_waiting(in_flight.len())?;
                    let mut of_one = Vec::new();
                    let mut of_other = Vec::new();
                    for id in 5..9 {
                        of_one.push(with_reason(&client.post(call_in(&one, id, "wait"))?));
                        of_other.push(client.post(call_in(&other, id, "text"))?.in_short());
                    }
                    server.answer_waiting();
                    of_one.extend(in_flight.into_iter().map(|call| call.answer().in_short()));
                    Ok(beside(&of_one, "another session", &of_other))
                },
            )
        }
    }

    /// Windows that stay open, one after the other.
    fn windows(&self) -> Case {
        let mut config = self.config_with_keys();
        config["admin"] = json!("127.0.0.1:0");
        config["admin-readers"] = json!({"groups": "operators"});
        Case {
            bound: 8 * MIB,
            what: "eight windows, and the last 256 requests of at most 6 KiB",
            expected: Some("2 × 200, 2 × 429; another reader 200"),
            config,
            ..self.case(
                "four windows of the page for one reader, and two for another",
                |client, _| {
                    let page = client.at_page()?;
                    let mut windows = Vec::new();
                    let mut open = |key: &str| {
                        let events = HttpRequest::new("").line("GET /api/events HTTP/1.1");
                        let mut window = page.send(with_key(events, key))?;
                        let status = window.status();
                        windows.push(window);
                        status
                    };
                    let of_one = (0..4)
                        .map(|_| open(KEY_OF_CI))
                        .collect::<Result<Vec<_>, _>>()?;
                    let of_other = (0..2)
                        .map(|_| open(KEY_OF_OLD))
                        .collect::<Result<Vec<_>, _>>()?;
                    Ok(beside(&of_one, "another reader", &of_other))
                },
            )
        }
    }
}

fn with_key(request: HttpRequest, key: &str) -> HttpRequest {
    request.with("Authorization", format!("Bearer {key}"))
}

/// A call whose answer has the text of the case.
fn call_with(key: &str) -> HttpRequest {
    with_key(HttpRequest::modern_request("tools/call", tool("text")), key)
}

fn call_in(session: &str, id: usize, name: &str) -> HttpRequest {
    let call = request(json!(id), "tools/call", tool(name));
    HttpRequest::of(session, call.to_string())
}

/// The answers to one client, and those to the client beside it.
fn beside(of_one: &[String], other: &str, of_other: &[String]) -> String {
    format!("{}; {other} {}", in_short(of_one), in_short(of_other))
}

/// What a call is answered, and whether a connection to the server was opened for it.
fn called(client: &Client, server: &Server, call: HttpRequest) -> Result<String, String> {
    let before = server.connected();
    let answer = client.post(call)?.in_short();
    if server.connected() == before {
        return Ok(answer);
    }
    Ok(format!("{answer} on a new connection"))
}

/// What is answered in short; with the reason if that is the limit of requests in flight.
fn with_reason(answer: &Answer) -> String {
    let short = answer.in_short();
    if answer.body.contains(TOO_MANY) {
        format!("{short}: {TOO_MANY}")
    } else {
        short
    }
}

/// The URIs of so many stored results.
fn store_results(client: &Client, key: &str, count: usize) -> Result<Vec<String>, String> {
    let stored = (0..count).map(|_| {
        let answer = client.post(call_with(key))?;
        let uri = stored_uri(&answer.body);
        uri.ok_or_else(|| format!("no stored result: {}", answer.in_short()))
    });
    stored.collect()
}

/// The first URI of a stored result, without its query.
fn stored_uri(body: &str) -> Option<String> {
    let (_, after) = body.split_once(RESULT)?;
    let end = after.find(|character: char| !character.is_ascii_hexdigit())?;
    Some(format!("{RESULT}{}", &after[..end]))
}

/// What is answered to the owner of these stored results, who reads the first part of each.
fn read_results(client: &Client, key: &str, uris: &[String]) -> Result<Vec<String>, String> {
    let answers = uris.iter().map(|uri| {
        let read = HttpRequest::modern_request("resources/read", json!({"uri": uri}));
        Ok::<_, String>(client.post(with_key(read, key))?.in_short())
    });
    answers.collect()
}

const RESULT: &str = "vary://result/";
const TOO_MANY: &str = "too many requests of this session are in flight";
/// The digest of [`KEY_OF_OLD`], which does not expire here.
const DIGEST_OF_OLD: &str = "32be01bd3125873e4a030d528fad97daa50adb6e14bb489f71a3c436d13c4bc7";
