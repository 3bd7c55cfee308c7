//! Clients with sessions, and their calls.

use serde_json::json;

use super::super::http::{Http, Legacy, initialize, notification, post, request};
use super::super::visit::Visit;
use super::{Gone, Way, common};

pub(super) const WAYS: &[Way] = &[
    common("session: a list, a call, `DELETE`", |visit| {
        Box::pin(whole(visit))
    }),
    common("session: `initialize` and never come back", |visit| {
        Box::pin(vanishes(visit))
    }),
    common(
        "session: vanish before the answer to `initialize`",
        |visit| Box::pin(hasty(visit)),
    ),
    common("session: hang up while an answer is awaited", |visit| {
        Box::pin(silent_hang_up(visit))
    }),
    common(
        "session: hang up in the middle of a call's stream",
        |visit| Box::pin(hang_up(visit, false)),
    ),
    common("session: the same, then `DELETE`", |visit| {
        Box::pin(hang_up(visit, true))
    }),
    common(
        "session: lose a call's stream, come back, read to its end",
        |visit| Box::pin(resumes(visit)),
    ),
    common(
        "session: lose a call's stream, come back, hang up again",
        |visit| Box::pin(resumes_twice(visit)),
    ),
    common("session: cancel a call on its stream", |visit| {
        Box::pin(cancels(visit))
    }),
    common("session: cancel a call that has said nothing", |visit| {
        Box::pin(cancels_silence(visit))
    }),
    common("session: leave a stream unread, hang up", |visit| {
        Box::pin(does_not_read(visit))
    }),
    common("batch: read to its end", |visit| {
        Box::pin(batch(visit, true))
    }),
    common("batch: hang up in the middle of its stream", |visit| {
        Box::pin(batch(visit, false))
    }),
];

async fn open(visit: Visit<'_>) -> Result<Legacy, String> {
    Legacy::open(visit.address(), &json!({})).await
}

async fn whole(visit: Visit<'_>) -> Gone {
    let mut client = open(visit).await?;
    client.send(&request(2, "tools/list", &json!({}))).await?;
    client.http.until("\"id\":2").await?;
    client.send(&visit.steps(3)).await?;
    client.http.until("\"id\":3").await?;
    client.end(visit.address()).await
}

async fn vanishes(visit: Visit<'_>) -> Gone {
    open(visit).await.map(drop)
}

async fn hasty(visit: Visit<'_>) -> Gone {
    let mut http = Http::connect(visit.address()).await?;
    http.send(&post("", &initialize("2025-11-25", &json!({}))))
        .await
}

async fn silent_hang_up(visit: Visit<'_>) -> Gone {
    let mut client = open(visit).await?;
    client.send(&visit.silent(2)).await
}

/// Calls, and reads the first of what is said about the call; gives the id of its event.
async fn begin(client: &mut Legacy, visit: Visit<'_>) -> Result<String, String> {
    client.send(&visit.steps(2)).await?;
    let read = client.http.until("notifications/progress").await?;
    let mut lines = read.lines().rev();
    let id = lines.find_map(|line| line.strip_prefix("id: "));
    Ok(format!("Last-Event-ID: {}\r\n", id.ok_or(read.clone())?))
}

async fn hang_up(visit: Visit<'_>, ends: bool) -> Gone {
    let mut client = open(visit).await?;
    begin(&mut client, visit).await?;
    if ends {
        client.end(visit.address()).await?;
    }
    Ok(())
}

async fn resumes(visit: Visit<'_>) -> Gone {
    let mut client = open(visit).await?;
    let last = begin(&mut client, visit).await?;
    client.reconnect(visit.address()).await?;
    client.verb("GET", &last).await?;
    let rest = client.http.until("\"id\":2").await?;
    // Each report once: the first was read before.
    match rest.matches("notifications/progress").count() {
        2 => Ok(()),
        others => Err(format!("{others} reports instead of 2: {rest}")),
    }
}

async fn resumes_twice(visit: Visit<'_>) -> Gone {
    let mut client = open(visit).await?;
    let last = begin(&mut client, visit).await?;
    client.reconnect(visit.address()).await?;
    client.verb("GET", &last).await?;
    client.http.until("\r\n\r\n").await.map(drop)
}

async fn cancels(visit: Visit<'_>) -> Gone {
    let mut client = open(visit).await?;
    begin(&mut client, visit).await?;
    client.cancel(2, visit.address()).await?;
    client.http.until("0\r\n\r\n").await.map(drop)
}

/// It may have been answered before.
async fn cancels_silence(visit: Visit<'_>) -> Gone {
    let mut client = open(visit).await?;
    client.send(&visit.silent(2)).await?;
    client.cancel(2, visit.address()).await?;
    client.http.until("HTTP/1.1 20").await.map(drop)
}

async fn does_not_read(visit: Visit<'_>) -> Gone {
    let mut client = open(visit).await?;
    client.send(&visit.steps(2)).await?;
    let received = notification("notifications/initialized", &json!({}));
    client.say(&received, visit.address()).await
}

async fn batch(visit: Visit<'_>, reads: bool) -> Gone {
    let mut client = Legacy::of(visit.address(), "2025-03-26", &json!({})).await?;
    client
        .send(&json!([visit.steps(2), visit.silent(3)]))
        .await?;
    let end = if reads {
        "0\r\n\r\n"
    } else {
        "notifications/progress"
    };
    let read = client.http.until(end).await?;
    match reads && read.matches("{\"jsonrpc\":\"2.0\",\"id\":").count() != 2 {
        false => Ok(()),
        true => Err(format!("not two answers: {read}")),
    }
}
