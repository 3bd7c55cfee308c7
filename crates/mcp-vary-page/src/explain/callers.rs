//! Who may call a tool: people by their keys, and clients.

use bytes::Bytes;
use http::StatusCode;
use mcp_vary_gateway::Gateway;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Question, explain};
use crate::response::{PageAnswer, failure, json as json_answer};

/// The response to `POST /api/callers`.
pub(crate) fn respond(gateway: &Gateway, body: &Bytes) -> PageAnswer {
    let wanted = serde_json::from_slice::<Asked<'_>>(body);
    let wanted = wanted.map_err(|error| format!("the request: {error}"));
    match wanted.and_then(|wanted| wanted.answers(gateway)) {
        Ok(answers) => json_answer(&answers),
        Err(why) => failure(StatusCode::BAD_REQUEST, &why),
    }
}

/// A tool, and the clients that are asked about beside each person who has a key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked<'a> {
    server: String,
    tool: String,
    #[serde(borrow)]
    clients: Vec<Question<'a>>,
}

impl Asked<'_> {
    /// An answer for each person, the last without a key, and for each client.
    fn answers(&self, gateway: &Gateway) -> Result<Value, String> {
        if self.clients.len() > MOST_CLIENTS {
            let number = self.clients.len();
            return Err(format!(
                "`clients` has {number} entries; write at most {MOST_CLIENTS}"
            ));
        }
        let mut keys: Vec<_> = gateway.key_names().into_iter().map(Some).collect();
        keys.sort_unstable();
        let people = keys.into_iter().chain([None]);
        let people = people.map(|key| self.for_person(gateway, key));
        let clients = self.clients.iter().cloned();
        let clients = clients.map(|client| self.for_client(gateway, client));
        Ok(json!({
            "people": people.collect::<Result<Value, _>>()?,
            "clients": clients.collect::<Result<Value, _>>()?,
        }))
    }

    /// A person may choose any variant that access rules leave: if the default one hides the tool, the first one that shows it.
    fn for_person(&self, gateway: &Gateway, key: Option<String>) -> Result<Value, String> {
        let in_variant = |path| {
            let key = key.clone();
            let client = Question {
                key,
                path,
                ..Question::default()
            };
            self.for_client(gateway, client)
        };
        let mut answer = in_variant(None)?;
        // What access rules hide, no variant shows; their reason comes first.
        if answer["hidden"][0]["by"] == "variant" {
            for variant in gateway.variants() {
                let other = in_variant(Some(format!("/mcp/v/{}", variant.id)))?;
                if other["hidden"] == json!([]) {
                    answer = other;
                    break;
                }
            }
        }
        answer["person"] = key.into();
        Ok(answer)
    }

    /// What hides the tool from a client, and the access rules that allow it, or that refuse each call of it.
    fn for_client(&self, gateway: &Gateway, mut client: Question<'_>) -> Result<Value, String> {
        client.tool = Some(self.tool.clone());
        let explained = explain(gateway, &client)?;
        let refused = |why: &str| json!({"hidden": [{"by": "refused", "rule": null, "detail": why}], "rules": []});
        if explained["lacksCredential"] == true {
            return Ok(refused("Vary refuses clients without a key or a token"));
        }
        let mut tools = explained["tools"].as_array().into_iter().flatten();
        let Some(tool) = tools.find(|tool| tool["server"] == *self.server) else {
            let steps = explained["steps"].as_array().and_then(|steps| steps.last());
            return Ok(refused(
                steps
                    .and_then(|step| step["detail"].as_str())
                    .unwrap_or_default(),
            ));
        };
        Ok(json!({
            "hidden": tool["hidden"],
            "rules": tool["rules"],
            "isAllowed": tool["isAllowed"],
        }))
    }
}

/// The clients of a question: each takes as long as to find out what one client gets.
const MOST_CLIENTS: usize = 100;
