//! The ways in which little becomes much, each with its bound.

mod shares;

use std::time::{Duration, Instant};

use mcp_vary_testkit::defaults::default_with;
use mcp_vary_testkit::http_client::HttpRequest;
use mcp_vary_testkit::message::{initialize, request};
use serde_json::{Value, json};

use super::client::{Answer, Client, at_once};
use super::server::{Kind, Server};
use crate::process;

/// One way.
pub(super) struct Case {
    /// What is sent.
    pub(super) name: &'static str,
    /// The bound, in bytes.
    pub(super) bound: usize,
    /// What bounds it.
    pub(super) what: &'static str,
    /// What must be answered; `None` where it depends on the time.
    pub(super) expected: Option<&'static str>,
    pub(super) config: Value,
    pub(super) server: Kind,
    /// Whether there are two replicas, which share a store.
    pub(super) is_replicated: bool,
    pub(super) run: Run,
}

/// Sends what is sent, and says what is answered.
type Run = Box<dyn Fn(&Client, &Server) -> Result<String, String>>;

/// How much is sent.
pub(super) struct Cases {
    is_reduced: bool,
}

impl Cases {
    pub(super) const fn new(is_reduced: bool) -> Self {
        Self { is_reduced }
    }

    pub(super) fn all(&self) -> Vec<Case> {
        let mut all = vec![
            self.bodies(),
            self.capabilities(),
            self.arguments_beside_a_state(),
            self.subscriptions(),
            self.unread_answers(),
        ];
        all.extend(self.choices());
        all.extend([self.list(), self.classes(), self.variants(), self.depth()]);
        all.extend(self.templates());
        all.extend(self.shares());
        all
    }

    /// Of two numbers the one for this size.
    const fn of(&self, full: usize, reduced: usize) -> usize {
        if self.is_reduced { reduced } else { full }
    }

    fn memory(&self) -> usize {
        self.of(256 * MIB, 32 * MIB)
    }

    /// The defaults in full size, so that a build of before can be measured, too.
    fn config(&self) -> Value {
        if self.is_reduced {
            json!({"limits": {"memory": format!("{} MiB", self.memory() / MIB)}})
        } else {
            json!({})
        }
    }

    /// A case with an ordinary server and the memory of the gateway as its bound.
    fn case(
        &self,
        name: &'static str,
        run: impl Fn(&Client, &Server) -> Result<String, String> + 'static,
    ) -> Case {
        Case {
            name,
            bound: self.memory(),
            what: "`limits.memory`",
            expected: None,
            config: self.config(),
            server: Kind::default(),
            is_replicated: false,
            run: Box::new(run),
        }
    }

    fn bodies(&self) -> Case {
        let connections = self.of(200, 24);
        self.case(
            "bodies of 4 MiB whose last byte does not come",
            move |client, _| client.unfinished(connections, 4 * MIB),
        )
    }

    fn capabilities(&self) -> Case {
        let clients = self.of(32, 4);
        self.case(
            "capabilities of 4 MiB, `[]` in `[]`, at once",
            move |client, _| {
                let message = initialize("2025-11-25", &json!({"x": arrays(4 * MIB - 1024)}));
                let post = HttpRequest::new(message.to_string());
                at_once_in_short(clients, || client.post(post.clone()))
            },
        )
    }

    fn arguments_beside_a_state(&self) -> Case {
        let clients = self.of(8, 2);
        self.case(
            "arguments of 4 MiB beside a `requestState`, at once",
            move |client, _| {
                let arguments = json!({"a": arrays(4 * MIB - 1024)});
                let params = json!({"name": "text", "requestState": "x", "arguments": arguments});
                at_once_in_short(clients, || client.modern(&[], "tools/call", &params))
            },
        )
    }

    fn subscriptions(&self) -> Case {
        let (long, sessions, short) = (self.of(180, 10), self.of(4, 1), self.of(1000, 100));
        Case {
            what: "`limits.memory`, a quarter of it for subscriptions",
            ..self.case(SUBSCRIPTIONS, move |client, _| {
                let subscribe = |session: &str, bytes: usize, at: usize| {
                    let uri = format!("a:{at}{}", "x".repeat(bytes));
                    let message = request(json!(2), "resources/subscribe", json!({"uri": uri}));
                    let answer = client.post(HttpRequest::of(session, message.to_string()))?;
                    Ok::<_, String>(answer.in_short())
                };
                let session = client.session(&json!({}))?;
                let mut answers = (0..long)
                    .map(|at| subscribe(&session, 4 * MIB - 1024, at))
                    .collect::<Result<Vec<_>, _>>()?;
                for _ in 0..sessions {
                    let session = client.session(&json!({}))?;
                    for at in 0..short {
                        answers.push(subscribe(&session, 8000, at)?);
                    }
                }
                Ok(in_short(&answers))
            })
        }
    }

    fn unread_answers(&self) -> Case {
        let (calls, bytes) = (self.of(60, 12), self.of(48_000_000, 5_600_000));
        Case {
            bound: self.memory() / 2,
            what: "half of `limits.memory`",
            server: default_with::<Kind>(|it| it.text = bytes),
            ..self.case(
                self.or(
                    "60 answers of 60 MB that are not read",
                    "12 answers of 7 MB that are not read",
                ),
                move |client, _| client.unread(calls),
            )
        }
    }

    /// Arguments that none of so many branches take.
    fn choices(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for (name, branches, bytes) in [
            (
                "an argument of 4 MB that none of 200 branches takes",
                200,
                4_000_000,
            ),
            ("one of 1 MB that none of 2,000 takes", 2_000, 1_000_000),
            ("one of 0.1 MB that none of 20,000 takes", 20_000, 100_000),
        ] {
            if self.is_reduced && branches != 2_000 {
                continue;
            }
            let mut config = self.config();
            config["variants"] = json!({"v": {"dialect": "gemini"}});
            cases.push(Case {
                what: "`limits.memory`, 100,000 values, and 16 MiB of copies in errors",
                config,
                server: default_with::<Kind>(|it| it.branches = branches),
                ..self.case(name, move |client, _| {
                    let arguments = json!({"a": vec![0; bytes / 2 + 1]});
                    let params = json!({"name": "choose", "arguments": arguments});
                    at_once_in_short(2, || client.modern(&[], "tools/call", &params))
                })
            });
        }
        cases
    }

    fn list(&self) -> Case {
        let tools = self.of(1_000_000, 150_000);
        Case {
            bound: 128 * MIB,
            what: "what a list may take",
            server: default_with::<Kind>(|it| it.tools = tools),
            ..self.case(
                self.or(
                    "a list of 1,000,000 tools on one page",
                    "a list of 150,000 tools on one page",
                ),
                |client, server| {
                    reread(client, server)?;
                    let answer = client.list()?;
                    Ok(match answer.body.len() {
                        0..10_000 => "the list before".to_owned(),
                        bytes => format!("{} MB", bytes / 1_000_000),
                    })
                },
            )
        }
    }

    /// Clients that can do different things before a list that is long, but not too long.
    fn classes(&self) -> Case {
        let tools = self.of(25_000, 3_000);
        Case {
            bound: self.of(64 * MIB, 12 * MIB),
            what: "what one list takes",
            server: default_with::<Kind>(|it| it.tools = tools),
            ..self.case(
                self.or(
                    "seven odd combinations of capabilities, before 25,000 tools",
                    "seven odd combinations of capabilities, before 3,000 tools",
                ),
                |client, server| {
                    reread(client, server)?;
                    let listed = client.list()?.body.len();
                    for odd in [
                        json!({"roots": {}}),
                        json!({"roots": {"listChanged": true}}),
                        json!({"sampling": {}}),
                        json!({"sampling": {"tools": {}}}),
                        json!({"sampling": {"context": {}}}),
                        json!({"sampling": {"context": {}, "tools": {}}}),
                        json!({"elicitation": {"url": {}}}),
                    ] {
                        let session = client.session(&odd)?;
                        let list = request(json!(2), "tools/list", json!({})).to_string();
                        client.post(HttpRequest::of(&session, list))?;
                    }
                    Ok(format!("{} KB each", listed / 1000))
                },
            )
        }
    }

    /// A server that offers many variants.
    fn variants(&self) -> Case {
        Case {
            bound: 48 * MIB,
            what: "32 variants, and the gateway itself",
            server: default_with::<Kind>(|it| it.variants = 7_000),
            ..self.case(
                "7,000 variants with hints in a handshake of 1 MB, with the start",
                |client, _| {
                    let answer = client.modern(&[], "server/discover", &json!({}))?;
                    Ok(format!(
                        "{} KB of `server/discover`",
                        answer.body.len() / 1000
                    ))
                },
            )
        }
    }

    fn depth(&self) -> Case {
        Case {
            bound: 8 * MIB,
            what: "128 levels",
            ..self.case(
                "an answer that nests 100,000 deep, to six at once",
                |client, _| {
                    let params = json!({"name": "deep", "arguments": {}});
                    at_once_in_short(6, || client.modern(&[], "tools/call", &params))
                },
            )
        }
    }

    /// Filters of templates that make much of a text, for six at once.
    fn templates(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for (name, template) in [
            (
                "a template with `replace`, of a text of 1 MB, to six at once",
                format!("{{{{ text | replace('x', '{}') }}}}", "long ".repeat(300)),
            ),
            (
                "the same with `indent`",
                "{{ text | indent(1000, true, true) }}".to_owned(),
            ),
            (
                "the same with `join`",
                format!("{{{{ text | list | join('{}') }}}}", "long ".repeat(100)),
            ),
            ("the same with `*`", "{{ text * 90 }}".to_owned()),
        ] {
            if self.is_reduced && !name.contains("replace") {
                continue;
            }
            let mut config = self.config();
            config["results"] = json!([{"tools": ["text"], "markdown": template}]);
            let (bound, what) = if name.contains('*') {
                (96 * MIB, "what the language allows for `*`, one at a time")
            } else {
                (6 * 8 * MIB, "8 MiB for each")
            };
            cases.push(Case {
                bound,
                what,
                config,
                server: default_with::<Kind>(|it| it.text = 1_000_000),
                ..self.case(name, |client, _| {
                    let params = json!({"name": "text", "arguments": {}});
                    at_once_in_short(6, || {
                        client.modern(&["format=markdown"], "tools/call", &params)
                    })
                })
            });
        }
        cases
    }

    const fn or(&self, full: &'static str, reduced: &'static str) -> &'static str {
        if self.is_reduced { reduced } else { full }
    }
}

/// Has the list of tools read once more.
fn reread(client: &Client, server: &Server) -> Result<(), String> {
    let (before, begun) = (server.listed(), Instant::now());
    server.announce();
    while server.listed() == before {
        if begun.elapsed() > Duration::from_secs(60) {
            return Err("the list is not read again".to_owned());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // The list is shown, or refused, once all of it has been read.
    process::until_calm(client.process)
}

/// What so many clients are answered at the same time.
fn at_once_in_short(
    clients: usize,
    ask: impl Fn() -> Result<Answer, String> + Sync,
) -> Result<String, String> {
    let answers = at_once(clients, |_| ask())?;
    let answers: Vec<String> = answers.iter().map(Answer::in_short).collect();
    Ok(in_short(&answers))
}

/// Each answer once, with how often it came where there are several.
fn in_short(answers: &[String]) -> String {
    let mut counts: Vec<(&String, usize)> = Vec::new();
    for answer in answers {
        match counts.iter_mut().find(|(known, _)| *known == answer) {
            Some((_, count)) => *count += 1,
            None => counts.push((answer, 1)),
        }
    }
    if let [(answer, _)] = counts[..] {
        return answer.clone();
    }
    let counts = counts
        .iter()
        .map(|(answer, count)| format!("{count} × {answer}"));
    counts.collect::<Vec<_>>().join(", ")
}

/// About so many bytes of arrays in an array.
fn arrays(bytes: usize) -> Value {
    vec![json!([]); bytes / 3].into()
}

const SUBSCRIPTIONS: &str = "subscriptions to URIs of 4 MiB, and many to URIs of 8 KiB";

const MIB: usize = 1 << 20;
