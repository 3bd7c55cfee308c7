//! The part that a client takes in an experiment.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use mcp_vary::error_code::INVALID_PARAMS;
use mcp_vary::json::Members;
use mcp_vary::render::tokens;
use mcp_vary::visibility::{Experience, Forward, forward};
use mcp_vary_audit::Outcome;
use mcp_vary_base::lock::ScopedLock;
use mcp_vary_catalog::index::VariantIndex;
use mcp_vary_experiment::{Call, CallOutcome, Tally, Unit};
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::Reply;
use tokio::time::Instant;

use crate::outcome::outcome;

/// The part that the client of one request takes in an experiment, and its call, if the request is one.
#[derive(Debug)]
pub struct Participation {
    tally: Arc<Tally>,
    /// When the tally began.
    since: Instant,
    unit: Unit,
    arm: usize,
    /// The variant of its arm.
    variant: VariantIndex,
    /// The name of the experiment.
    experiment: Arc<str>,
    pending: ScopedLock<Option<PendingCall>>,
}

/// A call without an outcome.
#[derive(Debug)]
struct PendingCall {
    tool: u64,
    arguments: u64,
    began: Instant,
    is_invalid: bool,
}

impl Participation {
    /// The part of a client that has this arm of `experiment`, counted in `tally`, which began at `since`.
    pub fn new(
        tally: Arc<Tally>,
        since: Instant,
        unit: Unit,
        arm: usize,
        variant: VariantIndex,
        experiment: Arc<str>,
    ) -> Self {
        Self {
            tally,
            since,
            unit,
            arm,
            variant,
            experiment,
            pending: ScopedLock::default(),
        }
    }

    /// The variant of the client's arm, and the name of the experiment.
    pub fn choice(&self) -> (VariantIndex, Arc<str>) {
        (self.variant, Arc::clone(&self.experiment))
    }

    /// Counts the client, whether it will call anything or not.
    pub(crate) fn count_client(&self) {
        self.tally.take_part(self.unit, self.arm);
    }

    /// A call of a tool begins. One that ends without an outcome, because its client left, is not counted.
    pub(crate) fn begin_call(&self, params: &Params<'_>) {
        let hash = |member: &str| {
            let mut hasher = DefaultHasher::new();
            params.members.get(member).hash(&mut hasher);
            hasher.finish()
        };
        *self.pending.lock() = Some(PendingCall {
            tool: hash("name"),
            arguments: hash("arguments"),
            began: Instant::now(),
            is_invalid: false,
        });
    }

    /// The gateway refuses the arguments of the call.
    pub fn refuse_arguments(&self) {
        if let Some(call) = &mut *self.pending.lock() {
            call.is_invalid = true;
        }
    }

    /// Counts the call by the response to the client.
    pub(crate) fn finish(&self, reply: &Reply) {
        let Some(pending) = self.pending.lock().take() else {
            return;
        };
        let outcome = match outcome(&reply.body, true) {
            (Outcome::Allowed, _) => CallOutcome::Succeeded,
            (_, Some(INVALID_PARAMS)) => CallOutcome::InvalidArguments,
            _ if pending.is_invalid => CallOutcome::InvalidArguments,
            _ => CallOutcome::Failed,
        };
        self.tally.record(&Call {
            unit: self.unit,
            arm: self.arm,
            tool: pending.tool,
            arguments: pending.arguments,
            outcome,
            ended: self.since.elapsed(),
            duration: pending.began.elapsed(),
            tokens: model_tokens(&reply.body) as u64,
        });
    }
}

/// An estimate of the tokens that a model reads of a response: of a result, what clients forward; of an error, all of it.
fn model_tokens(response: &[u8]) -> usize {
    let response = String::from_utf8_lossy(response);
    let message = Members::parse(&response).unwrap_or_default();
    let result = message.get("result").unwrap_or("{}");
    let (value, blocks) = match forward(result, Experience::Conversation) {
        Ok(Forward::Content(blocks)) => ("", blocks),
        Ok(Forward::Structured { value, others }) => (value, others),
        Ok(Forward::Nothing) | Err(_) => ("", Vec::new()),
    };
    let texts = blocks.iter().map(|block| {
        let members = Members::parse(block).unwrap_or_default();
        match members.get_str("type").as_deref() {
            Some("text") => members.get_str("text").unwrap_or_default(),
            // A model is not given these as text.
            Some("image" | "audio") => String::new(),
            _ => (*block).to_owned(),
        }
    });
    let of_texts: usize = texts.map(|text| tokens(&text)).sum();
    tokens(message.get("error").unwrap_or_default()) + tokens(value) + of_texts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two fields with the same data a client forwards one, and no image as text.
    #[test]
    fn a_call_costs_what_a_model_reads_of_its_result() {
        for (response, read) in [
            (
                r#"{"result":{"content":[{"type":"text","text":"8 °C"}],"structuredContent":{"c":8.0}},"id":1}"#,
                "8 °C",
            ),
            (
                r#"{"result":{"structuredContent":{"c":8.0}},"id":1}"#,
                r#"{"c":8.0}"#,
            ),
            (
                r#"{"result":{"content":[{"type":"image","data":"aGFsbG8=","mimeType":"image/png"}]}}"#,
                "",
            ),
            (
                r#"{"error":{"code":-32602,"message":"no"}}"#,
                r#"{"code":-32602,"message":"no"}"#,
            ),
            ("", ""),
        ] {
            assert_eq!(
                model_tokens(response.as_bytes()),
                tokens(read),
                "{response}"
            );
        }
    }
}
