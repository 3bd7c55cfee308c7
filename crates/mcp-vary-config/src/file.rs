//! The configuration file as a value.

mod listener;
pub(crate) mod schema;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use mcp_vary::variant::Date;

use self::settings::{OFF, PartialFile, SETTINGS};
use super::access::{self, AccessNames};
use super::audit;
use super::log::LogSettings;
use super::reader::{Located, Reader};
use super::schema_builder::SchemaBuilder;
use super::secret_files::SecretFiles;
use super::server::{LeftOut, ServerAuth};
use super::variables::Variables;
use super::variants::VariantSpans;
use super::{
    admin_readers, clients, experiments, extensions, mcp_json, ranking, require, server, store,
};
use crate::diagnostic::{Diagnostic, Diagnostics, Position};
use crate::document::{self, Node};
use crate::vary_entries::VaryEntries;
use mcp_vary_access::When;
use mcp_vary_base::environment::Environment;
use mcp_vary_catalog::merge::Naming;
use mcp_vary_operator::AdminToken;
use mcp_vary_settings::audit::AuditSettings;
use mcp_vary_settings::config::Config;
use mcp_vary_settings::listener::{HostName, OffLoopbackError, TlsConfig};
use mcp_vary_upstream::UpstreamConfig;
use mcp_vary_view::Candidate;

/// The contents of a configuration file.
///
/// # Examples
///
/// ```
/// use mcp_vary_config::Source;
///
/// let text = r#"
/// servers:
///   git: {command: uvx, args: [mcp-server-git]}
///   search: {url: "https://example.com/mcp", timeout: 20s}
/// "#;
/// let file = Source::new("vary.yaml", text).read(&|_| None)?;
/// assert_eq!(file.servers[1].limits.idle.as_secs(), 20);
/// # Ok::<(), mcp_vary_config::Diagnostics>(())
/// ```
///
/// Disabled servers are left out, and errors in them are ignored:
///
/// ```
/// # use mcp_vary_config::Source;
/// let text = "servers:\n  a: {command: x}\n  b: {command: '${NONE}', disabled: true}\n";
/// let file = Source::new("vary.yaml", text).read(&|_| None)?;
/// assert_eq!((file.servers.len(), file.disabled), (1, vec!["b".to_owned()]));
/// # Ok::<(), mcp_vary_config::Diagnostics>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct File {
    /// Its name in messages.
    pub name: String,
    /// The servers, in the order of the file; at least one.
    pub servers: Vec<UpstreamConfig>,
    /// The names of the disabled servers.
    pub disabled: Vec<String>,
    /// The servers of a client's file whose entries cannot be used.
    pub left_out: Vec<LeftOut>,
    /// How Vary authenticates at servers with `auth`, by their names.
    pub auth: BTreeMap<String, ServerAuth>,
    /// The other settings. Private, because they have no clock and no sealing key before [`Self::into_config`].
    config: Config,
    /// The settings of the program.
    pub program: ProgramSettings,
    /// The positions of `listen`, `admin`, `probes`, `audit.to` and `results`, if the file has them.
    pub addresses_at: BTreeMap<&'static str, Position>,
    /// Notes for the user that are not errors.
    pub notes: Vec<Diagnostic>,
    /// The positions of the settings of variants.
    pub places: VariantSpans,
    declares_variants: bool,
    access_names: AccessNames,
}

/// The settings of the program around the gateway.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ProgramSettings {
    /// The address to listen on: `HOST:PORT`, or a port.
    pub listen: Option<String>,
    /// The address for the operator's endpoints: `HOST:PORT`, or a port, or `off`.
    pub admin: Option<String>,
    /// The token with which the operator may change a running gateway; without it the gateway makes one.
    pub admin_token: Option<AdminToken>,
    /// Whether the operator's page may call tools.
    pub admin_calls: bool,
    /// Whether the operator's page may write variants into the file.
    pub admin_writes: bool,
    /// The address for probes and metrics: `HOST:PORT`, or a port.
    pub probes: Option<String>,
    /// How long clients wait for servers that are starting.
    pub start_wait: Option<Duration>,
    /// The log on standard error.
    pub log: LogSettings,
}

impl File {
    /// A note for each name in `access` that fits none of `items`, what the servers offer: the name or URI for clients, and
    /// the server's own.
    pub fn unmatched_access(&self, items: &[(&str, &str)]) -> Vec<Diagnostic> {
        let servers: Vec<_> = self.servers.iter().map(|server| &*server.name).collect();
        self.access_names.unmatched(items, &servers)
    }

    /// A note for each condition in `results` that fits none of `tools`, what the servers list.
    pub fn unmatched_results(&self, tools: &[Candidate<'_>]) -> Vec<Diagnostic> {
        let given = self.addresses_at.get("results");
        let at = given.copied().unwrap_or(Position::START);
        let rules = self.config.results.0.iter().enumerate();
        let found = rules.flat_map(|(index, rule)| {
            let key = format!("results[{index}].tools");
            rule.tools.diagnostics(&key, tools)
        });
        let notes = found.map(|note| {
            let key = note.key().replace(".include", "");
            Diagnostic::new(at, key, note.problem()).with_fix(note.fix())
        });
        notes.collect()
    }

    /// The address for the operator's endpoints, if the file names one.
    pub fn admin_address(&self) -> Option<&str> {
        self.program.admin.as_deref().filter(|admin| *admin != OFF)
    }

    /// How tools and prompts are named: `naming`.
    pub const fn naming(&self) -> Naming {
        self.config.naming
    }

    /// Whether the file declares variants.
    pub const fn declares_variants(&self) -> bool {
        self.declares_variants
    }

    /// Checks that a gateway with this configuration may listen on `address`.
    ///
    /// # Errors
    ///
    /// As [`Config::check_listen_address`].
    pub fn check_listen_address(&self, address: SocketAddr) -> Result<(), OffLoopbackError> {
        self.config.check_listen_address(address)
    }

    /// Reads the files of `tls`, if the configuration has it.
    ///
    /// # Errors
    ///
    /// As [`TlsConfig::check`].
    pub fn check_tls(&self) -> io::Result<()> {
        let tls = self.config.listener.tls.as_ref();
        tls.map_or(Ok(()), TlsConfig::check)
    }

    /// Checks that the audit log can be opened, as far as that shows without its file, if the configuration has one.
    ///
    /// # Errors
    ///
    /// As [`AuditSettings::check`].
    pub fn check_audit(&self) -> io::Result<()> {
        let audit = self.config.audit.as_ref();
        audit.map_or(Ok(()), AuditSettings::check)
    }

    /// The configuration to start a gateway with.
    #[must_use]
    pub fn into_config(self, outside: Environment) -> Config {
        let reasons = self.left_out.iter().map(|server| {
            let diagnostics: Vec<_> = server.diagnostics.iter().map(ToString::to_string).collect();
            (server.name.clone(), diagnostics.join("; "))
        });
        let left_out = reasons.collect();
        let mut config = self.config.with_environment(outside);
        if let Some((key, previous)) = config.named_keys.split() {
            (config.key, config.previous_keys) = (key, previous.to_vec());
        }
        config.servers = self.servers;
        config.left_out = left_out;
        config.start_wait = self.program.start_wait.unwrap_or(config.start_wait);
        config
    }
}

/// The text of a configuration file, and options for reading it.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    name: &'a str,
    text: &'a str,
    only: &'a [String],
    today: Option<Date>,
    files: Option<&'a SecretFiles>,
    vary_entries: VaryEntries<'a>,
}

impl<'a> Source<'a> {
    /// The file `name` with its text. The extension of the name selects JSON or TOML; other files are YAML.
    #[must_use]
    pub const fn new(name: &'a str, text: &'a str) -> Self {
        Self {
            name,
            text,
            only: &[],
            today: None,
            files: None,
            vary_entries: VaryEntries {
                names: &[],
                port: None,
            },
        }
    }

    /// Reads only these servers, even if they are disabled; all servers if there is no name.
    #[must_use]
    pub const fn with_only(mut self, servers: &'a [String]) -> Self {
        self.only = servers;
        self
    }

    /// Adds notes for removal dates of variants that are past on `today` (SV-1). Without `today`, no date counts as
    /// past.
    #[must_use]
    pub const fn with_today(mut self, today: Date) -> Self {
        self.today = Some(today);
        self
    }

    /// Replaces `${file:PATH}` and `${credential:NAME}` by the contents of files. Without it, they are errors: nothing
    /// but the text is read.
    #[must_use]
    pub const fn with_secret_files(mut self, files: &'a SecretFiles) -> Self {
        self.files = Some(files);
        self
    }

    /// Leaves out the entries of a client's file that lead to Vary itself, with a note, unless it has no other.
    #[must_use]
    pub const fn with_vary_entries(mut self, vary_entries: VaryEntries<'a>) -> Self {
        self.vary_entries = vary_entries;
        self
    }

    /// Reads the file. `variable` returns the value of `${VAR}`.
    ///
    /// A file with `mcpServers`, or with the `inputs` of VS Code, is the file of a client. Only those settings of its
    /// servers that all clients support are read, and its other keys are ignored.
    ///
    /// # Errors
    ///
    /// If the file has errors. The error lists all of them at once.
    pub fn read(&self, variable: &dyn Fn(&str) -> Option<String>) -> Result<File, Diagnostics> {
        let variables = Variables {
            environment: variable,
            files: self.files,
            file: self.name,
        };
        let mut reader = Reader::new(variables, self.only);
        reader.today = self.today;
        reader.is_top_level = is_setting;
        reader.is_of_server = server::is_setting_of_server;
        reader.vary_entries = self.vary_entries;
        let root = document::read(self.name, self.text);
        let common_digest = root.as_ref().ok().map(audit::common_digest);
        let read = match root {
            Ok(root) => match mcp_json::only_importable(self.name, &root) {
                Some(diagnostic) => {
                    reader.diagnostics.push(diagnostic);
                    None
                }
                None => read_root(&mut reader, &root),
            },
            Err(diagnostics) => {
                reader.diagnostics = diagnostics;
                None
            }
        };
        let mut diagnostics = reader.diagnostics;
        diagnostics.sort_by_key(|diagnostic| diagnostic.at);
        match read {
            Some(mut file) if diagnostics.is_empty() => {
                self.name.clone_into(&mut file.name);
                file.config.common_digest = common_digest.map(Into::into);
                file.notes = reader.notes;
                file.notes.sort_by_key(|note| note.at);
                Ok(file)
            }
            _ => Err(Diagnostics {
                file: self.name.to_owned(),
                all: diagnostics,
            }),
        }
    }
}

// Omits the text, which may contain secrets.
mcp_vary_base::debug_by_name!(Source<'_>);

fn read_root(reader: &mut Reader<'_>, root: &Node) -> Option<File> {
    let field = Located {
        path: String::new(),
        node: root,
    };
    let document::Value::Table(entries) = &root.value else {
        reader.report(&field, "the file is not a table of keys", FIRST_LINES);
        return None;
    };
    let mut draft = PartialFile::new();
    if let Some(servers) = mcp_json::servers(entries) {
        let servers = mcp_json::ClientServers {
            root: &field,
            entries,
            servers,
        };
        servers.read(reader, is_setting, &mut draft.servers);
    } else {
        reader.settings(&field, &[SETTINGS], &mut draft, FIRST_LINES);
        draft.addresses_at = find_addresses(&field);
        listener::check(reader, &field, draft.is_behind_proxy);
        // A key that is not known can be what was meant.
        if reader.diagnostics.is_empty() && entries.iter().all(|entry| entry.key != "servers") {
            let what = "the file names no server";
            reader.report_at(Position::START, "", what, FIRST_LINES);
        }
    }
    clients::check(reader, &draft.named, &draft.variants.ids());
    draft.variants.check_servers(reader, &field);
    let hints = draft.variants.hints();
    ranking::check(reader, &field, &draft.config.weights, &hints);
    draft.config.variants = draft.variants.on.unwrap_or(true);
    require::check(reader, &draft.required, &draft.config);
    draft.config.extension_servers = extensions::finish(reader, &draft.extensions, &draft.servers);
    store::check(reader, &field, &draft.config);
    experiments::check(reader, &field, &draft.config.experiments);
    let access = std::mem::take(&mut draft.access);
    let access_names = access.names();
    let naming = draft.config.naming;
    draft.config.access = access.finish(reader, &field, naming, &draft.variants, &draft.servers);
    let names = claim_names(&draft.config, &draft.servers);
    draft.authentication.read_claims(reader, &names);
    let public_url = draft.public_url.as_ref();
    let listener = &mut draft.config.listener;
    let certificates = listener.tls.as_ref().and_then(|tls| tls.client_ca.as_ref());
    let accepts_tokens = draft.authentication.has_issuers();
    let is_mutual = certificates.is_some();
    let authentication = &mut draft.authentication;
    draft.config.authentication = authentication.finish(reader, &field, public_url, is_mutual);
    let public_host = public_url.and_then(HostName::of_public_url);
    listener.hosts.splice(..0, public_host);
    listener.public_url = public_url.cloned();
    ranking::model::check(reader, &field, &draft.config);
    admin_readers::check(reader, &field, draft.authentication.is_given());
    let rates = std::mem::take(&mut draft.rates);
    draft.config.rates = rates.finish(reader, &field, draft.config.authentication.is_some());
    access::check_clients(reader, &field, &draft.config);
    let has_principals = draft.authentication.is_given() || draft.config.stdio_principal.is_some();
    draft
        .servers
        .check_claims(reader, has_principals, accepts_tokens);
    Some(finish(draft, access_names))
}

/// The positions of keys whose values may only turn out to be unusable when the gateway starts.
fn find_addresses(root: &Located<'_>) -> BTreeMap<&'static str, Position> {
    let paths = ["listen", "admin", "probes", "audit.to", "results"];
    let found = paths.map(|path| {
        let keys: Vec<_> = path.split('.').collect();
        (path, root.deepest(&keys))
    });
    let present = found
        .into_iter()
        .filter(|(_, field)| !field.path.is_empty());
    present.map(|(path, field)| (path, field.node.at)).collect()
}

/// The claims that rules and headers of servers use.
fn claim_names<'a>(config: &'a Config, servers: &'a server::Servers) -> BTreeSet<&'a str> {
    let rules = config.access.iter();
    let in_access = rules.flat_map(|access| access.policy.claim_names());
    let readers = config.admin_readers.iter().flat_map(When::claim_names);
    in_access
        .chain(readers)
        .chain(servers.claim_names())
        .collect()
}

/// The file, once its settings are checked.
fn finish(draft: PartialFile, access_names: AccessNames) -> File {
    let mut config = draft.config;
    let declared = draft.variants.variant_set;
    let declares_variants = declared.is_some();
    config.variant_set = declared.unwrap_or(config.variant_set);
    config.required = draft
        .required
        .into_iter()
        .map(|required| required.value)
        .collect();
    File {
        name: String::new(),
        servers: draft.servers.enabled,
        disabled: draft.servers.disabled,
        left_out: draft.servers.left_out,
        auth: draft.servers.auth,
        program: draft.program,
        addresses_at: draft.addresses_at,
        notes: Vec::new(),
        places: draft.variants.places,
        declares_variants,
        access_names,
        config,
    }
}

/// The schema of a file.
pub(super) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let mut root = schema.table("the file", &[SETTINGS]);
    root["required"] = serde_json::json!(["servers"]);
    root
}

/// Whether `key` is a top-level setting of Vary.
pub(super) fn is_setting(key: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.key == key)
}

/// The fix for a file without usable settings.
const FIRST_LINES: &str = "begin with `servers: {name: {command: ...}}`";
