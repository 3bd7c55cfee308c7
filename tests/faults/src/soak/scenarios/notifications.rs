//! Clients that receive notifications: sessions on their stream, others by `subscriptions/listen`.

use serde_json::json;

use super::super::client_run::ClientRun;
use super::super::http::{Http, Legacy, modern, request};
use super::{Scenario, ScenarioResult};

scenarios! {
    "session: hang up a `GET` stream" => |run| listens(run);
    "session: end the session of a `GET` stream" => |run| ends_while_listening(run);
    "session: come back to a `GET` stream, hang up" => |run| listens_again(run);
    "session: subscribe and vanish" => |run| subscribes(run, Left::Nothing);
    "session: subscribe, `DELETE`" => |run| subscribes(run, Left::Delete);
    "session: subscribe, unsubscribe, vanish" => |run| subscribes(run, Left::Unsubscribe);
    "session: subscribe, receive a change, hang up" => |run| receives(run);
    "stateless: `subscriptions/listen`, hang up" => |run| listens_stateless(run, false);
    "stateless: `subscriptions/listen`, receive a change, hang up" => |run| listens_stateless(run, true);
}

async fn open(run: ClientRun<'_>) -> Result<Legacy, String> {
    Legacy::open(run.address(), &json!({})).await
}

/// Opens the stream of notifications, and reads its first event.
async fn listen(client: &mut Legacy, headers: &str) -> Result<String, String> {
    client.verb("GET", headers).await?;
    client.http.until("data: \n\n").await
}

/// A second connection of a session, with its stream of notifications.
async fn stream_of(client: &Legacy, run: ClientRun<'_>) -> Result<Legacy, String> {
    let mut stream = Legacy {
        http: Http::connect(run.address()).await?,
        session: client.session.clone(),
    };
    listen(&mut stream, "").await?;
    Ok(stream)
}

async fn listens(run: ClientRun<'_>) -> ScenarioResult {
    let mut client = open(run).await?;
    listen(&mut client, "").await.map(drop)
}

async fn ends_while_listening(run: ClientRun<'_>) -> ScenarioResult {
    let mut client = open(run).await?;
    listen(&mut client, "").await?;
    let mut stream = client.http;
    client.http = Http::connect(run.address()).await?;
    client.end(run.address()).await?;
    stream.until("0\r\n\r\n").await.map(drop)
}

async fn listens_again(run: ClientRun<'_>) -> ScenarioResult {
    let mut client = open(run).await?;
    let read = listen(&mut client, "").await?;
    let id = read.lines().find_map(|line| line.strip_prefix("id: "));
    let last = format!("Last-Event-ID: {}\r\n", id.ok_or(read.clone())?);
    client.reconnect(run.address()).await?;
    listen(&mut client, &last).await.map(drop)
}

/// What a client does after it has subscribed.
#[derive(Clone, Copy)]
enum Left {
    Nothing,
    Unsubscribe,
    Delete,
}

async fn subscribe(client: &mut Legacy, run: ClientRun<'_>) -> ScenarioResult {
    let params = json!({"uri": run.resource()});
    client
        .send(&request(2, "resources/subscribe", &params))
        .await?;
    answered(&mut client.http).await
}

async fn answered(http: &mut Http) -> ScenarioResult {
    let answer = http.answer().await?;
    if answer["result"].is_object() {
        Ok(())
    } else {
        Err(format!("no result: {answer}"))
    }
}

async fn subscribes(run: ClientRun<'_>, left: Left) -> ScenarioResult {
    let mut client = open(run).await?;
    // Notifications need a stream of the session.
    let _stream = stream_of(&client, run).await?;
    subscribe(&mut client, run).await?;
    match left {
        Left::Nothing => Ok(()),
        Left::Delete => client.end(run.address()).await,
        Left::Unsubscribe => {
            let params = json!({"uri": run.resource()});
            let message = request(3, "resources/unsubscribe", &params);
            client.send(&message).await?;
            answered(&mut client.http).await
        }
    }
}

async fn receives(run: ClientRun<'_>) -> ScenarioResult {
    let mut client = open(run).await?;
    let mut stream = stream_of(&client, run).await?;
    subscribe(&mut client, run).await?;
    client.send(&run.change(3)).await?;
    stream
        .http
        .until("notifications/resources/updated")
        .await
        .map(drop)
}

async fn listens_stateless(run: ClientRun<'_>, receives: bool) -> ScenarioResult {
    let mut stream = Http::connect(run.address()).await?;
    let listen = request(2, "subscriptions/listen", &run.wanted());
    stream.send(&modern(listen, &json!({}))).await?;
    stream.until("acknowledged").await?;
    if receives {
        let mut http = Http::connect(run.address()).await?;
        http.send(&modern(run.change(3), &json!({}))).await?;
        stream.until("notifications/resources/updated").await?;
    }
    Ok(())
}
