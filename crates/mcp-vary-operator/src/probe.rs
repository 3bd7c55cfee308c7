//! What machines of the operator ask a gateway, over HTTP. It changes nothing.

use std::fmt::Write as _;

use http::{Method, StatusCode};

/// A page of the listener for probes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the gateway answers each")]
pub enum Probe {
    /// Whether the process answers.
    Live,
    /// Whether clients can be served.
    Ready,
    /// The metrics.
    Metrics,
}

/// A response to a probe, as plain text.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ProbeResponse {
    /// Its status. 405 needs a header `Allow`, which names `GET`.
    pub status: StatusCode,
    /// Its body.
    pub text: String,
}

impl Probe {
    /// The page that is requested.
    ///
    /// # Errors
    ///
    /// The response to a request for another page, or with another method than `GET`.
    pub fn of(method: &Method, path: &str) -> Result<Self, ProbeResponse> {
        let Some((_, probe)) = PATHS.iter().find(|(known, _)| *known == path) else {
            let text = "there is nothing here; there are /livez, /readyz, /healthz and /metrics\n";
            return Err(ProbeResponse::new(StatusCode::NOT_FOUND, text));
        };
        if method != Method::GET {
            let text = "only GET is allowed\n";
            return Err(ProbeResponse::new(StatusCode::METHOD_NOT_ALLOWED, text));
        }
        Ok(*probe)
    }
}

impl ProbeResponse {
    /// A response with this text.
    #[must_use]
    pub fn new(status: StatusCode, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { status, text }
    }

    /// The response of a process that answers.
    #[must_use]
    pub fn live() -> Self {
        Self::new(StatusCode::OK, "ok\n")
    }

    /// The response of a gateway that is ready unless there are `reasons` against it, and a line for each of these names,
    /// of servers and the store, with its state.
    #[must_use]
    pub fn ready<'a>(
        reasons: &[String],
        servers: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let mut response = match reasons {
            [] => Self::live(),
            reasons => Self::new(StatusCode::SERVICE_UNAVAILABLE, reasons.join("\n") + "\n"),
        };
        for (server, state) in servers {
            // Writing to memory does not fail.
            let _ = writeln!(response.text, "{}: {state}", server.escape_default());
        }
        response
    }
}

const PATHS: &[(&str, Probe)] = &[
    ("/livez", Probe::Live),
    ("/readyz", Probe::Ready),
    ("/healthz", Probe::Ready),
    ("/metrics", Probe::Metrics),
];
