//! Clients that receive server requests during a call.

use serde_json::{Value, json};

use super::super::http::{Http, Legacy, modern};
use super::super::visit::Visit;
use super::{Gone, Way, rare};

pub(super) const WAYS: &[Way] = &[
    rare("session: be asked, answer", 101, |visit| {
        Box::pin(session(visit, Then::Answer))
    }),
    rare("session: be asked, answer nothing, vanish", 199, |visit| {
        Box::pin(session(visit, Then::Vanish))
    }),
    rare(
        "session: be asked, answer nothing, `DELETE`",
        103,
        |visit| Box::pin(session(visit, Then::Delete)),
    ),
    rare("session: be asked, cancel the call", 107, |visit| {
        Box::pin(session(visit, Then::Cancel))
    }),
    rare("batch: be asked, hang up, `DELETE`", 211, |visit| {
        Box::pin(batch(visit))
    }),
    rare("stateless: input required, given", 109, |visit| {
        Box::pin(stateless(visit, true))
    }),
    rare("stateless: input required, never given", 197, |visit| {
        Box::pin(stateless(visit, false))
    }),
];

/// What a client does that is asked.
#[derive(Clone, Copy)]
enum Then {
    Answer,
    Vanish,
    Delete,
    Cancel,
}

fn can() -> Value {
    json!({"elicitation": {}, "sampling": {}})
}

/// One asks to fill in a form, another to sample.
fn asking(visit: Visit<'_>, id: u32) -> Value {
    match visit.number.is_multiple_of(2) {
        true => visit.call(id, "test_elicitation", &json!({"message": "who?"})),
        false => visit.call(id, "test_sampling", &json!({"prompt": "who?"})),
    }
}

/// What either question can be answered.
fn said() -> Value {
    json!({
        "action": "accept", "content": {"type": "text", "text": "x", "username": "a", "email": "b@c"},
        "role": "assistant", "model": "m",
    })
}

fn answer_to(question: &str) -> Result<Value, String> {
    let data = question.lines().rev();
    let data = data.filter_map(|line| line.strip_prefix("data: "));
    let mut asked = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let question = asked.find(|asked| asked["method"].is_string() && !asked["id"].is_null());
    let id = question.ok_or("no question")?["id"].clone();
    Ok(json!({"jsonrpc": "2.0", "id": id, "result": said()}))
}

/// Reads to the end of the event that asks.
async fn question(http: &mut Http) -> Result<String, String> {
    let what = http.until("{\"jsonrpc\":\"2.0\",\"id\":").await?;
    Ok(what + &http.until("\n\n").await?)
}

async fn session(visit: Visit<'_>, then: Then) -> Gone {
    let address = visit.address();
    let mut client = Legacy::open(address, &can()).await?;
    client.send(&asking(visit, 2)).await?;
    let question = question(&mut client.http).await?;
    match then {
        Then::Vanish => Ok(()),
        Then::Delete => client.end(address).await,
        Then::Cancel => {
            client.cancel(2, address).await?;
            client.http.until("0\r\n\r\n").await.map(drop)
        }
        Then::Answer => {
            client.say(&answer_to(&question)?, address).await?;
            client.http.until("\"id\":2").await?;
            client.end(address).await
        }
    }
}

async fn batch(visit: Visit<'_>) -> Gone {
    let address = visit.address();
    let mut client = Legacy::of(address, "2025-03-26", &can()).await?;
    client.send(&json!([asking(visit, 2)])).await?;
    question(&mut client.http).await?;
    client.end(address).await
}

async fn stateless(visit: Visit<'_>, gives: bool) -> Gone {
    let mut http = Http::connect(visit.address()).await?;
    let call = asking(visit, 2);
    http.send(&modern(call.clone(), &can())).await?;
    let required = http.answer().await?["result"].take();
    if required["resultType"] != "input_required" {
        return Err(format!("no input required: {required}"));
    }
    if !gives {
        return Ok(());
    }
    let mut retry = call;
    let params = &mut retry["params"];
    if required["requestState"].is_string() {
        params["requestState"] = required["requestState"].clone();
    }
    let asked = required["inputRequests"].as_object();
    for key in asked.into_iter().flat_map(|asked| asked.keys()) {
        params["inputResponses"][key] = said();
    }
    http.send(&modern(retry, &can())).await?;
    let answer = http.answer().await?;
    match answer["result"]["content"].is_array() {
        true => Ok(()),
        false => Err(format!("no answer: {answer}")),
    }
}
