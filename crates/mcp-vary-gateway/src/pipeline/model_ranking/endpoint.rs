//! One request to a model, and what of its answer is used.

use mcp_vary::rank::model::{AnswerError, INSTRUCTIONS, MAX_ANSWER, answer_schema, parse_answer};
use mcp_vary::variant::VariantId;
use mcp_vary_base::environment::Variables;
use mcp_vary_http_client::document::{self, DocumentError};
use serde_json::{Value, json};

use mcp_vary_settings::model_ranking::ModelRankingConfig;

/// The longest response that is read, in bytes: an answer in a chat completion.
const MAX_RESPONSE: usize = 2 * MAX_ANSWER;

/// Why a model ranked nothing. It contains nothing that the model wrote.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    #[error(transparent)]
    Request(#[from] DocumentError),
    #[error("the response is not a chat completion")]
    NotACompletion,
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

impl AskError {
    /// A short name, for the status.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Request(DocumentError::Timeout(_)) => "timeout",
            Self::Request(DocumentError::Redirect(_)) => "redirect",
            Self::Request(DocumentError::Status(_)) => "status",
            Self::Request(DocumentError::TooLarge(_)) => "too-large",
            Self::Request(_) => "connection",
            Self::NotACompletion => "not-a-completion",
            Self::Answer(error) => error.name(),
        }
    }

    /// Whether the endpoint failed, rather than the model.
    pub(super) fn is_of_endpoint(&self) -> bool {
        !matches!(self, Self::Answer(_))
    }
}

/// Asks the model to order `offered`, about which `question` tells it.
///
/// # Errors
///
/// When the endpoint does not answer with a chat completion in time, or the answer names something else than `offered`.
pub(super) async fn rank(
    config: &ModelRankingConfig,
    question: &str,
    offered: &[VariantId],
    variables: Variables,
) -> Result<Vec<VariantId>, AskError> {
    let schema = json!({"name": "ranking", "strict": true, "schema": answer_schema(offered)});
    let body = json!({
        "model": config.model(),
        "messages": [
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": question},
        ],
        "response_format": {"type": "json_schema", "json_schema": schema},
    });
    let response = document::post_json(
        config.url(),
        body.to_string(),
        config.authorization(),
        MAX_RESPONSE,
        (config.timeout, variables),
    );
    let response: Value =
        serde_json::from_slice(&response.await?).map_err(|_| AskError::NotACompletion)?;
    let written = response["choices"][0]["message"]["content"].as_str();
    let content = written.ok_or(AskError::NotACompletion)?;
    Ok(parse_answer(content, offered)?)
}
