//! The configuration file as a value.

mod negotiation;
pub(crate) mod schema;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use mcp_vary::extension::ExtensionId;
use mcp_vary::rank::{DEFAULT_ADVERTISED, Weights};
use mcp_vary::variant::{Date, VariantId};

use super::keys;
use super::ranking::{self, Weighted};
use super::reader::{Located, MOST, Reader};
use super::require::{self, Required};
use super::schema::Schema;
use super::server::{self, LeftOut, Servers};
use super::variants::{self, Declared, VariantSpans};
use super::{clients, limits, mcp_json};
use crate::diagnostic::{Diagnostic, Diagnostics, Position};
use crate::document::{self, Node};
use crate::key_spec::{KeySpec, ValueKind};
use crate::rules::prompts;
use crate::rules::resources;
use crate::rules::results;
use mcp_vary_base::environment::Environment;
use mcp_vary_catalog::merge::Naming;
use mcp_vary_catalog::selection::rules::JsonContent;
use mcp_vary_catalog::selection::variant_selection::SelectionConfig;
use mcp_vary_catalog::variant_config::{self, VariantSet};
use mcp_vary_gateway::settings::config::Config;
use mcp_vary_gateway::settings::keys::Keys;
use mcp_vary_gateway::settings::limits::Limits;
use mcp_vary_results::rules::PromptRules;
use mcp_vary_results::rules::ResourceRules;
use mcp_vary_results::rules::ResultRules;
use mcp_vary_upstream::UpstreamConfig;

/// What a configuration file says.
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
/// A server that is disabled is left out with whatever is wrong in it:
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
    /// The servers, in the order of the file; at least one.
    pub servers: Vec<UpstreamConfig>,
    /// The names of the servers that are switched off.
    pub disabled: Vec<String>,
    /// The servers of a client's file whose entries cannot be used.
    pub left_out: Vec<LeftOut>,
    /// How names tell which server they belong to.
    pub naming: Naming,
    /// Where to serve: `HOST:PORT`, or a port.
    pub listen: Option<String>,
    /// Where to answer the operator: `HOST:PORT`, or a port.
    pub admin: Option<String>,
    /// Where the file says `listen` and `admin`, if it does.
    pub addresses_at: BTreeMap<&'static str, Position>,
    /// Whether server variants are offered.
    pub variants: bool,
    /// The variants, where the file declares any.
    faces: Option<Arc<VariantSet>>,
    /// Which variant clients get that name none.
    pub choosing: SelectionConfig,
    /// What counts how much when variants are ranked by a client's hints.
    pub weights: Weights,
    /// How many variants are advertised.
    pub advertised: usize,
    /// Whether content is negotiated.
    pub negotiation: bool,
    /// Where JSON goes for agents that ask for it.
    pub json_content: JsonContent,
    /// Whether a text that is one JSON document becomes a structured value.
    pub lift_json_text: bool,
    /// Extensions without which no client is served.
    pub required: Vec<ExtensionId>,
    /// Whether there is a tool that reads what was left out of results.
    pub read_result: bool,
    /// The rules for results of tools.
    pub results: ResultRules,
    /// The rules for resources.
    pub resources: ResourceRules,
    /// The rules for prompts.
    pub prompts: PromptRules,
    /// How long clients wait for servers that are starting.
    pub start_wait: Option<Duration>,
    /// Items on one page of a list.
    pub page_size: Option<NonZeroUsize>,
    /// How long a session lasts after `initialize`.
    pub session_lifetime: Option<Duration>,
    /// What seals sessions and cursors.
    keys: Keys,
    /// What clients may take up.
    pub limits: Limits,
    /// What a person should know although nothing is wrong.
    pub notes: Vec<Diagnostic>,
    /// Where the file says what of its variants.
    pub places: VariantSpans,
}

impl File {
    /// Whether the file declares variants.
    #[must_use]
    pub fn declares_variants(&self) -> bool {
        self.faces.is_some()
    }

    /// What a gateway is started with.
    #[must_use]
    pub fn into_config(self, outside: Environment) -> Config {
        let left_out = self.left_out.iter().map(|server| {
            let diagnostics: Vec<_> = server.diagnostics.iter().map(ToString::to_string).collect();
            (server.name.clone(), diagnostics.join("; "))
        });
        let left_out = left_out.collect();
        let mut config = Config::with_servers(self.servers, outside)
            .with_naming(self.naming)
            .with_variants(self.variants)
            .with_selection(self.choosing)
            .with_weights(self.weights)
            .with_advertised(self.advertised)
            .with_negotiation(self.negotiation)
            .with_limits(self.limits);
        if let Some(faces) = self.faces {
            config.variant_set = faces;
        }
        if let Some((key, previous)) = self.keys.split() {
            config.key = key;
            config.previous_keys = previous.to_vec();
        }
        config.named_keys = self.keys;
        config.left_out = left_out;
        config.required = self.required;
        config.always_both = self.json_content == JsonContent::Both;
        config.lift_json_text = self.lift_json_text;
        config.read_result = self.read_result;
        config.results = self.results;
        config.resource_results = self.resources;
        config.prompt_results = self.prompts;
        config.page_size = self.page_size;
        config.start_wait = self.start_wait.unwrap_or(config.start_wait);
        config.session_lifetime = self.session_lifetime.unwrap_or(config.session_lifetime);
        config
    }
}

/// The text of a configuration file, and which of it is wanted.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    name: &'a str,
    text: &'a str,
    only: Option<&'a str>,
    today: Option<Date>,
}

impl<'a> Source<'a> {
    /// The file `name` with its text. It is JSON or TOML when its name ends so, else YAML.
    #[must_use]
    pub const fn new(name: &'a str, text: &'a str) -> Self {
        Self {
            name,
            text,
            only: None,
            today: None,
        }
    }

    /// Reads only this server, even when it is disabled.
    #[must_use]
    pub const fn with_only(mut self, server: &'a str) -> Self {
        self.only = Some(server);
        self
    }

    /// Notes which removal dates of variants are past on `today` (SV-1). Without this no date is past.
    #[must_use]
    pub const fn with_today(mut self, today: Date) -> Self {
        self.today = Some(today);
        self
    }

    /// Reads the file; `variable` says what `${VAR}` stands for.
    ///
    /// A file with `mcpServers`, or with the `inputs` of VS Code, is a client's: of its servers only
    /// what all clients know is read, and its other keys are none of our business.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, at once.
    pub fn read(&self, variable: &dyn Fn(&str) -> Option<String>) -> Result<File, Diagnostics> {
        let mut reader = Reader::new(variable, self.only);
        reader.today = self.today;
        let file = match document::read(self.name, self.text) {
            Ok(root) => read_root(&mut reader, &root),
            Err(diagnostics) => {
                reader.diagnostics = diagnostics;
                None
            }
        };
        let mut diagnostics = reader.diagnostics;
        diagnostics.sort_by_key(|diagnostic| diagnostic.at);
        match file {
            Some(mut file) if diagnostics.is_empty() => {
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

/// Without the text, which may hold secrets.
impl std::fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source")
            .field("name", &self.name)
            .field("only", &self.only)
            .finish_non_exhaustive()
    }
}

fn read_root(reader: &mut Reader<'_>, root: &Node) -> Option<File> {
    let field = Located {
        path: String::new(),
        node: root,
    };
    let document::Value::Table(entries) = &root.value else {
        let diagnostic = Diagnostic::new(root.at, "", "the file is not a table of keys");
        reader.diagnostics.push(diagnostic.with_fix(FIRST_LINES));
        return None;
    };
    let mut draft = PartialFile::default();
    if let Some(servers) = mcp_json::servers(entries) {
        let servers = mcp_json::ClientServers {
            root: &field,
            entries,
            servers,
        };
        servers.read(reader, is_setting, &mut draft.servers);
    } else {
        reader.settings(
            &field,
            &[SETTINGS, negotiation::SETTINGS],
            &mut draft,
            FIRST_LINES,
        );
        if entries.iter().all(|entry| entry.key != "servers") {
            let diagnostic = Diagnostic::new(Position::START, "", "the file names no server");
            reader.diagnostics.push(diagnostic.with_fix(FIRST_LINES));
        }
    }
    clients::check(reader, &draft.named, &draft.variants.ids());
    let hints = draft.variants.hints();
    ranking::check(reader, &draft.weighted, &hints);
    ranking::check_hints(reader, &field, &draft.file.weights, &hints);
    let switches = (draft.variants.on, draft.file.negotiation);
    require::check(reader, &draft.required, switches);
    Some(draft.finish())
}

/// What may stand in a file.
pub(super) fn shape(schema: &mut Schema) -> serde_json::Value {
    let mut root = schema.table(&[SETTINGS, negotiation::SETTINGS]);
    root["required"] = serde_json::json!(["servers"]);
    root
}

/// Whether `key` at the top of a file is one of ours.
pub(super) fn is_setting(key: &str) -> bool {
    let mut all = SETTINGS.iter().chain(negotiation::SETTINGS);
    all.any(|setting| setting.key == key)
}

/// A file while it is read.
struct PartialFile {
    servers: Servers,
    variants: Declared,
    /// Where a variant is named that must be declared somewhere, and which.
    named: Vec<(Position, String, VariantId)>,
    /// The hints that were given a weight.
    weighted: Vec<Weighted>,
    required: Vec<Required>,
    file: File,
}

impl Default for PartialFile {
    fn default() -> Self {
        Self {
            servers: Servers::default(),
            variants: Declared::default(),
            named: Vec::new(),
            weighted: Vec::new(),
            required: Vec::new(),
            file: File {
                servers: Vec::new(),
                disabled: Vec::new(),
                left_out: Vec::new(),
                naming: Naming::default(),
                listen: None,
                admin: None,
                variants: true,
                faces: None,
                choosing: SelectionConfig::default(),
                weights: variant_config::weights(),
                advertised: DEFAULT_ADVERTISED,
                negotiation: true,
                json_content: JsonContent::default(),
                lift_json_text: true,
                required: Vec::new(),
                keys: Keys::default(),
                read_result: false,
                results: ResultRules::default(),
                resources: ResourceRules::default(),
                prompts: PromptRules::default(),
                start_wait: None,
                page_size: None,
                session_lifetime: None,
                limits: Limits::default(),
                notes: Vec::new(),
                places: VariantSpans::default(),
                addresses_at: BTreeMap::new(),
            },
        }
    }
}

impl PartialFile {
    fn finish(self) -> File {
        File {
            servers: self.servers.enabled,
            disabled: self.servers.disabled,
            left_out: self.servers.left_out,
            variants: self.variants.on,
            faces: self.variants.faces,
            places: self.variants.places,
            required: self.required.into_iter().map(|(_, _, id)| id).collect(),
            ..self.file
        }
    }
}

fn read_address(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<String> {
    let word = reader.word(field)?;
    let port = word
        .rsplit_once(':')
        .map_or(word.as_str(), |(_, port)| port);
    if port.parse::<u16>().is_ok() {
        return Some(word);
    }
    let fix = "write HOST:PORT, such as `127.0.0.1:8800`, or a port";
    reader.report(field, "is not an address to listen on", fix);
    None
}

/// What stands at the top of a file.
const SETTINGS: &[KeySpec<PartialFile>] = &[
    KeySpec {
        key: "servers",
        about: "the servers by name; at least one",
        default: "",
        takes: ValueKind::Other(server::shape, |reader, field, draft| {
            server::read_all(reader, field, &mut draft.servers)
        }),
    },
    KeySpec {
        key: "naming",
        about: "how the names of tools and prompts tell their server. `as-needed`: as they are with one \
server, `name_tool` with several. `always`: `name_tool`. `never`: as they are; of two \
with one name the first server's is served. `on-collision`: `name_tool` only for names \
that several servers have",
        default: "as-needed",
        takes: ValueKind::Other(
            |schema| schema.choice(NAMINGS),
            |reader, field, draft| reader.choice(field, NAMINGS, &mut draft.file.naming),
        ),
    },
    KeySpec {
        key: "listen",
        about: "where to serve: HOST:PORT on this machine, or a port. `--listen` wins",
        default: "127.0.0.1:8800",
        takes: ValueKind::Other(Schema::address, |reader, field, draft| {
            draft.file.addresses_at.insert("listen", field.node.at);
            draft.file.listen = read_address(reader, field)
        }),
    },
    KeySpec {
        key: "admin",
        about: "where `vary status` and `GET /status` can read the gateway's status, such as `8801`; by default nowhere. Only on this machine; the status contains no secrets. `--admin` wins",
        default: "",
        takes: ValueKind::Other(Schema::address, |reader, field, draft| {
            draft.file.addresses_at.insert("admin", field.node.at);
            draft.file.admin = read_address(reader, field)
        }),
    },
    KeySpec {
        key: "variants",
        about: "the variants that are offered; without any these three: `standard`, `compact` and \
`read-only`. `off`: none",
        default: "on",
        takes: ValueKind::Other(variants::shape, |reader, field, draft| {
            variants::read(reader, field, &mut draft.variants)
        }),
    },
    KeySpec {
        key: "variant",
        about: "the variant of clients that name none and that no rule of `clients` is about; without it \
their hints decide. `--variant` wins",
        default: "",
        takes: ValueKind::Other(Schema::variant_id, |reader, field, draft| {
            let variant = clients::variant(reader, field, &mut draft.named);
            draft.file.choosing.default = variant;
        }),
    },
    KeySpec {
        key: "clients",
        about: "rules for clients: which variant they get that name none, and how it is shown to them",
        default: "",
        takes: ValueKind::Other(clients::shape, |reader, field, draft| {
            let rules = &mut draft.file.choosing.rules;
            clients::read(reader, field, rules, &mut draft.named);
        }),
    },
    KeySpec {
        key: "known-clients",
        about: "whether rules for clients that are known to need something come after those of `clients`; \
`vary config clients` shows them",
        default: "off",
        takes: ValueKind::Switch(|draft| &mut draft.file.choosing.known_clients),
    },
    KeySpec {
        key: "strict-header",
        about: "whether a header `MCP-Server-Variant` that contradicts `_meta` or the address \
`/mcp/v/<id>` is an error; otherwise these win",
        default: "off",
        takes: ValueKind::Switch(|draft| &mut draft.file.choosing.strict_header),
    },
    KeySpec {
        key: "ranking",
        about: "what counts how much when a client's hints choose",
        default: "",
        takes: ValueKind::Other(
            |schema| schema.table(&[ranking::SETTINGS]),
            |reader, field, draft| {
                let mut ranking =
                    ranking::PartialRanking::of(&draft.file.weights, draft.file.advertised);
                reader.settings(field, &[ranking::SETTINGS], &mut ranking, ranking::EXAMPLE);
                (draft.file.weights, draft.file.advertised) = (ranking.weights, ranking.advertised);
                draft.weighted = ranking.weighted;
            },
        ),
    },
    KeySpec {
        key: "results",
        about: "rules that transform results of tools: other values, other texts, for some clients",
        default: "",
        takes: ValueKind::Other(results::shape, |reader, field, draft| {
            draft.file.results = results::read(reader, field);
        }),
    },
    KeySpec {
        key: "resources",
        about: "rules that transform resources: other formats, other texts",
        default: "",
        takes: ValueKind::Other(resources::shape, |reader, field, draft| {
            draft.file.resources = resources::read(reader, field);
        }),
    },
    KeySpec {
        key: "prompts",
        about: "rules that replace the texts of prompts, for some clients",
        default: "",
        takes: ValueKind::Other(prompts::shape, |reader, field, draft| {
            draft.file.prompts = prompts::read(reader, field)
        }),
    },
    KeySpec {
        key: "start-wait",
        about: "how long clients wait for servers that are starting. After that they get the lists of the servers that are ready, and a notification when others become ready. With a single server `8s`",
        default: "3s",
        takes: ValueKind::Other(Schema::duration, |reader, field, draft| {
            let mut wait = Duration::ZERO;
            reader.duration(field, &mut wait);
            draft.file.start_wait = Some(wait);
        }),
    },
    KeySpec {
        key: "page-size",
        about: "tools, resources, templates or prompts on one page of a list; all on one without it",
        default: "",
        takes: ValueKind::Other(
            |schema| schema.count(1..=MOST),
            |reader, field, draft| reader.some_count(field, &mut draft.file.page_size),
        ),
    },
    KeySpec {
        key: "session-lifetime",
        about: "how long a session lasts after `initialize`",
        default: "24h",
        takes: ValueKind::Other(Schema::duration, |reader, field, draft| {
            let mut lifetime = Duration::ZERO;
            reader.duration(field, &mut lifetime);
            draft.file.session_lifetime = Some(lifetime);
        }),
    },
    KeySpec {
        key: "keys",
        about: "secrets that seal sessions and cursors: the first seals, all of them open. Without it each process draws its own, so that sessions end with it",
        default: "",
        takes: ValueKind::Other(keys::shape, |reader, field, draft| {
            draft.file.keys = keys::read(reader, field)
        }),
    },
    KeySpec {
        key: "limits",
        about: "what clients may use at most",
        default: "",
        takes: ValueKind::Other(
            |schema| schema.table(&[limits::SETTINGS]),
            |reader, field, draft| {
                let example = "{connections: 1024}";
                reader.settings(field, &[limits::SETTINGS], &mut draft.file.limits, example);
            },
        ),
    },
];

const NAMINGS: &[(&str, Naming)] = &[
    ("as-needed", Naming::AsNeeded),
    ("always", Naming::Always),
    ("never", Naming::Never),
    ("on-collision", Naming::OnCollision),
];

/// What to write into a file that has nothing of use.
const FIRST_LINES: &str = "begin with `servers: {name: {command: ...}}`";
