//! Clients that receive notifications: sessions on their stream, others by `subscriptions/listen`.

use serde_json::json;

use super::super::http::{Http, Legacy, modern, request};
use super::super::visit::Visit;
use super::{Gone, Way, common};

pub(super) const WAYS: &[Way] = &[
    common("session: hang up a `GET` stream", |visit| {
        Box::pin(listens(visit))
    }),
    common("session: end the session of a `GET` stream", |visit| {
        Box::pin(ends_while_listening(visit))
    }),
    common("session: come back to a `GET` stream, hang up", |visit| {
        Box::pin(listens_again(visit))
    }),
    common("session: subscribe and vanish", |visit| {
        Box::pin(subscribes(visit, Left::Nothing))
    }),
    common("session: subscribe, `DELETE`", |visit| {
        Box::pin(subscribes(visit, Left::Delete))
    }),
    common("session: subscribe, unsubscribe, vanish", |visit| {
        Box::pin(subscribes(visit, Left::Unsubscribe))
    }),
    common("session: subscribe, hear of a change, hang up", |visit| {
        Box::pin(receives(visit))
    }),
    common("stateless: `subscriptions/listen`, hang up", |visit| {
        Box::pin(listens_stateless(visit, false))
    }),
    common(
        "stateless: `subscriptions/listen`, hear of a change, hang up",
        |visit| Box::pin(listens_stateless(visit, true)),
    ),
];

async fn open(visit: Visit<'_>) -> Result<Legacy, String> {
    Legacy::open(visit.address(), &json!({})).await
}

async fn listens(visit: Visit<'_>) -> Gone {
    let mut client = open(visit).await?;
    client.verb("GET", "").await?;
    client.http.until("data: \n\n").await.map(drop)
}

async fn ends_while_listening(visit: Visit<'_>) -> Gone {
    let mut client = open(visit).await?;
    client.verb("GET", "").await?;
    client.http.until("data: \n\n").await?;
    let stream = client.http;
    client.http = Http::connect(visit.address()).await?;
    client.end(visit.address()).await?;
    let mut stream = stream;
    stream.until("0\r\n\r\n").await.map(drop)
}

async fn listens_again(visit: Visit<'_>) -> Gone {
    let mut client = open(visit).await?;
    client.verb("GET", "").await?;
    let read = client.http.until("data: \n\n").await?;
    let id = read.lines().find_map(|line| line.strip_prefix("id: "));
    let last = format!("Last-Event-ID: {}\r\n", id.ok_or(read.clone())?);
    client.reconnect(visit.address()).await?;
    client.verb("GET", &last).await?;
    client.http.until("data: \n\n").await.map(drop)
}

/// What a client does after it has subscribed.
#[derive(Clone, Copy)]
enum Left {
    Nothing,
    Unsubscribe,
    Delete,
}

async fn subscribe(client: &mut Legacy, visit: Visit<'_>) -> Gone {
    let params = json!({"uri": visit.resource()});
    client
        .send(&request(2, "resources/subscribe", &params))
        .await?;
    answered(&mut client.http).await
}

async fn answered(http: &mut Http) -> Gone {
    let answer = http.answer().await?;
    match answer["result"].is_object() {
        true => Ok(()),
        false => Err(format!("no result: {answer}")),
    }
}

async fn subscribes(visit: Visit<'_>, left: Left) -> Gone {
    let mut client = open(visit).await?;
    // It belongs to whoever has a stream.
    let mut stream = Legacy {
        http: Http::connect(visit.address()).await?,
        session: client.session.clone(),
    };
    stream.verb("GET", "").await?;
    stream.http.until("data: \n\n").await?;
    subscribe(&mut client, visit).await?;
    match left {
        Left::Nothing => Ok(()),
        Left::Delete => client.end(visit.address()).await,
        Left::Unsubscribe => {
            let params = json!({"uri": visit.resource()});
            let message = request(3, "resources/unsubscribe", &params);
            client.send(&message).await?;
            answered(&mut client.http).await
        }
    }
}

async fn receives(visit: Visit<'_>) -> Gone {
    let mut client = open(visit).await?;
    let mut stream = Legacy {
        http: Http::connect(visit.address()).await?,
        session: client.session.clone(),
    };
    stream.verb("GET", "").await?;
    stream.http.until("data: \n\n").await?;
    subscribe(&mut client, visit).await?;
    client.send(&visit.change(3)).await?;
    stream
        .http
        .until("notifications/resources/updated")
        .await
        .map(drop)
}

async fn listens_stateless(visit: Visit<'_>, receives: bool) -> Gone {
    let mut stream = Http::connect(visit.address()).await?;
    let listen = request(2, "subscriptions/listen", &visit.wanted());
    stream.send(&modern(listen, &json!({}))).await?;
    stream.until("acknowledged").await?;
    if receives {
        let mut http = Http::connect(visit.address()).await?;
        http.send(&modern(visit.change(3), &json!({}))).await?;
        stream.until("notifications/resources/updated").await?;
    }
    Ok(())
}
