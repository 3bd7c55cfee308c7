//! An entry of `servers`, before it becomes the configuration of a server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderName, Uri};
use mcp_vary_http_client::client_certificate::ClientCertificate;
use mcp_vary_upstream::command_line::CommandLine;
use mcp_vary_upstream::header_command::HeaderCommand;
use mcp_vary_upstream::{Isolation, Processes, Target, UpstreamConfig};

use super::auth::{AuthMethod, PartialAuth, ServerAuth};
use super::headers::PartialHeader;
use crate::document;
use crate::reader::{Located, Reader, quoted};

mcp_vary_base::defaults! {
    /// An entry while it is read.
    pub(super) struct PartialServer {
        /// An empty entry.
        pub(super) fn new(name: &str);
        pub(super) disabled: bool = false,
        /// The keys that the entry has, even with invalid values.
        pub(super) given: BTreeSet<String> = BTreeSet::new(),
        pub(super) program: Option<String> = None,
        pub(super) args: Vec<String> = Vec::new(),
        pub(super) env: BTreeMap<String, String> = BTreeMap::new(),
        pub(super) cwd: Option<PathBuf> = None,
        pub(super) kind: Option<Kind> = None,
        pub(super) url: Option<Uri> = None,
        pub(super) headers: Vec<(HeaderName, PartialHeader)> = Vec::new(),
        pub(super) certificate: Option<PathBuf> = None,
        pub(super) key: Option<PathBuf> = None,
        pub(super) auth: Option<PartialAuth> = None,
        pub(super) trusts_annotations: bool = false,
        /// The settings that need no check against other keys. The target is not the one of the entry.
        pub(super) config: UpstreamConfig = UpstreamConfig::new(name, Target::command("", [])),
    }
}

/// The values of `type`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Stdio,
    Http,
    Sse,
}

impl PartialServer {
    /// Builds the server, unless its program or address is invalid.
    pub(super) fn finish(
        mut self,
        reader: &mut Reader<'_>,
        field: &Located<'_>,
        name: String,
    ) -> Option<(UpstreamConfig, Option<ServerAuth>)> {
        self.check_target(reader, field);
        self.check_certificate(reader, field);
        self.check_authorization(reader, field);
        let auth = self.auth.take();
        let mut config = self.config;
        config.name = name;
        if let Some(program) = self.program.take() {
            let line = CommandLine::new(&written_command(field));
            config.command_line = Some(line.with_variables(written_variables(field)));
            config.target = Target::Command {
                program,
                args: self.args,
                env: self.env,
                cwd: self.cwd,
            };
        } else {
            config.target = Target::http(self.url?);
            config.is_sse = self.kind == Some(Kind::Sse);
            let pair = self.certificate.zip(self.key);
            config.client_certificate =
                pair.map(|(certificate, key)| ClientCertificate { certificate, key });
            let headers = self.headers.into_iter();
            config = headers.fold(config, |config, (name, header)| match header {
                PartialHeader::Configured(source) => config.with_header(name, source),
                PartialHeader::Command(settings) => {
                    let source = HeaderCommand::new(&config.name, settings);
                    config.with_credential(name, Arc::new(source))
                }
            });
        }
        check_processes(reader, field, &config);
        let auth_field = field.deepest(&["auth"]);
        let server_auth = auth.and_then(|auth| auth.finish(reader, &auth_field, &config));
        let method = server_auth.as_ref().map(|auth| &auth.method);
        if matches!(method, Some(AuthMethod::TokenExchange(_))) {
            check_exchange_isolation(reader, field, config.isolation);
        } else if config.needs_claims() {
            check_isolation(reader, field, config.isolation);
        }
        Some((config, server_auth))
    }

    /// Reports a fixed `Authorization` beside `auth`.
    fn check_authorization(&self, reader: &mut Reader<'_>, field: &Located<'_>) {
        let is_fixed = self.headers.iter().any(|(name, _)| *name == AUTHORIZATION);
        if is_fixed && self.given.contains("auth") {
            let what = "has `auth`, and `Authorization` in `headers`";
            reader.report(field, what, "keep one of them");
        }
    }

    fn check_target(&self, reader: &mut Reader<'_>, field: &Located<'_>) {
        let (right, beside, others) =
            match (self.given.contains("command"), self.given.contains("url")) {
                (true, true) => {
                    return reader.report(field, "has `command` and `url`", "keep one of them");
                }
                (false, false) => {
                    // If the entry is not a table, or if the key is misspelled, that was already reported.
                    let is_table = matches!(field.node.value, document::Value::Table(_));
                    if let Some(misspelled) = reader.take_note(field, &["command", "url"]) {
                        return reader.diagnostics.push(misspelled);
                    }
                    if is_table && !reader.was_meant(field, &["command", "url"]) {
                        let what = "has neither `command` nor `url`";
                        reader.report(field, what, "write one of them");
                    }
                    return;
                }
                (true, false) => (
                    Kind::Stdio,
                    "command",
                    &["headers", "ca", "certificate", "key", "auth"][..],
                ),
                (false, true) => (Kind::Http, "url", &["args", "env", "cwd"][..]),
            };
        let is_right = |kind: Kind| kind == right || (kind, right) == (Kind::Sse, Kind::Http);
        if !self.kind.is_none_or(is_right) {
            let right = if right == Kind::Stdio {
                "stdio"
            } else {
                "http"
            };
            let what = format!("has a `type` that does not go with `{beside}`");
            reader.report(field, what, &format!("write `{right}`, or leave it out"));
        }
        let unused: Vec<&str> = others
            .iter()
            .filter(|key| self.given.contains(**key) && !self.is_empty(key))
            .copied()
            .collect();
        if !unused.is_empty() && !reader.foreign {
            let what = format!("has {}, of no use beside `{beside}`", quoted(&unused));
            reader.report(field, what, "leave it out");
        }
    }

    /// Reports a client certificate without its key, or without TLS.
    fn check_certificate(&self, reader: &mut Reader<'_>, field: &Located<'_>) {
        let has = |key: &str| self.given.contains(key);
        for (one, other) in [("certificate", "key"), ("key", "certificate")] {
            if has(one) && !has(other) {
                let what = format!("has `{one}` without `{other}`");
                let fix = format!("add `{other}: ...`, the path of a file in PEM");
                return reader.report(field, what, &fix);
            }
        }
        let is_plain = |url: &Uri| url.scheme_str() == Some("http");
        if has("certificate") && self.url.as_ref().is_some_and(is_plain) {
            let what = "has a client certificate, and a `url` without TLS";
            let fix = "write `https://`, or remove `certificate` and `key`";
            reader.report(field, what, fix);
        }
    }

    /// Whether the value of `key` is empty. Some clients write all keys, even those without a value.
    fn is_empty(&self, key: &str) -> bool {
        match key {
            "args" => self.args.is_empty(),
            "env" => self.env.is_empty(),
            "headers" => self.headers.is_empty(),
            _ => false,
        }
    }
}

/// The program and its arguments, with variables as the file has them.
fn written_command(field: &Located<'_>) -> Vec<String> {
    let command = field.deepest(&["command"]).written().to_owned();
    let args = field.deepest(&["args"]).node.items().iter();
    let texts = args.map(|item| item.written().to_owned());
    std::iter::once(command).chain(texts).collect()
}

/// The variables that its environment gets, as the file has them.
fn written_variables<'a>(field: &'a Located<'_>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let members = field.node.entries().iter();
    let env = members.filter(|entry| entry.key == "env");
    let variables = env.flat_map(|entry| entry.node.entries());
    variables.map(|entry| (&*entry.key, entry.node.written()))
}

/// Reports another isolation than by principal: a session of one user at the server must not be another's.
fn check_exchange_isolation(reader: &mut Reader<'_>, field: &Located<'_>, isolation: Isolation) {
    let written = match isolation {
        Isolation::Automatic | Isolation::Principal => return,
        Isolation::Shared => "shared",
        Isolation::Session => "session",
    };
    let what = format!(
        "is `{written}`, but with `token-exchange` connections and sessions at the server belong to one user"
    );
    let fix = "write `principal`, or leave it out";
    reader.report(&field.deepest(&["isolation"]), what, fix);
}

/// Reports `processes: one` where it has no effect, or where users must not share a process.
fn check_processes(reader: &mut Reader<'_>, field: &Located<'_>, config: &UpstreamConfig) {
    let (what, fix) = match (&config.target, config.isolation) {
        _ if config.processes == Processes::Several => return,
        (Target::Http { .. }, _) => (
            "is for programs, and the server has a `url`",
            "leave it out",
        ),
        (_, Isolation::Principal | Isolation::Session) => {
            let what =
                "is `one`, but with this `isolation` users or sessions have processes of their own";
            (what, "keep one of them")
        }
        _ => return,
    };
    reader.report(&field.deepest(&["processes"]), what, fix);
}

/// A server whose headers have claims has a connection for each user.
fn check_isolation(reader: &mut Reader<'_>, field: &Located<'_>, isolation: Isolation) {
    if isolation == Isolation::Shared {
        let what =
            "is `shared`, but `headers` have claims, so that each user has its own connection";
        let fix = "write `principal`, or leave it out";
        reader.report(&field.deepest(&["isolation"]), what, fix);
    }
}
