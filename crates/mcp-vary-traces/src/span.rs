//! The two spans of a request: that of the client's request, and that of the request to a server.

use std::net::IpAddr;
use std::sync::Arc;

use mcp_vary_base::lock::ScopedLock;
use sha2::{Digest as _, Sha256};

use crate::carrier::Carrier;
use crate::context::{TraceContext, push_hex};
use crate::processor::SpanProcessor;
use crate::proto::{CLIENT, SERVER, Span, Value};

/// The longest text in a span, in bytes.
pub const MAX_TEXT: usize = 512;

/// A request as it arrives.
#[derive(Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "what the gateway knows of each request"
)]
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
#[expect(clippy::exhaustive_enums, reason = "MCP has these two")]
pub enum Transport {
    /// Streamable HTTP.
    Http,
    /// Standard input and output.
    Stdio,
}

impl Transport {
    fn describe(self, attributes: &mut Vec<(&'static str, Value)>) {
        match self {
            Self::Http => attributes.extend([
                ("network.transport", "tcp".into()),
                ("network.protocol.name", "http".into()),
                ("network.protocol.version", "1.1".into()),
            ]),
            Self::Stdio => attributes.push(("network.transport", "pipe".into())),
        }
    }
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "MCP has these")]
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
                let code = code.to_string();
                let status = ("rpc.response.status_code", code.clone().into());
                span.attributes.push(status);
                Some(code)
            }
        };
        let is_callers = matches!(self, Self::Error(code) if caller_codes.contains(&code));
        if let Some(error) = error.filter(|_| !is_callers) {
            span.attributes.push(("error.type", error.into()));
            span.is_error = true;
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
        let attributes = &mut span.attributes;
        let id = cut(arrival.id.trim_matches('"'));
        attributes.push(("jsonrpc.request.id", id.into()));
        arrival.transport.describe(attributes);
        let texts = [
            ("mcp.session.id", arrival.session.map(digest)),
            ("client.address", arrival.address.map(|it| it.to_string())),
            ("vary.principal", arrival.principal.map(str::to_owned)),
        ];
        let texts = texts.into_iter();
        attributes.extend(texts.filter_map(|(key, text)| Some((key, text?.into()))));
        span.trace_state = trace_state(&inherited);
        span.link = link;
        Self {
            recorder: Some(Recorder {
                processor: Arc::clone(processor),
                context,
                method: arrival.method,
                pending: ScopedLock::new(Some(span)),
            }),
            inherited,
        }
    }

    /// Whether it is recorded, so that facts about it are wanted.
    #[must_use]
    pub const fn is_recorded(&self) -> bool {
        self.recorder.is_some()
    }

    /// The request is of a client of this revision.
    pub fn set_revision(&self, revision: &str) {
        self.set("mcp.protocol.version", cut(revision));
    }

    /// The request runs under this variant, for this reason.
    pub fn set_variant(&self, variant: &str, reason: &'static str) {
        self.set("vary.variant", cut(variant));
        self.set("vary.variant.why", reason);
    }

    /// The tool or prompt of the request exists, and has this name.
    pub fn set_target(&self, name: &str) {
        let Some(recorder) = &self.recorder else {
            return;
        };
        recorder.change(|span| name_target(span, recorder.method, name));
    }

    fn set(&self, key: &'static str, value: impl Into<Value>) {
        let Some(recorder) = &self.recorder else {
            return;
        };
        recorder.change(|span| {
            let known = &mut span.attributes;
            known.retain(|(known, _)| *known != key);
            known.push((key, value.into()));
        });
    }

    /// The request has this outcome.
    pub fn end(&self, outcome: Outcome) {
        if let Some(recorder) = &self.recorder {
            recorder.end(outcome, CALLER_CODES);
        }
    }

    /// Begins a request to a server, which carries the context of its own span.
    #[must_use]
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
        span.trace_state = trace_state(&self.inherited);
        let attributes = &mut span.attributes;
        attributes.push(("mcp.protocol.version", cut(upstream.revision).into()));
        match upstream.address {
            Some((host, port)) => {
                Transport::Http.describe(attributes);
                attributes.push(("server.address", cut(host).into()));
                attributes.push(("server.port", Value::Number(port)));
            }
            None => Transport::Stdio.describe(attributes),
        }
        attributes.push(("vary.server", cut(upstream.server).into()));
        if let Some(name) = upstream.target {
            name_target(&mut span, recorder.method, name);
        }
        carrier.traceparent = Some(context.to_string());
        CallSpan {
            recorder: Some(Recorder {
                processor: Arc::clone(processor),
                context,
                method: recorder.method,
                pending: ScopedLock::new(Some(span)),
            }),
            carrier,
        }
    }
}

/// Where a request to a server goes.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "what the gateway knows of each server"
)]
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
    #[must_use]
    pub const fn carrier(&self) -> &Carrier {
        &self.carrier
    }

    /// Whether it is recorded.
    #[must_use]
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
    pending: ScopedLock<Option<Span>>,
}

impl Recorder {
    fn change(&self, change: impl FnOnce(&mut Span)) {
        if let Some(span) = &mut *self.pending.lock() {
            change(span);
        }
    }

    fn end(&self, outcome: Outcome, caller_codes: &[i64]) {
        let Some(mut span) = self.pending.lock().take() else {
            return;
        };
        outcome.describe(&mut span, caller_codes);
        // The clock may have been set back.
        span.end = self.processor.now().max(span.start);
        self.processor.submit(&span);
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
    let mut attributes = Vec::with_capacity(16);
    attributes.push(("mcp.method.name", method.into()));
    if method == CALL {
        attributes.push(("gen_ai.operation.name", "execute_tool".into()));
    }
    Span {
        context,
        parent,
        link: None,
        trace_state: String::new(),
        name: method.into(),
        kind,
        start: processor.now(),
        end: 0,
        attributes,
        is_error: false,
    }
}

/// Adds the name of a tool or prompt to a span, and to its own name.
fn name_target(span: &mut Span, method: &'static str, name: &str) {
    let key = match method {
        CALL => "gen_ai.tool.name",
        "prompts/get" => "gen_ai.prompt.name",
        _ => return,
    };
    let name = cut(name);
    span.name = [method, " ", &name].concat().into();
    span.attributes.push((key, name.into()));
}

/// What vendors added, unless it is longer than programs must pass on (W3C Trace Context, section 3.3.1.5).
fn trace_state(carrier: &Carrier) -> String {
    let state = carrier.tracestate.as_deref();
    state
        .filter(|it| it.len() <= MAX_TEXT)
        .unwrap_or_default()
        .to_owned()
}

/// What identifies a session, and does not open it: half of the SHA-256 of its id.
fn digest(id: &str) -> String {
    let digest = Sha256::digest(id.as_bytes());
    let mut text = String::with_capacity(32);
    push_hex(&mut text, &digest[..16]);
    text
}

/// At most [`MAX_TEXT`] bytes of a text.
fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_TEXT);
    text.get(..end).unwrap_or_default().to_owned()
}

/// The method that calls a tool.
const CALL: &str = "tools/call";
