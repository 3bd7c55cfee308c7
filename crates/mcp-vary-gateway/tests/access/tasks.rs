//! A task of a tool that access rules hide by now is a task that nobody made.

use super::groups::{claims, for_group, named, tokens, with_rules};
use crate::support::people::{PersonClient, bearer};
use crate::support::*;

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A server whose tool `job` becomes a task.
fn server(era: Era, streams: &Streams) -> Script {
    let task =
        |status: &str| json!({"taskId": "t-1", "status": status, "ttl": 60_000, "ttlMs": 60_000});
    let tasks = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    let complete = json!({"resultType": "complete"});
    let script = match era {
        Era::Legacy => Script::new(era, "jobs")
            .declares(json!({"tasks": tasks}))
            .result("tasks/cancel", task("cancelled")),
        Era::Modern => Script::new(era, "jobs")
            .declares(json!({"extensions": {TASKS: {}}}))
            .result("tasks/cancel", complete.clone()),
    };
    script
        .lists(json!({"tools": [
            {"name": "job", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}},
            {"name": "other", "inputSchema": {"type": "object"}},
        ]}))
        .in_sessions(|_| "s-1".to_owned())
        .notifies(streams)
        .on_call(move |params| match era {
            Era::Legacy if params["task"].is_object() => json!({"task": task("working")}),
            Era::Modern if params["name"] == "job" => {
                let mut created = task("working");
                created["resultType"] = json!("task");
                created
            }
            _ => json!({"resultType": "complete", "content": [], "secret": 42}),
        })
        .result("tasks/get", task("working"))
        .result("tasks/update", complete)
        .results(json!({
            "tasks/result": {"content": [], "secret": 42},
            "tasks/list": {"tasks": [task("working")]},
        }))
}

/// A gateway whose operators see all tools, and whose developers only `other`.
struct Office {
    harness: Harness,
    issuer: AuthorizationServer,
    streams: Streams,
}

impl Office {
    async fn before(era: Era) -> Self {
        let streams = Streams::default();
        let peer = server(era, &streams).start().await;
        let issuer = AuthorizationServer::start().await;
        let rules = [
            for_group("sre").with_allow([named("*")]),
            for_group("dev").with_allow([named("other")]),
        ];
        let mut config = with_rules(config(Target::http(peer.url.clone())), rules);
        config.authentication = Some(tokens(&issuer));
        let harness = Harness::behind(peer, config).await;
        Self {
            harness,
            issuer,
            streams,
        }
    }

    fn token(&self, who: &str, group: &str) -> String {
        let mut claims = claims(group);
        claims["sub"] = json!(who);
        self.issuer.sign(claims)
    }

    /// The number of requests that the server received and that the gateway sends only for a client.
    fn forwarded_requests(&self) -> usize {
        let methods = ["tasks/cancel", "tasks/update"];
        let received = methods.map(|method| self.harness.peer.of(method).len());
        received.iter().sum()
    }

    /// Waits until the gateway will hear how the task stands.
    async fn wait_for_listener(&self) {
        let listens = |stream: &OpenStream| {
            let ids = stream.filter["taskIds"].as_array();
            stream.id.is_null() || ids.is_some_and(|ids| ids.contains(&json!("t-1")))
        };
        until(async || self.streams.all().iter().any(listens)).await;
    }

    /// Lets the server say how its task stands.
    fn notify(&self, status: &str) {
        for stream in self.streams.all() {
            let method = match stream.id {
                Value::Null => "notifications/tasks/status",
                _ => "notifications/tasks",
            };
            stream.notify(method, json!({"taskId": "t-1", "status": status}));
        }
    }
}

/// A client of somebody, whose groups are those of each token.
struct Client<'a> {
    office: &'a Office,
    who: &'static str,
    link: PersonClient,
}

impl<'a> Client<'a> {
    async fn of(era: Era, office: &'a Office, who: &'static str) -> Self {
        let capabilities = match era {
            Era::Legacy => json!({}),
            Era::Modern => json!({"extensions": {TASKS: {}}}),
        };
        let (address, token) = (office.harness.address, office.token(who, "sre"));
        let link = PersonClient::open(address, era, &token, capabilities).await;
        Self { office, who, link }
    }

    async fn ask_as(&self, group: &str, method: &str, params: Value) -> Value {
        let token = self.office.token(self.who, group);
        self.link.ask(&token, method, params).await
    }

    /// Has a task made, as an operator. Its id.
    async fn make(&self) -> String {
        let mut call = tool("job");
        if self.link.session.is_some() {
            call["task"] = json!({"ttl": 60_000});
        }
        let created = self.ask_as("sre", "tools/call", call).await;
        let result = &created["result"];
        let id = result["task"]["taskId"]
            .as_str()
            .or(result["taskId"].as_str());
        id.unwrap_or_else(|| panic!("no task: {created}"))
            .to_owned()
    }

    /// The methods about tasks that the client has.
    fn methods(&self) -> [&'static str; 3] {
        match &self.link.session {
            Some(_) => ["tasks/get", "tasks/result", "tasks/cancel"],
            None => ["tasks/get", "tasks/update", "tasks/cancel"],
        }
    }

    /// Whether each answer about a task is the one about an id that nobody made, and reaches no server.
    async fn is_unknown(&self, group: &str, task: &str) {
        let before = self.office.forwarded_requests();
        for method in self.methods() {
            let about = |id: &str| json!({"taskId": id, "inputResponses": {}});
            let of_hidden = self.ask_as(group, method, about(task)).await;
            let of_nobody = self.ask_as(group, method, about("forged")).await;
            assert_eq!(of_hidden, of_nobody, "{method}");
            assert_eq!(of_hidden["error"]["code"], -32602, "{method} {of_hidden}");
            let message = of_hidden["error"]["message"].as_str().unwrap();
            assert!(message.starts_with("Task not found"), "{method} {message}");
        }
        let after = self.office.forwarded_requests();
        assert_eq!(after, before, "a request was forwarded");
    }

    async fn is_known(&self, task: &str) {
        let found = self
            .ask_as("sre", "tasks/get", json!({"taskId": task}))
            .await;
        found.has("/result/taskId", task);
    }
}

/// Clients before servers whose calls become tasks for them.
const PAIRS: [(Era, Era); 3] = [
    (Era::Legacy, Era::Legacy),
    (Era::Modern, Era::Modern),
    (Era::Modern, Era::Legacy),
];

/// The token of the same principal has other groups than the one that made the task.
#[tokio::test]
async fn a_task_whose_tool_is_hidden_is_unknown() {
    for (client, server) in PAIRS {
        let office = Office::before(server).await;
        let client = Client::of(client, &office, "ann").await;
        let task = client.make().await;
        client.is_known(&task).await;
        client.is_unknown("dev", &task).await;
        client.is_known(&task).await;
    }
}

#[tokio::test]
async fn a_task_of_another_is_unknown_wherever_it_is() {
    for (client, server) in PAIRS {
        let office = Office::before(server).await;
        let of_ann = Client::of(client, &office, "ann").await;
        let task = of_ann.make().await;
        let of_eve = Client::of(client, &office, "eve").await;
        of_eve.is_unknown("sre", &task).await;
        of_ann.is_known(&task).await;
    }
}

#[tokio::test]
async fn a_list_has_no_tasks_of_hidden_tools() {
    let office = Office::before(Era::Legacy).await;
    let client = Client::of(Era::Legacy, &office, "ann").await;
    let task = client.make().await;
    let all = client.ask_as("sre", "tasks/list", json!({})).await;
    all.has("/result/tasks/0/taskId", task);
    let none = client.ask_as("dev", "tasks/list", json!({})).await;
    none.has("/result/tasks", json!([]));
}

/// Whether nothing arrives of what the server said while the tool was hidden, up to what it said afterwards.
async fn is_not_notified_while_hidden(stream: &mut RawHttp) {
    loop {
        let message = soon(stream.event()).await.unwrap();
        let status = &message["params"]["status"];
        assert_ne!(status, "input_required", "{message}");
        if status == "completed" {
            return;
        }
    }
}

#[tokio::test]
async fn a_session_hears_nothing_of_a_task_whose_tool_is_hidden() {
    let office = Office::before(Era::Legacy).await;
    let client = Client::of(Era::Legacy, &office, "ann").await;
    let session = client.link.session.as_ref().unwrap();
    let get = bearer(HttpRequest::get(session), &office.token("ann", "sre"));
    let mut stream = office.harness.connect().await;
    stream.open_stream(&get).await;
    client.make().await;
    office.wait_for_listener().await;
    office.notify("working");
    let first = soon(stream.event()).await.unwrap();
    first.has("/params/status", "working");

    client.ask_as("dev", "tools/list", json!({})).await;
    office.notify("input_required");
    // Nothing shows that the gateway has read it and told nobody.
    tokio::time::sleep(Duration::from_millis(300)).await;
    client.ask_as("sre", "tools/list", json!({})).await;
    office.notify("completed");
    is_not_notified_while_hidden(&mut stream).await;
}

/// A stream goes on after a reload, with what the rules of then show.
#[tokio::test]
async fn a_stream_hears_nothing_of_a_task_whose_tool_is_hidden() {
    let office = Office::before(Era::Modern).await;
    let client = Client::of(Era::Modern, &office, "ann").await;
    let task = client.make().await;
    let capabilities = json!({"extensions": {TASKS: {}}});
    let params = json!({"notifications": {"taskIds": [task], "toolsListChanged": true}});
    let listen = modern(json!(1), "subscriptions/listen", params, &capabilities);
    let listen = bearer(HttpRequest::modern(&listen), &office.token("ann", "sre"));
    let mut stream = office.harness.connect().await;
    stream.open_stream(&listen).await;
    let accepted = soon(stream.event()).await.unwrap();
    accepted.has("/params/notifications/taskIds", json!([task]));
    office.wait_for_listener().await;
    office.notify("working");
    let first = soon(stream.event()).await.unwrap();
    first.has("/params/status", "working");

    for (pattern, status) in [("other", "input_required"), ("*", "completed")] {
        let rules = [for_group("sre").with_allow([named(pattern)])];
        let target = Target::http(office.harness.peer.url.clone());
        let mut config = with_rules(config(target), rules);
        config.authentication = Some(tokens(&office.issuer));
        office.harness.reload(config).await;
        let changed = soon(stream.event()).await.unwrap();
        changed.has("/method", "notifications/tools/list_changed");
        office.notify(status);
        // Nothing shows that the gateway has read it and told nobody.
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    is_not_notified_while_hidden(&mut stream).await;
}
