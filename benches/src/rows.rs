//! The rows of the measurement.

mod many;
pub(crate) mod two_builds;

use std::sync::LazyLock;

use clap::ValueEnum as _;
use serde::Deserialize;
use serde_json::Value;

use crate::load::{Arguments, Era, Form, Method};
use crate::sections::Section;
use crate::subject::Subject;
use crate::upstream::{Kind, Transport};
use crate::upstream_spec::UpstreamSpec;

pub(crate) use many::Dimension;

/// One kind of request, sent to several programs in turn.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) method: Method,
    pub(crate) era: Era,
    pub(crate) behind: UpstreamSpec,
    pub(crate) arguments: Arguments,
    pub(crate) connections: usize,
    /// The number of sessions that were opened before and whose clients have disconnected.
    pub(crate) sessions: usize,
    /// The first is the limit.
    pub(crate) subjects: Vec<Subject>,
    pub(crate) bar: Option<Bar>,
    /// The form of results, if the row is about it.
    pub(crate) form: Option<&'static ResultForm>,
    /// The minimum number of rounds, if the difference to the limit is reported instead of the ratio.
    pub(crate) pairs: usize,
    /// What there is much of, and how much, if the row is one of a series.
    pub(crate) many: Option<(Dimension, usize)>,
}

/// The client of a result, and the form of the result.
#[derive(Debug, Deserialize)]
pub(crate) struct ResultForm {
    pub(crate) name: &'static str,
    pub(crate) tags: Vec<&'static str>,
    pub(crate) form: Form,
    /// The operator's rules for results.
    rules: Option<Value>,
    bar: Option<Bar>,
    /// The sizes of the rows, in kilobytes.
    sizes: Vec<usize>,
}

/// The allowed CPU cost of a request, relative to the limit.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Bar {
    pub(crate) most: f64,
    pub(crate) goal: f64,
}

const fn bar(most: f64, goal: f64) -> Bar {
    Bar { most, goal }
}

const CALL: Bar = bar(1.6, 1.25);
const LIST: Bar = bar(1.6, 1.3);

const VARIANTS: Bar = bar(1.1, 1.0);

const WORKERS: Bar = bar(1.1, 1.0);

/// The number of tools of a server in rows about something else.
const TOOLS: usize = 10;

/// The number of sessions without a client, in the rows about these.
pub(crate) const SESSIONS: usize = 10_000;

/// All rows.
pub(crate) fn all() -> Vec<Row> {
    let mut rows = Vec::new();
    rows.extend(calls());
    rows.extend(lists());
    rows.extend(shapes());
    rows.extend(asks());
    rows.extend(growth());
    rows.extend(variants());
    rows.extend(form_rows());
    rows.extend(library());
    rows.extend(embedded());
    rows.extend(sections());
    rows.extend(many::rows());
    rows.extend(workers());
    rows
}

fn calls() -> Vec<Row> {
    let mut rows = Vec::new();
    for transport in [Transport::Http, Transport::Stdio] {
        for era in [Era::Legacy, Era::Modern] {
            for connections in [16, 1] {
                let row = Row::call(era, transport, kind_of(era, transport));
                rows.push(row.with_connections(connections));
            }
        }
    }
    let across = [(Era::Legacy, Kind::Modern), (Era::Modern, Kind::Sessions)];
    rows.extend(across.map(|(era, kind)| Row::call(era, Transport::Http, kind)));
    rows.push(Row::call(Era::Legacy, Transport::Http, Kind::Legacy));
    rows
}

fn lists() -> Vec<Row> {
    let mut rows = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        for connections in [16, 1] {
            rows.push(Row::list(era, Transport::Http).with_connections(connections));
        }
        rows.push(Row::list(era, Transport::Stdio));
    }
    // The peer supports only legacy servers.
    let across = Row::call(Era::Modern, Transport::Http, Kind::Sessions);
    rows.push(across.into_list());
    rows
}

/// Requests with large or late answers, or with many notifications.
fn shapes() -> Vec<Row> {
    let mut rows = Vec::new();
    let late = Arguments {
        delay: 100,
        ..Arguments::default()
    };
    for (transport, kind) in [
        (Transport::Http, Kind::Sessions),
        (Transport::Http, Kind::Legacy),
        (Transport::Stdio, Kind::Legacy),
    ] {
        rows.push(Row::call(Era::Legacy, transport, kind).with("100 ms", late));
    }
    for era in [Era::Legacy, Era::Modern] {
        let kind = kind_of(era, Transport::Http);
        let call = || Row::call(era, Transport::Http, kind);
        let with = |padding, size, steps| Arguments {
            padding,
            size,
            steps,
            ..Arguments::default()
        };
        rows.push(call().with("25 KB argument", with(25 << 10, 0, 0)));
        rows.push(call().with("100 KB result", with(0, 100 << 10, 0)));
        let streamed = call().with("streamed", with(0, 0, 3));
        rows.push(streamed.without(Subject::Rmcp));
    }
    rows
}

/// Calls with a server request before the answer: in a second round trip, or on the stream of the call.
fn asks() -> Vec<Row> {
    let ask = Arguments {
        ask: true,
        ..Arguments::default()
    };
    let rows = [Era::Legacy, Era::Modern].map(|era| {
        let row = Row::call(era, Transport::Http, kind_of(era, Transport::Http));
        let name = match era {
            Era::Legacy => "asked on its stream",
            Era::Modern => "input required",
        };
        row.with(name, ask).without_peers()
    });
    rows.into()
}

/// Rows with growing sizes, and growing numbers of tools, sessions, variants or servers.
fn growth() -> Vec<Row> {
    let mut rows = Vec::new();
    let call = || {
        let row = Row::call(Era::Legacy, Transport::Http, Kind::Sessions);
        row.without_peers()
    };
    for kilobytes in [1, 10, 100] {
        let arguments = Arguments {
            padding: kilobytes << 10,
            size: kilobytes << 10,
            ..Arguments::default()
        };
        rows.push(call().with(&format!("{kilobytes} KB both ways"), arguments));
    }
    for tools in [1, 50, 200] {
        rows.push(call().with_tools(tools));
        let list = Row::list(Era::Legacy, Transport::Http).with_tools(tools);
        rows.push(list.without_peers());
    }
    rows.push(call().with_sessions(SESSIONS));
    for era in [Era::Legacy, Era::Modern] {
        let kind = kind_of(era, Transport::Http);
        for row in [
            Row::call(era, Transport::Http, kind),
            Row::list(era, Transport::Http),
        ] {
            rows.push(row.without_peers().with_variants(20));
        }
    }
    for row in [
        Row::call(Era::Legacy, Transport::Http, Kind::Sessions),
        Row::list(Era::Legacy, Transport::Http),
    ] {
        let mut row = row.without(Subject::Rmcp);
        row.behind.tools = 40;
        rows.push(row.with_servers(5));
    }
    rows
}

/// Many variants of many tools of several servers, compared with one.
fn variants() -> Vec<Row> {
    let mut rows = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        let kind = kind_of(era, Transport::Http);
        let call = Row::call(era, Transport::Http, kind);
        for mut row in [call, Row::list(era, Transport::Http)] {
            row.behind.tools = 40;
            row = row.with_servers(5);
            row.name = format!("{}, {ALIKE} variants beside 1", row.name);
            row.behind.alike = ALIKE;
            row.subjects = vec![Subject::Alone, Subject::Vary];
            row.bar = Some(VARIANTS);
            rows.push(row);
        }
    }
    rows
}

/// Two worker threads, compared with one.
fn workers() -> Vec<Row> {
    let mut rows = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        let call = Row::call(era, Transport::Http, kind_of(era, Transport::Http));
        for mut row in [call, Row::list(era, Transport::Http)] {
            row.name = format!("{}, two workers", row.name);
            row.behind.workers = 2;
            row.subjects = vec![Subject::OneWorker, Subject::OneOfTwo, Subject::Vary];
            row.bar = Some(WORKERS);
            rows.push(row);
        }
    }
    rows
}

/// The row about lists that change.
pub(crate) const CHANGES: &str = "one server's list of 40 tools changes, 200 tools of 5 servers";

/// The row about requests for another replica.
pub(crate) const FORWARDED: &str = "a call through another replica, with a store";

/// The row about the memory of sessions.
pub(crate) const MEMORY: &str = "memory of sessions";

/// The forms of results. The bars are for a result of one kilobyte.
pub(crate) static FORMS: LazyLock<Vec<ResultForm>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("rows/forms.json")).expect("the file is a list of forms")
});

/// Results of various sizes, for clients that declare features and clients that declare none.
fn form_rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for form in FORMS.iter() {
        for kilobytes in &form.sizes {
            rows.push(Row::in_form(Era::Legacy, form, *kilobytes));
        }
        rows.push(Row::in_form(Era::Modern, form, 1));
    }
    rows
}

/// The number of variants that are compared with one.
pub(crate) const ALIKE: usize = 20;

/// The overhead of the library over rmcp.
fn library() -> Vec<Row> {
    let mut rows = Vec::new();
    for method in [Method::Call, Method::List] {
        for era in [Era::Legacy, Era::Modern] {
            let mut row = Row::call(era, Transport::Http, kind_of(era, Transport::Http));
            row.name = format!("library: {}, {} client", method.noun(), named(era));
            row.method = method;
            row.behind.servers = 0;
            row.subjects = vec![Subject::Bare, Subject::Negotiating, Subject::Variants];
            row.bar = None;
            row.pairs = PAIRS;
            rows.push(row);
        }
    }
    rows
}

/// Calls of a handler on a pipe by the gateway in its process, beside those by rmcp's own server.
fn embedded() -> impl Iterator<Item = Row> {
    [Era::Legacy, Era::Modern].into_iter().map(|era| {
        let mut row = Row::call(era, Transport::Http, kind_of(era, Transport::Http));
        row.name = format!("embedded: call, {} client", named(era));
        row.behind.servers = 0;
        row.subjects = vec![Subject::Bare, Subject::Embedded];
        row.bar = None;
        row.pairs = PAIRS;
        row
    })
}

/// Calls with a section of the configuration, and without it.
fn sections() -> impl Iterator<Item = Row> {
    let eras = [Era::Legacy, Era::Modern].into_iter();
    let all = Section::value_variants();
    let each = eras.flat_map(move |era| all.iter().map(move |section| (era, *section)));
    each.map(|(era, section)| {
        let mut row = Row::call(era, Transport::Http, kind_of(era, Transport::Http));
        row.name = row
            .name
            .replacen("call", &format!("call {}", section.name()), 1);
        row.behind.section = Some(section);
        row.subjects = vec![Subject::Without, Subject::Vary];
        row.bar = None;
        row.pairs = PAIRS;
        row
    })
}

/// The minimum number of rounds for a confidence interval.
const PAIRS: usize = 10;

/// The usual kind of server for clients of `era`.
const fn kind_of(era: Era, transport: Transport) -> Kind {
    match (era, transport) {
        (Era::Legacy, Transport::Http) => Kind::Sessions,
        (Era::Legacy, Transport::Stdio) => Kind::Legacy,
        (Era::Modern, _) => Kind::Modern,
    }
}

impl Row {
    /// What the gateway may not be slower than.
    pub(crate) fn before(&self) -> Subject {
        match self.behind.section {
            Some(Section::Page) => Subject::Without,
            _ => Subject::Before,
        }
    }

    fn call(era: Era, transport: Transport, kind: Kind) -> Self {
        Self {
            name: format!("call, {} client, {}", named(era), behind(transport, kind)),
            method: Method::Call,
            era,
            behind: UpstreamSpec {
                transport,
                kind,
                tools: TOOLS,
                ..UpstreamSpec::ONE
            },
            arguments: Arguments::default(),
            connections: 16,
            sessions: 0,
            subjects: vec![
                Subject::Forward,
                Subject::Vary,
                Subject::Rmcp,
                Subject::McpProxy,
                match transport {
                    Transport::Http => Subject::FastMcp,
                    Transport::Stdio => Subject::Supergateway,
                },
            ],
            bar: (transport == Transport::Http).then_some(CALL),
            form: None,
            pairs: 0,
            many: None,
        }
    }

    fn in_form(era: Era, sent: &'static ResultForm, kilobytes: usize) -> Self {
        let mut row = Self::call(era, Transport::Http, kind_of(era, Transport::Http));
        row.name = format!("{}, {kilobytes} KB, {} client", sent.name, named(era));
        row.arguments.data = kilobytes << 10;
        // Sixteen concurrent answers of a megabyte would measure the machine.
        row.connections = if kilobytes < 1000 { 16 } else { 2 };
        row.behind.rules = sent.rules.as_ref();
        row.subjects = vec![Subject::Unshaped, Subject::Vary];
        row.bar = sent.bar.filter(|_| kilobytes == 1);
        row.form = Some(sent);
        row
    }

    fn list(era: Era, transport: Transport) -> Self {
        Self::call(era, transport, kind_of(era, transport)).into_list()
    }

    fn into_list(mut self) -> Self {
        self.name = self.name.replacen("call", "list", 1);
        self.method = Method::List;
        self.subjects[0] = Subject::Fixed;
        self.bar = Some(LIST);
        self
    }

    fn with(mut self, name: &str, arguments: Arguments) -> Self {
        self.name = format!("{}, {name}", self.name);
        self.arguments = arguments;
        // The bars apply only to an ordinary call.
        self.bar = None;
        self
    }

    fn with_connections(mut self, connections: usize) -> Self {
        if connections == 1 {
            self.name.push_str(", 1 connection");
        }
        self.connections = connections;
        self
    }

    fn with_tools(mut self, tools: usize) -> Self {
        let plural = if tools == 1 { "" } else { "s" };
        self.name = format!("{}, {tools} tool{plural}", self.name);
        self.behind.tools = tools;
        self
    }

    fn with_servers(mut self, servers: usize) -> Self {
        let tools = servers * self.behind.tools;
        self.name = format!("{}, {tools} tools of {servers} servers", self.name);
        self.behind.servers = servers;
        self
    }

    fn with_variants(mut self, variants: usize) -> Self {
        self.name = format!("{}, {variants} variants", self.name);
        self.behind.variants = variants;
        self
    }

    fn with_sessions(mut self, sessions: usize) -> Self {
        self.name = format!("{}, {sessions} sessions", self.name);
        self.sessions = sessions;
        self
    }

    fn without_peers(mut self) -> Self {
        self.subjects.retain(|subject| !subject.is_peer());
        self
    }

    fn without(mut self, subject: Subject) -> Self {
        self.subjects.retain(|other| *other != subject);
        self
    }

    /// The server for measuring the limit of a call: one that its client can talk to without a proxy.
    pub(crate) fn behind_limit(&self) -> UpstreamSpec {
        UpstreamSpec {
            kind: match (self.era, self.behind.kind) {
                (Era::Modern, _) => Kind::Modern,
                (Era::Legacy, Kind::Legacy) => Kind::Legacy,
                (Era::Legacy, _) => Kind::Sessions,
            },
            tools: self.behind.tools,
            servers: self.behind.servers.min(1),
            ..UpstreamSpec::ONE
        }
    }
}

const fn named(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}

fn behind(transport: Transport, kind: Kind) -> String {
    let transport = match transport {
        Transport::Http => "HTTP",
        Transport::Stdio => "stdio",
    };
    let kind = match kind {
        Kind::Sessions => " with sessions",
        Kind::Legacy if transport == "HTTP" => " without sessions",
        Kind::Legacy => " legacy",
        Kind::Modern => " modern",
    };
    format!("{transport} upstream{kind}")
}
