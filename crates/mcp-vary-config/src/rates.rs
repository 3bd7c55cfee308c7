//! `rates`: how often clients may call tools, read, change their variant, or present wrong credentials.

use std::collections::BTreeMap;

use mcp_vary_rates::{
    Counted, Limit, LimitError, MAX_COUNT, MAX_LIMITS, MonotonicClock, Per, Rate, RateError,
    SharedClock,
};
use mcp_vary_settings::rates::RateLimits;
use serde_json::json;

use super::reader::{Located, Placed, Reader, meant_or_known};
use super::schema_builder::SchemaBuilder;
use crate::diagnostic::Position;
use crate::key_spec::ValueKind::Scalar;
use crate::key_spec::{KeySpec, choice, count, keys, set};

const EXAMPLE: &str = "{per: principal, rate: 600/min}";

/// The most limits of a file: one place is for [`default_failure_limit`].
const MOST: usize = MAX_LIMITS - 1;

/// The name of the limit that a file with `auth` has unless it has its own.
const DEFAULT_NAME: &str = "authentication-failures";

/// The rate of that limit. Expired tokens of many clients behind one address stay below it; guessing does not.
const DEFAULT_RATE: &str = "120/min";

/// `rates` while the file is read.
#[derive(Default)]
pub(super) struct PartialRates {
    limits: Vec<Limit>,
    /// References to servers that the file must have.
    servers: Vec<Placed<String>>,
}

/// A limit while it is read.
#[derive(Default)]
struct PartialLimit {
    name: Option<String>,
    per: Option<Per>,
    counted: Option<Counted>,
    rate: Option<Rate>,
    burst: Option<u32>,
    tools: Option<String>,
    server: Option<String>,
}

/// Reads the list of limits.
pub(super) fn read(reader: &mut Reader<'_>, field: &Located<'_>, into: &mut PartialRates) {
    let items = reader.items(field, &format!("[{EXAMPLE}]"));
    let items = reader.at_most(MOST, field, items);
    let mut names = BTreeMap::<String, Position>::new();
    for item in items {
        let before = reader.diagnostics.len();
        let mut draft = PartialLimit::default();
        reader.settings(&item, &[SETTINGS], &mut draft, EXAMPLE);
        let fix = "add `rate: COUNT/PERIOD`, such as `rate: 600/min`";
        reader.require(&item, &[("rate", fix)]);
        if let Some(server) = &draft.server {
            let field = item.deepest(&["server"]);
            into.servers.push(field.placed(server.clone()));
        }
        if reader.diagnostics.len() > before {
            continue;
        }
        let Some(limit) = draft.finish(reader, &item) else {
            continue;
        };
        if let Some(first) = names.insert(limit.name().to_owned(), item.node.at) {
            let what = format!("is the name of the limit in line {}", first.line);
            let fix = "give each limit its own name, or none";
            reader.report(&item.deepest(&["name"]), what, fix);
            continue;
        }
        into.limits.push(limit);
    }
}

impl PartialLimit {
    /// The limit; `None` after a mistake, which is reported.
    fn finish(self, reader: &mut Reader<'_>, item: &Located<'_>) -> Option<Limit> {
        let rate = self.rate?;
        let rate = match self.burst {
            None => rate,
            Some(burst) => match rate.with_burst(burst) {
                Ok(rate) => rate,
                Err(error) => {
                    let fix = "write a smaller one, or a higher rate";
                    let what = format!("cannot be used: {error}");
                    reader.report(&item.deepest(&["burst"]), what, fix);
                    return None;
                }
            },
        };
        let name = self.name.as_deref().unwrap_or(&item.path);
        let per = self.per.unwrap_or(Per::Principal);
        let counted = self.counted.unwrap_or(Counted::Calls);
        let limit = Limit::new(name, per, counted, rate)
            .and_then(|limit| match &self.tools {
                Some(tools) => limit.for_tools(tools),
                None => Ok(limit),
            })
            .and_then(|limit| match &self.server {
                Some(server) => limit.for_server(server),
                None => Ok(limit),
            });
        limit.map_err(|error| report(reader, item, &error)).ok()
    }
}

/// Reports why a limit is not possible, at the key that it is about.
fn report(reader: &mut Reader<'_>, item: &Located<'_>, error: &LimitError) {
    match error {
        LimitError::Name => {
            let what = "is not a name that clients can be shown";
            let fix = "write 1 to 64 ASCII letters, digits and ` -_./:[]*`";
            reader.report(&item.deepest(&["name"]), what, fix);
        }
        LimitError::NeverCounts { per, counted } => {
            let what = format!("is `{per}`, which cannot count {counted}");
            let fix = "write `principal` or `address`, or `counts: calls`";
            reader.report(&item.deepest(&["per"]), what, fix);
        }
        LimitError::Restriction { restriction } => {
            let what = "applies to limits that count calls";
            let fix = "leave it out, or write `counts: calls`";
            reader.report(&item.deepest(&[restriction]), what, fix);
        }
        LimitError::Pattern(why) => {
            reader.refuse(&item.deepest(&["tools"]), &format!("the pattern {why}"));
        }
    }
}

impl PartialRates {
    /// Checks the limits against the rest of the file, whose top is `root`.
    ///
    /// If clients are authenticated, wrong credentials are limited by address, unless a limit of the file counts them.
    pub(super) fn finish(
        mut self,
        reader: &mut Reader<'_>,
        root: &Located<'_>,
        has_authentication: bool,
    ) -> RateLimits {
        let servers = root.deepest(&["servers"]).keys();
        for Placed {
            at, path, value, ..
        } in &self.servers
        {
            if !servers.contains(&value.as_str()) {
                let fix = meant_or_known(value, &servers);
                reader.report_at(*at, path, "is not a server", &fix);
            }
        }
        let field = root.deepest(&["rates"]);
        let mut limits = self.limits.iter();
        if has_authentication && !limits.any(|limit| limit.counted() == Counted::AuthFailures) {
            if self.limits.iter().any(|limit| limit.name() == DEFAULT_NAME) {
                let what = format!("has a limit `{DEFAULT_NAME}` that does not count them");
                let fix = "rename it: the limit that belongs to `auth` has this name";
                reader.report(&field, what, fix);
                return RateLimits::default();
            }
            self.limits.extend(default_failure_limit());
        }
        let clock = SharedClock::of(MonotonicClock::start());
        let limits = RateLimits::new(self.limits, clock);
        reader.usable(&field, limits).unwrap_or_default()
    }
}

/// The limit of wrong credentials that a file with `auth` has. A test shows that it exists.
fn default_failure_limit() -> Option<Limit> {
    let rate = DEFAULT_RATE.parse().ok()?;
    Limit::new(DEFAULT_NAME, Per::Address, Counted::AuthFailures, rate).ok()
}

/// The schema of a rate.
pub(super) fn rate_shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    schema.pattern(r"^\s*[0-9]+/(?:s|min|h|day)\s*$")
}

/// Sets a rate.
pub(super) fn read_rate(reader: &mut Reader<'_>, field: &Located<'_>, into: &mut impl From<Rate>) {
    let parsed = |text: &str| {
        text.trim().parse::<Rate>().map_err(|error| match error {
            RateError::Form => {
                "it is not a rate; write `COUNT/PERIOD` with `s`, `min`, `h` or `day`, such as `600/min`".to_owned()
            }
            _ => format!("its count is out of range; write one from 1 to {MAX_COUNT}"),
        })
    };
    reader.parse(field, parsed, into);
}

/// The keys of one limit.
const SETTINGS: &[KeySpec<PartialLimit>] = keys![
    /// what refused clients and `vary status` call the limit; its position without it, as `rates[2]`
    "name" => Scalar(|limit| &mut limit.name),
    /// who has a rate of their own: each `principal` (anonymous clients by address), each API `key`, each `address`;
    /// or, for all clients together, each `tool` or each `server`
    "per" = "principal" => choice!(PER, |limit| &mut limit.per),
    /// what is counted: `calls` (tools, reads, completions, requests about tasks), `variant-changes`, or
    /// `authentication-failures`
    "counts" = "calls" => choice!(COUNTS, |limit| &mut limit.counted),
    /// how often: a number, `/`, and `s`, `min`, `h` or `day`; required
    "rate" => set!(rate_shape, read_rate, |limit| &mut limit.rate),
    /// how many of them may come at once; the number of `rate` without it
    "burst" => count!(1..=MAX_BURST, |limit| &mut limit.burst),
    /// counts only calls of tools whose name in `standard` matches this pattern, such as `search_*`
    "tools" => Scalar(|limit| &mut limit.tools),
    /// counts only what this server answers; its name in `servers`
    "server" => Scalar(|limit| &mut limit.server),
];

const MAX_BURST: u32 = 1_000_000;

const PER: &[(&str, Per)] = &[
    ("principal", Per::Principal),
    ("key", Per::Key),
    ("address", Per::Address),
    ("tool", Per::Tool),
    ("server", Per::Server),
];

const COUNTS: &[(&str, Counted)] = &[
    ("calls", Counted::Calls),
    ("variant-changes", Counted::Switches),
    ("authentication-failures", Counted::AuthFailures),
];

/// The schema of `rates`.
pub(super) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let limit = schema.table("a rate limit", &[SETTINGS]);
    let limit = schema.with_required(limit, &["rate"]);
    let mut limits = schema.list(&limit);
    limits["maxItems"] = json!(MOST);
    limits
}
