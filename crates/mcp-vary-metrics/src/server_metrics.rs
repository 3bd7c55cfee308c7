//! The series of one server and of its tools.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use crate::closed_list::{CODES, Code, METHODS, TOOLS_CALL};
use crate::directory::{Directory, Listed, Owner};
use crate::exposition::{Labels, Value};
use crate::histogram::{Histograms, OPERATION};
use crate::request_labels::RequestLabels;

/// The series of one server.
#[derive(Debug)]
pub struct ServerMetrics {
    /// Requests that call no tool, by method and outcome.
    operations: Histograms,
    /// The calls of each tool, by outcome.
    tools: Directory<Histograms>,
}

impl Owner for ServerMetrics {
    fn total(&self) -> u64 {
        self.operations.total()
    }
}

impl ServerMetrics {
    /// The series of a server, with `room` for tools of all servers.
    pub(crate) fn new(room: Arc<AtomicUsize>) -> Self {
        Self {
            operations: Histograms::new(OPERATION, METHODS.len() * CODES.len()),
            tools: Directory::new(room, || Histograms::new(OPERATION, CODES.len())),
        }
    }

    /// A request is about to be sent to the server: a call of `tool`, by the server's name of it, or another method.
    #[must_use]
    pub fn begin(self: &Arc<Self>, labels: RequestLabels, tool: Option<&str>) -> ClientOperation {
        ClientOperation(match tool {
            Some(tool) => Target::Tool(self.tools.get(tool)),
            None => Target::Method(Arc::clone(self), labels.method),
        })
    }

    /// Removes the series of tools that are gone.
    pub(crate) fn retire_tools(&self, now: u64, server: &str, listed: &Listed) {
        self.tools.retire(now, |tool| listed.has_tool(server, tool));
    }

    /// How many tools have series of their own.
    pub(crate) fn tool_count(&self) -> usize {
        self.tools.len()
    }

    /// Calls of tools by outcome.
    pub(crate) fn tool_calls(&self, server: &str) -> Vec<(Labels, Value)> {
        let tools = self.tools.all();
        let series = tools.iter().flat_map(|(name, tool)| {
            let used = tool.counts();
            used.map(move |(code, value)| {
                let labels = vec![
                    ("server", server.to_owned()),
                    ("tool", name.to_string()),
                    ("code", CODES.value(code).to_owned()),
                ];
                (labels, value)
            })
        });
        series.collect()
    }

    /// The durations of requests, with the labels of the semantic conventions.
    pub(crate) fn durations(&self, server: &str) -> Vec<(Labels, Value)> {
        let tools = self.tools.all();
        let of_tools = tools.iter().flat_map(|(name, tool)| {
            let used = tool.used();
            used.map(move |(code, value)| {
                let mut of_tool = labels(server, TOOLS_CALL, code);
                of_tool.push(("gen_ai_tool_name", name.to_string()));
                (of_tool, value)
            })
        });
        let others = self.operations.used().map(|(position, value)| {
            let method = position / CODES.len();
            let code = position % CODES.len();
            (labels(server, METHODS.value(method), code), value)
        });
        of_tools.chain(others).collect()
    }
}

fn labels(server: &str, method: &str, code: usize) -> Labels {
    let mut labels = vec![
        ("mcp_method_name", method.to_owned()),
        ("server", server.to_owned()),
    ];
    let error_type = Code::error_type(code);
    if !error_type.is_empty() {
        labels.push(("error_type", error_type.to_owned()));
    }
    labels
}

/// A request that a server works on.
#[derive(Debug)]
pub struct ClientOperation(Target);

/// The series of a request.
#[derive(Debug)]
enum Target {
    Tool(Arc<Histograms>),
    /// The position of its method.
    Method(Arc<ServerMetrics>, usize),
}

impl ClientOperation {
    /// The request has ended after this time.
    pub fn end(self, code: Code, duration: Duration) {
        match self.0 {
            Target::Tool(tool) => tool.observe(code.position(), duration),
            Target::Method(server, method) => {
                let position = method * CODES.len() + code.position();
                server.operations.observe(position, duration);
            }
        }
    }
}
