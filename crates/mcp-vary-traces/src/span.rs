//! The two spans of a request: that of the client's request, and that of the request to a server.

use std::net::IpAddr;
use std::sync::Arc;

use mcp_vary_base::lock::ScopedLock;
use sha2::{Digest as _, Sha256};

use crate::carrier::Carrier;
use crate::context::{TraceContext, push_hex};
use crate::processor::SpanProcessor;
pub use crate::proto::MAX_TEXT;
use crate::proto::{CLIENT, SERVER, Span, Value};

/// A request as it arrives.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// Its method, from a closed list.
    pub method: &'static str,
    /// The id, JSON text.
    pub id: &'a str,
    /// The context in `params._meta`.
    pub meta: &'a Carrier,
    /// The context in the HTTP headers.
    pub headers: Option<&'a Carrier>,
    /// Whether the caller is authenticated, or started the gateway.
    pub is_known: bool,
    /// The id of the principal.
    pub principal: Option<&'a str>,
    /// How it came.
    pub transport: Transport,
    /// The address of the client.
    pub address: Option<IpAddr>,
    /// The id of the session, of which a digest is recorded.
    pub session: Option<&'a str>,
}

/// The transport of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Transport {
    /// Streamable HTTP.
    Http,
    /// Standard input and output.
    Stdio,
}

impl Transport {
    fn describe(self, span: &mut Span) {
        match self {
            Self::Http => {
                span.attribute("network.transport", "tcp");
                span.attribute("network.protocol.name", "http");
                span.attribute("network.protocol.version", "1.1");
            }
            Self::Stdio => span.attribute("network.transport", "pipe"),
        }
    }
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// A result.
    Result,
    /// A result in which a tool reports that it failed.
    ToolError,
    /// An error with this code.
    Error(i64),
    /// No response: the client did not wait for it.
    Cancelled,
}

impl Outcome {
    /// Adds the outcome to a span. Errors of `caller_codes` are not errors of the span: the caller made them.
    fn describe(self, span: &mut Span, caller_codes: &[i64]) {
        let error = match self {
            Self::Result => None,
            Self::ToolError => Some("tool_error".to_owned()),
            Self::Cancelled => Some("cancelled".to_owned()),
            Self::Error(code) => {
                let text = code.to_string();
                span.attribute("rpc.response.status_code", &*text);
                Some(text)
            }
        };
        let is_callers = matches!(self, Self::Error(code) if caller_codes.contains(&code));
        if !is_callers && let Some(error) = error {
            span.attribute("error.type", &*error);
            span.error();
        }
    }
}

/// The codes of errors that a caller makes.
///
/// Source: OpenTelemetry semantic conventions, "RPC", "JSON-RPC": a server's span has no error for them.
const CALLER_CODES: &[i64] = &[-32700, -32600, -32601, -32602, -32002];

/// The span of a client's request.
///
/// # Properties
///
/// It ends once: with the first outcome that it gets, or as cancelled if it is dropped without one. Without a recorder it
/// only passes on a context.
#[derive(Debug)]
pub struct RequestSpan {
    recorder: Option<Recorder>,
    /// What its calls carry beside their position.
    inherited: Carrier,
}

impl RequestSpan {
    /// A request that is not recorded, and whose context goes on as it is.
    pub(crate) const fn unsampled(inherited: Carrier) -> Self {
        Self {
            recorder: None,
            inherited,
        }
    }

    pub(crate) fn sampled(
        processor: &Arc<SpanProcessor>,
        arrival: &Arrival<'_>,
        (context, parent, link): (TraceContext, Option<TraceContext>, Option<TraceContext>),
        inherited: Carrier,
    ) -> Self {
        let mut span = new_span(processor, arrival.method, context, parent, SERVER);
        span.attribute("jsonrpc.request.id", arrival.id.trim_matches('"'));
        arrival.transport.describe(&mut span);
        if let Some(session) = arrival.session {
            span.attribute("mcp.session.id", &*session_digest(session));
        }
        if let Some(address) = arrival.address {
            span.attribute("client.address", &*address.to_string());
        }
        if let Some(principal) = arrival.principal {
            span.attribute("vary.principal", principal);
        }
        span.trace_state(inherited.tracestate.as_deref());
        if let Some(link) = link {
            span.link(link);
        }
        Self {
            recorder: Some(Recorder::new(processor, context, arrival.method, span)),
            inherited,
        }
    }

    /// Whether it is recorded, so that facts about it are wanted.
    pub const fn is_recorded(&self) -> bool {
        self.recorder.is_some()
    }

    /// The trace in which it is recorded.
    pub fn trace_id(&self) -> Option<[u8; 16]> {
        Some(self.recorder.as_ref()?.context.trace())
    }

    /// The request is of a client of this revision. The last one counts.
    pub fn set_revision(&self, revision: &str) {
        self.change(|pending| pending.revision = Some(revision.to_owned()));
    }

    /// The request runs under this variant, for this reason. The last one counts.
    pub fn set_variant(&self, variant: &str, reason: &'static str) {
        self.change(|pending| pending.variant = Some((variant.to_owned(), reason)));
    }

    /// The tool or prompt of the request exists, and has this name. Must be said once.
    pub fn set_target(&self, name: &str) {
        let method = self.recorder.as_ref().map_or("", |it| it.method);
        self.change(|pending| name_target(&mut pending.span, method, name));
    }

    fn change(&self, change: impl FnOnce(&mut Pending)) {
        let Some(recorder) = &self.recorder else {
            return;
        };
        if let Some(pending) = &mut *recorder.pending.lock() {
            change(pending);
        }
    }

    /// The request has this outcome.
    pub fn end(&self, outcome: Outcome) {
        if let Some(recorder) = &self.recorder {
            recorder.end(outcome, CALLER_CODES);
        }
    }

    /// Begins a request to a server, which carries the context of its own span.
    pub fn call(&self, upstream: &Upstream<'_>) -> CallSpan {
        let mut carrier = self.inherited.clone();
        let Some(recorder) = &self.recorder else {
            return CallSpan {
                recorder: None,
                carrier,
            };
        };
        let processor = &recorder.processor;
        let context = processor.child_of(Some(recorder.context));
        let parent = Some(recorder.context);
        let mut span = new_span(processor, recorder.method, context, parent, CLIENT);
        span.trace_state(self.inherited.tracestate.as_deref());
        span.attribute("mcp.protocol.version", upstream.revision);
        match upstream.address {
            Some((host, port)) => {
                Transport::Http.describe(&mut span);
                span.attribute("server.address", host);
                span.attribute("server.port", Value::Number(port));
            }
            None => Transport::Stdio.describe(&mut span),
        }
        span.attribute("vary.server", upstream.server);
        if let Some(name) = upstream.target {
            name_target(&mut span, recorder.method, name);
        }
        carrier.traceparent = Some(context.to_string());
        CallSpan {
            recorder: Some(Recorder::new(processor, context, recorder.method, span)),
            carrier,
        }
    }
}

/// Where a request to a server goes.
#[derive(Clone, Copy, Debug)]
pub struct Upstream<'a> {
    /// The name of the server.
    pub server: &'a str,
    /// The name of the tool or prompt at the server.
    pub target: Option<&'a str>,
    /// The revision that it speaks.
    pub revision: &'a str,
    /// Its host and port; `None` for a program.
    pub address: Option<(&'a str, u16)>,
}

/// The span of a request to a server.
///
/// # Properties
///
/// Those of a [`RequestSpan`].
#[derive(Debug)]
pub struct CallSpan {
    recorder: Option<Recorder>,
    carrier: Carrier,
}

impl CallSpan {
    /// What the request carries.
    pub const fn carrier(&self) -> &Carrier {
        &self.carrier
    }

    /// Whether it is recorded.
    pub const fn is_recorded(&self) -> bool {
        self.recorder.is_some()
    }

    /// The request has this outcome.
    pub fn end(&self, outcome: Outcome) {
        if let Some(recorder) = &self.recorder {
            recorder.end(outcome, &[]);
        }
    }
}

/// A span that is recorded.
#[derive(Debug)]
struct Recorder {
    processor: Arc<SpanProcessor>,
    context: TraceContext,
    method: &'static str,
    /// `None` after the outcome.
    pending: ScopedLock<Option<Pending>>,
}

/// A span without its end, and what may still change.
#[derive(Debug)]
struct Pending {
    span: Span,
    revision: Option<String>,
    variant: Option<(String, &'static str)>,
}

impl Recorder {
    fn new(
        processor: &Arc<SpanProcessor>,
        context: TraceContext,
        method: &'static str,
        span: Span,
    ) -> Self {
        let pending = Pending {
            span,
            revision: None,
            variant: None,
        };
        Self {
            processor: Arc::clone(processor),
            context,
            method,
            pending: ScopedLock::new(Some(pending)),
        }
    }

    fn end(&self, outcome: Outcome, caller_codes: &[i64]) {
        let Some(pending) = self.pending.lock().take() else {
            return;
        };
        let mut span = pending.span;
        if let Some(revision) = &pending.revision {
            span.attribute("mcp.protocol.version", &**revision);
        }
        if let Some((variant, reason)) = &pending.variant {
            span.attribute("vary.variant", &**variant);
            span.attribute("vary.variant.why", *reason);
        }
        outcome.describe(&mut span, caller_codes);
        let end = self.processor.now();
        self.processor
            .exporter
            .submit(span.into_bytes(end, self.method));
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end(Outcome::Cancelled, &[]);
    }
}

fn new_span(
    processor: &SpanProcessor,
    method: &'static str,
    context: TraceContext,
    parent: Option<TraceContext>,
    kind: u8,
) -> Span {
    let mut span = Span::new(context, parent, kind, processor.now());
    span.attribute("mcp.method.name", method);
    if method == CALL {
        span.attribute("gen_ai.operation.name", "execute_tool");
    }
    span
}

/// Adds the name of a tool or prompt to a span, and to its own name.
fn name_target(span: &mut Span, method: &'static str, name: &str) {
    let key = match method {
        CALL => "gen_ai.tool.name",
        "prompts/get" => "gen_ai.prompt.name",
        _ => return,
    };
    span.name(method, Some(name));
    span.attribute(key, name);
}

/// What identifies a session, and does not open it: half of the SHA-256 of its id.
pub fn session_digest(id: &str) -> String {
    let digest = Sha256::digest(id.as_bytes());
    let mut text = String::with_capacity(32);
    push_hex(&mut text, &digest[..16]);
    text
}

/// The method that calls a tool.
const CALL: &str = "tools/call";
