//! One scenario with one kind of server: what it needs, and what was seen.

use std::fs;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, Pipe, Said, Seen};
use crate::gateway::Gateway;
use crate::process::LONG;
use crate::report::Row;
use crate::script::Era;
use crate::server::{Server, Transport};

/// What the server is called in the gateway's configuration.
pub(crate) const NAME: &str = "notes";

/// What the other server is called there.
pub(crate) const BESIDE: &str = "other";

/// Shorter than the defaults, which are for people: a scenario waits for each of them.
pub(crate) fn short_settings() -> Value {
    json!({
        "start-timeout": "3s",
        "ready-timeout": "1500ms",
        "ping": "300ms",
        "hang-timeout": "700ms",
        "restart": {"first": "100ms", "longest": "800ms"},
    })
}

/// A server that a scenario has its way with.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) server: Server,
    pub(crate) vary: PathBuf,
    pub(crate) directory: PathBuf,
    /// Another server behind the same gateway, one that does not fail.
    pub(crate) beside: Option<Server>,
    /// Members of the server's entry in the configuration.
    pub(crate) settings: Value,
    /// `limits` of the configuration.
    pub(crate) limits: Value,
    pub(crate) rows: Vec<Row>,
}

/// A gateway and a client of each era.
#[derive(Debug)]
pub(crate) struct House {
    pub(crate) gateway: Gateway,
    pub(crate) clients: [Arc<Client>; 2],
    pub(crate) url: String,
}

/// A gateway on standard streams, and a client of each era on them.
#[derive(Debug)]
pub(crate) struct Piped {
    pub(crate) gateway: Gateway,
    pub(crate) clients: [Arc<Client>; 2],
    pub(crate) pipe: Arc<Pipe>,
}

impl Case {
    /// Starts the server, where it is not a child of the gateway, the gateway and its clients.
    pub(crate) async fn open(&mut self) -> Result<House, String> {
        self.server.start().await?;
        self.open_before_server().await
    }

    /// [`open`](Self::open), and a call of each client that works.
    pub(crate) async fn open_warm(&mut self) -> Result<House, String> {
        let house = self.open().await?;
        let seen = each_calls(&house.clients, "echo", "first", json!({})).await;
        come_from("one", &seen)?;
        Ok(house)
    }

    /// Changes what the configuration says of the server.
    pub(crate) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.settings[key] = value.into();
    }

    /// The same without starting the server.
    pub(crate) async fn open_before_server(&mut self) -> Result<House, String> {
        let mut gateway = Gateway::on_http(&self.vary, &self.arguments()?)?;
        let url = gateway.url().await?;
        let [legacy, modern] = Era::BOTH.map(|era| Client::over_http(era, &url));
        let clients = [Arc::new(legacy.await?), Arc::new(modern.await?)];
        Ok(House {
            gateway,
            clients,
            url,
        })
    }

    /// The server and a gateway on standard streams.
    pub(crate) async fn open_piped(&mut self) -> Result<Piped, String> {
        self.server.start().await?;
        let (gateway, input, output) = Gateway::on_stdio(&self.vary, &self.arguments()?)?;
        let pipe = Pipe::open(input, output);
        let [legacy, modern] = Era::BOTH.map(|era| Client::on_stdio(era, &pipe));
        let clients = [Arc::new(legacy.await?), Arc::new(modern.await?)];
        Ok(Piped {
            gateway,
            clients,
            pipe,
        })
    }

    /// The configuration that names the server, for `vary serve`.
    pub(crate) fn arguments(&self) -> Result<Vec<String>, String> {
        let path = self.directory.join("vary.json");
        let mut config = json!({"servers": {NAME: self.settings}, "limits": self.limits});
        let servers = [
            Some((NAME, &self.server)),
            self.beside.as_ref().map(|beside| (BESIDE, beside)),
        ];
        for (name, server) in servers.into_iter().flatten() {
            for (key, value) in server.entry() {
                config["servers"][name][key] = value;
            }
        }
        fs::write(&path, config.to_string())
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(vec![path.display().to_string()])
    }

    /// Notes what a client saw at `moment`, and when, counted from `since`.
    pub(crate) fn saw(
        &mut self,
        moment: &'static str,
        client: &Client,
        seen: &Seen,
        since: Instant,
    ) {
        self.note(
            moment,
            client.era,
            &seen.said.to_string(),
            seen.after(since),
        );
    }

    /// The same for both clients.
    pub(crate) fn both_saw(
        &mut self,
        moment: &'static str,
        clients: &[Arc<Client>; 2],
        seen: &[Seen; 2],
        since: Instant,
    ) {
        for (client, seen) in clients.iter().zip(seen) {
            self.saw(moment, client, seen, since);
        }
    }

    /// Both clients call the tool `echo` at the same time: what they saw of it.
    pub(crate) async fn both_call(
        &mut self,
        moment: &'static str,
        clients: &[Arc<Client>; 2],
        tool: &str,
        call: &str,
    ) -> [Seen; 2] {
        let requested = Instant::now();
        let seen = each_calls(clients, tool, call, json!({})).await;
        self.both_saw(moment, clients, &seen, requested);
        seen
    }

    /// Notes a line of the table.
    pub(crate) fn note(
        &mut self,
        moment: &'static str,
        client: Era,
        reported: &str,
        after: Duration,
    ) {
        let reported = reported.replace(&self.server.url(), "http://ADDRESS/mcp");
        self.rows.push(Row {
            moment,
            transport: self.server.transport.as_str(),
            server: self.server.script.era,
            client: Some(client),
            said: reported,
            after,
        });
    }

    /// Notes what was seen of the gateway itself.
    pub(crate) fn note_gateway(
        &mut self,
        moment: &'static str,
        reported: impl Into<String>,
        after: Duration,
    ) {
        self.rows.push(Row {
            moment,
            transport: self.server.transport.as_str(),
            server: self.server.script.era,
            client: None,
            said: reported.into(),
            after,
        });
    }

    /// Waits until `gateway` has ended, and notes how.
    pub(crate) async fn note_end(
        &mut self,
        gateway: &mut Gateway,
        since: Instant,
    ) -> Result<ExitStatus, String> {
        let status = gateway.ended().await?;
        self.note_gateway(
            "vary itself",
            format!("ends with {status}"),
            since.elapsed(),
        );
        Ok(status)
    }

    /// The same of a gateway that does not start: how it ended, and its message, with `ADDRESS` for the one it was
    /// started with.
    pub(crate) async fn note_refusal(
        &mut self,
        mut gateway: Gateway,
        address: Option<&str>,
        since: Instant,
    ) -> Result<(ExitStatus, String), String> {
        let status = gateway.ended().await?;
        let mut reported = gateway.said();
        if let Some(address) = address {
            reported = reported.replace(address, "ADDRESS");
        }
        let ended = format!("ends with {status} and says: {}", reported.trim());
        self.note_gateway("vary itself", ended, since.elapsed());
        Ok((status, reported))
    }

    /// Notes when each client's calls work again, with the server `name`, and what each saw until then.
    ///
    /// # Errors
    ///
    /// When they do not.
    pub(crate) async fn recovers(
        &mut self,
        clients: &[Arc<Client>; 2],
        name: &str,
        since: Instant,
    ) -> Result<(), String> {
        self.recovers_with("echo", clients, name, since).await
    }

    /// The same, asked with `tool`.
    ///
    /// # Errors
    ///
    /// When they do not.
    pub(crate) async fn recovers_with(
        &mut self,
        tool: &str,
        clients: &[Arc<Client>; 2],
        name: &str,
        since: Instant,
    ) -> Result<(), String> {
        let [legacy, modern] = clients;
        let (first, second) = tokio::join!(
            works_again(legacy, tool, name),
            works_again(modern, tool, name)
        );
        for (client, (meanwhile, worked)) in clients.iter().zip([first?, second?]) {
            for (reported, last) in meanwhile {
                self.note(
                    "calls until it works",
                    client.era,
                    &reported.to_string(),
                    last - since,
                );
                is_told(&reported, DOWN)?;
            }
            self.note("calls work again", client.era, "the result", worked - since);
        }
        Ok(())
    }

    /// Notes when each client's list of tools has `name`, and what it lists then.
    ///
    /// # Errors
    ///
    /// When it never has.
    pub(crate) async fn appears(
        &mut self,
        name: &str,
        clients: &[Arc<Client>; 2],
        since: Instant,
    ) -> Result<(), String> {
        for client in clients {
            let seen = loop {
                let seen = client.ask("tools/list", json!({})).await;
                if seen.said.lists(name) {
                    break seen;
                }
                holds(
                    since.elapsed() < LONG,
                    format!("`{name}` is not listed: {}", seen.said),
                )?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            };
            self.saw("the list", client, &seen, since);
        }
        Ok(())
    }

    pub(crate) fn is_stdio(&self) -> bool {
        self.server.transport == Transport::Stdio
    }
}

/// Each client calls the same tool at once; the server notes `call` and the client's era.
pub(crate) async fn each_calls(
    clients: &[Arc<Client>; 2],
    tool: &str,
    call: &str,
    arguments: Value,
) -> [Seen; 2] {
    let [legacy, modern] = clients;
    let [first, second] = names(call);
    let (first, second) = tokio::join!(
        legacy.call(tool, &first, arguments.clone()),
        modern.call(tool, &second, arguments),
    );
    [first, second]
}

/// What the server notes when each client calls.
pub(crate) fn names(call: &str) -> [String; 2] {
    Era::BOTH.map(|era| format!("{call} of {}", era.as_str()))
}

/// Both results come from the server `name`.
///
/// # Errors
///
/// What came instead.
pub(crate) fn come_from(name: &str, seen: &[Seen; 2]) -> Result<(), String> {
    let start = format!("{name}: ");
    for seen in seen {
        match seen.said.text() {
            Some(text) if text.starts_with(&start) => {}
            Some(text) => return Err(format!("`{text}` is not of the server `{name}`")),
            None => return Err(format!("a call that should work: {}", seen.said)),
        }
    }
    Ok(())
}

/// Both are errors of the gateway that name the server and say one of `reasons`.
///
/// # Errors
///
/// What came instead.
pub(crate) fn are_told(seen: &[Seen; 2], reasons: &[&str]) -> Result<(), String> {
    seen.iter()
        .try_for_each(|seen| is_told(&seen.said, reasons))
}

/// An error of the gateway that names the server and says one of `reasons`.
///
/// # Errors
///
/// What it is instead.
pub(crate) fn is_told(reported: &Said, reasons: &[&str]) -> Result<(), String> {
    match reported {
        Said::Error {
            code: -32603,
            message,
        } if message.contains(NAME) && reasons.iter().any(|reason| message.contains(reason)) => {
            Ok(())
        }
        other => Err(format!(
            "`{other}` is no -32603 with `{NAME}` and one of {reasons:?}"
        )),
    }
}

/// What a client saw while calls did not work, each once, and when it last did.
type Meanwhile = Vec<(Said, Instant)>;

/// What a client may read of a server that is not there.
pub(crate) const DOWN: &[&str] = &[
    "answered HTTP",
    "broke off",
    "broke the protocol",
    "cannot be reached",
    "closed its input",
    "closed the connection",
    "ended",
    "hung",
    "is down",
    "sent nothing for",
];

/// A sentence unless it holds.
///
/// # Errors
///
/// The sentence.
pub(crate) fn holds(what: bool, otherwise: impl Into<String>) -> Result<(), String> {
    if what { Ok(()) } else { Err(otherwise.into()) }
}

/// Waits until the client's calls work and come from the server `name`; gives what it saw meanwhile, each once.
///
/// # Errors
///
/// When that does not happen.
async fn works_again(
    client: &Client,
    tool: &str,
    name: &str,
) -> Result<(Meanwhile, Instant), String> {
    let begun = Instant::now();
    let mut seen = Meanwhile::new();
    loop {
        let now = client.call(tool, "again", json!({})).await;
        if now.said.text().is_some_and(|text| text.starts_with(name)) {
            return Ok((seen, now.ended));
        }
        if begun.elapsed() > LONG {
            return Err(format!(
                "calls do not work again; the last one: {}",
                now.said
            ));
        }
        match seen.iter_mut().find(|(reported, _)| *reported == now.said) {
            Some((_, last)) => *last = now.ended,
            None => seen.push((now.said, now.ended)),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_fine(code: i64, message: &str, fine: bool) {
        let message = message.to_owned();
        let said = Said::Error { code, message };
        assert_eq!(is_told(&said, DOWN).is_ok(), fine, "{said}");
    }

    #[test]
    fn an_error_has_its_code_names_the_server_and_says_why() {
        is_fine(-32603, "server `notes` ended (exit status: 3)", true);
        is_fine(-32600, "server `notes` ended (exit status: 3)", false);
        is_fine(-32603, "server `other` ended (exit status: 3)", false);
        is_fine(-32603, "server `notes` is sad", false);
    }

    #[test]
    fn no_answer_and_two_answers_are_not_fine() {
        assert!(is_told(&Said::Nothing("notes ended".to_owned()), DOWN).is_err());
        assert!(is_told(&Said::Several(2), DOWN).is_err());
    }
}
