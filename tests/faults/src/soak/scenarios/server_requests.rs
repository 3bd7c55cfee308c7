//! Clients that receive server requests during a call.

use serde_json::{Value, json};

use super::super::client_run::ClientRun;
use super::super::http::{Http, Legacy, modern};
use super::{Scenario, ScenarioResult};

scenarios! {
    "session: be asked, answer" one in 101 => |run| session(run, Then::Answer);
    "session: be asked, answer nothing, vanish" one in 199 => |run| session(run, Then::Vanish);
    "session: be asked, answer nothing, `DELETE`" one in 103 => |run| session(run, Then::Delete);
    "session: be asked, cancel the call" one in 107 => |run| session(run, Then::Cancel);
    "batch: be asked, hang up, `DELETE`" one in 211 => |run| batch(run);
    "stateless: input required, given" one in 109 => |run| stateless(run, true);
    "stateless: input required, never given" one in 197 => |run| stateless(run, false);
}

/// What a client does after a server request.
#[derive(Clone, Copy)]
enum Then {
    Answer,
    Vanish,
    Delete,
    Cancel,
}

fn capabilities() -> Value {
    json!({"elicitation": {}, "sampling": {}})
}

/// A call whose tool elicits or samples.
fn call_with_request(run: ClientRun<'_>, id: u32) -> Value {
    if run.number.is_multiple_of(2) {
        run.call(id, "test_elicitation", &json!({"message": "who?"}))
    } else {
        run.call(id, "test_sampling", &json!({"prompt": "who?"}))
    }
}

/// A result for both kinds of request.
fn client_result() -> Value {
    json!({
        "action": "accept", "content": {"type": "text", "text": "x", "username": "a", "email": "b@c"},
        "role": "assistant", "model": "m",
    })
}

fn answer_to(event: &str) -> Result<Value, String> {
    let data = event.lines().rev();
    let data = data.filter_map(|line| line.strip_prefix("data: "));
    let mut messages = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let request =
        messages.find(|message| message["method"].is_string() && !message["id"].is_null());
    let id = request.ok_or("no server request")?["id"].clone();
    Ok(json!({"jsonrpc": "2.0", "id": id, "result": client_result()}))
}

/// Reads to the end of the event with the server request.
async fn server_request(http: &mut Http) -> Result<String, String> {
    let head = http.until("{\"jsonrpc\":\"2.0\",\"id\":").await?;
    Ok(head + &http.until("\n\n").await?)
}

async fn session(run: ClientRun<'_>, then: Then) -> ScenarioResult {
    let address = run.address();
    let mut client = Legacy::open(address, &capabilities()).await?;
    client.send(&call_with_request(run, 2)).await?;
    let server_request = server_request(&mut client.http).await?;
    match then {
        Then::Vanish => Ok(()),
        Then::Delete => client.end(address).await,
        Then::Cancel => {
            client.cancel(2, address).await?;
            client.http.until("0\r\n\r\n").await.map(drop)
        }
        Then::Answer => {
            client.say(&answer_to(&server_request)?, address).await?;
            client.http.until("\"id\":2").await?;
            client.end(address).await
        }
    }
}

async fn batch(run: ClientRun<'_>) -> ScenarioResult {
    let address = run.address();
    let mut client = Legacy::of(address, "2025-03-26", &capabilities()).await?;
    client.send(&json!([call_with_request(run, 2)])).await?;
    server_request(&mut client.http).await?;
    client.end(address).await
}

async fn stateless(run: ClientRun<'_>, answers: bool) -> ScenarioResult {
    let mut http = Http::connect(run.address()).await?;
    let call = call_with_request(run, 2);
    http.send(&modern(call.clone(), &capabilities())).await?;
    let required = http.answer().await?["result"].take();
    if required["resultType"] != "input_required" {
        return Err(format!("no input required: {required}"));
    }
    if !answers {
        return Ok(());
    }
    let mut retry = call;
    let params = &mut retry["params"];
    if required["requestState"].is_string() {
        params["requestState"] = required["requestState"].clone();
    }
    let inputs = required["inputRequests"].as_object();
    for key in inputs.into_iter().flat_map(|inputs| inputs.keys()) {
        params["inputResponses"][key] = client_result();
    }
    http.send(&modern(retry, &capabilities())).await?;
    let answer = http.answer().await?;
    if answer["result"]["content"].is_array() {
        Ok(())
    } else {
        Err(format!("no answer: {answer}"))
    }
}
