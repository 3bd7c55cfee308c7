//! The answer to a request: a result or an error.

use serde_json::Value;

use crate::json::{brief, cut, text_at};
use crate::objection::{Objection, Verdict, ensure, violation};

/// The texts in messages of errors, in lower case, that mean that there were too many requests.
const LIMIT_MESSAGES: [&str; 3] = ["too many requests", "too many switches", "rate limit"];

/// A response: a result, or an error.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Result(Value),
    Error(ErrorAnswer),
}

impl Answer {
    /// The answer that a JSON-RPC response has.
    pub(crate) fn from_response(response: &Value) -> Self {
        match response.get("error") {
            Some(error) => Self::Error(ErrorAnswer {
                code: error.get("code").and_then(Value::as_i64),
                message: text_at(error, &["message"]).unwrap_or_default().to_owned(),
                data: error.get("data").cloned().unwrap_or_default(),
                http_status: None,
            }),
            None => Self::Result(response.get("result").cloned().unwrap_or_default()),
        }
    }

    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Result(result) => format!("the result {}", brief(result)),
            Self::Error(error) => error.describe(),
        }
    }

    /// Objects to the answer to `request`, unless it is right.
    pub(crate) fn unless(&self, is_right: bool, request: &str) -> Verdict {
        ensure!(is_right, "{request} was answered with {}", self.describe());
        Ok(())
    }

    pub(crate) fn is_result(&self) -> bool {
        matches!(self, Self::Result(_))
    }

    /// Whether a request for an item was refused: with an error, or with the result of a tool that is one.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Error(_) => true,
            Self::Result(result) => result.get("isError") == Some(&true.into()),
        }
    }

    /// The result, or an objection that there is none.
    pub(crate) fn into_result(self, method: &str) -> Result<Value, Objection> {
        match self {
            Self::Result(result) => Ok(result),
            Self::Error(error) => {
                violation(format!("`{method}` was answered with {}", error.describe()))
            }
        }
    }

    /// The error, or an objection that there is none.
    pub(crate) fn into_error(self, request: &str) -> Result<ErrorAnswer, Objection> {
        match self {
            Self::Error(error) => Ok(error),
            Self::Result(_) => {
                violation(format!("{request} was answered with {}", self.describe()))
            }
        }
    }
}

/// A JSON-RPC error.
#[derive(Clone, Debug)]
pub(crate) struct ErrorAnswer {
    pub(crate) code: Option<i64>,
    pub(crate) message: String,
    pub(crate) data: Value,
    /// The HTTP status of an answer without a message of JSON-RPC.
    pub(crate) http_status: Option<u16>,
}

impl ErrorAnswer {
    /// The error as part of a sentence.
    pub(crate) fn describe(&self) -> String {
        let message = cut(&self.message, 200);
        let error = match self.code {
            Some(code) => format!("error {code} {message:?}"),
            None if self.http_status.is_some() => message,
            None => format!("an error without a code, {message:?}"),
        };
        if self.data.is_null() {
            error
        } else {
            format!("{error}, data {}", brief(&self.data))
        }
    }

    /// Objects to the error that answers `request`, unless it is right.
    pub(crate) fn unless(&self, is_right: bool, request: &str) -> Verdict {
        ensure!(is_right, "{request} was answered with {}", self.describe());
        Ok(())
    }

    /// Whether the server refused a request only because there were too many.
    pub(crate) fn is_limit(&self) -> bool {
        let message = self.message.to_ascii_lowercase();
        self.data.get("retryAfter").is_some()
            || LIMIT_MESSAGES.iter().any(|part| message.contains(part))
    }
}
