//! The top-level keys of a file, and their values while the file is read.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_vary::variant::VariantId;
use mcp_vary_auth::address::PublicUrl;
use mcp_vary_base::environment::Environment;
use mcp_vary_catalog::merge::Naming;
use mcp_vary_gateway::settings::config::Config;

use super::File;
use super::listener::PartialListener;
use crate::access::{self, AccessNames, PartialAccess};
use crate::authentication::{self, PartialAuthentication};
use crate::diagnostic::Position;
use crate::experiments;
use crate::key_spec::{KeySpec, ValueKind};
use crate::log::{self, LogSettings};
use crate::ranking::{self, PartialRanking, Weighted};
use crate::rates::{self, PartialRates};
use crate::reader::{Located, MOST, Reader};
use crate::require::Required;
use crate::rules::{prompts, resources, results};
use crate::schema_builder::SchemaBuilder;
use crate::server::{self, Servers};
use crate::variants::{self, Declared};
use crate::{audit, clients, limits, sealing_keys};

/// A file while it is read.
pub(super) struct PartialFile {
    pub(super) servers: Servers,
    pub(super) variants: Declared,
    /// References to variants that must be declared: position, path and id.
    pub(super) named: Vec<(Position, String, VariantId)>,
    /// The hints that have a weight.
    pub(super) weighted: Vec<Weighted>,
    pub(super) required: Vec<Required>,
    pub(super) access: PartialAccess,
    pub(super) rates: PartialRates,
    pub(super) authentication: PartialAuthentication,
    pub(super) listener: PartialListener,
    pub(super) public_url: Option<PublicUrl>,
    /// Whether the file has `public-url`, with or without a mistake.
    pub(super) public_url_given: bool,
    listen: Option<String>,
    admin: Option<String>,
    addresses_at: BTreeMap<&'static str, Position>,
    start_wait: Option<Duration>,
    log: LogSettings,
    /// The settings that need no check against other keys. Keys that the file does not have keep the gateway's
    /// defaults.
    pub(super) config: Config,
}

impl Default for PartialFile {
    fn default() -> Self {
        Self {
            servers: Servers::default(),
            variants: Declared::default(),
            named: Vec::new(),
            weighted: Vec::new(),
            required: Vec::new(),
            access: PartialAccess::default(),
            rates: PartialRates::default(),
            authentication: PartialAuthentication::default(),
            listener: PartialListener::default(),
            public_url: None,
            public_url_given: false,
            listen: None,
            admin: None,
            addresses_at: BTreeMap::new(),
            start_wait: None,
            log: LogSettings::default(),
            config: Config::with_servers(Vec::new(), NO_ENVIRONMENT),
        }
    }
}

/// The environment until [`File::into_config`] sets the real one.
const NO_ENVIRONMENT: Environment = Environment::new(|| 0, |_| {});

impl PartialFile {
    pub(super) fn finish(self) -> File {
        let mut config = self.config;
        let declared = self.variants.variant_set;
        let declares_variants = declared.is_some();
        config.variants = self.variants.on;
        config.variant_set = declared.unwrap_or(config.variant_set);
        config.required = self.required.into_iter().map(|(_, _, id)| id).collect();
        File {
            servers: self.servers.enabled,
            disabled: self.servers.disabled,
            left_out: self.servers.left_out,
            listen: self.listen,
            admin: self.admin,
            addresses_at: self.addresses_at,
            start_wait: self.start_wait,
            log: self.log,
            notes: Vec::new(),
            places: self.variants.places,
            declares_variants,
            access_names: AccessNames::default(),
            config,
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

/// The top-level settings of a file.
pub(super) const SETTINGS: &[KeySpec<PartialFile>] = &[
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
        about: "whether the names of tools and prompts contain the name of their server. `as-needed`: as they are with one \
server, `name_tool` with several. `always`: `name_tool`. `never`: as they are; of two \
with one name the first server's is served. `on-collision`: `name_tool` only for names \
that several servers have",
        default: "as-needed",
        takes: ValueKind::Other(
            |schema| schema.choice(NAMINGS),
            |reader, field, draft| reader.choice(field, NAMINGS, &mut draft.config.naming),
        ),
    },
    KeySpec {
        key: "listen",
        about: "where to serve: HOST:PORT, or a port of this machine. Addresses that other machines can reach need `auth` and encryption. `--listen` wins",
        default: "127.0.0.1:8800",
        takes: ValueKind::Other(SchemaBuilder::address, |reader, field, draft| {
            draft.addresses_at.insert("listen", field.node.at);
            draft.listen = read_address(reader, field)
        }),
    },
    KeySpec {
        key: "admin",
        about: "where `vary status` and `GET /status` can read the gateway's status, such as `8801`; by default nowhere. Only on this machine; the status contains no secrets. `--admin` wins",
        default: "",
        takes: ValueKind::Other(SchemaBuilder::address, |reader, field, draft| {
            draft.addresses_at.insert("admin", field.node.at);
            draft.admin = read_address(reader, field)
        }),
    },
    KeySpec {
        key: "auth",
        about: "who may use the gateway over HTTP; everybody who can connect without it. Needed to listen for other machines",
        default: "",
        takes: ValueKind::Other(authentication::shape, |reader, field, draft| {
            authentication::read(reader, field, &mut draft.authentication)
        }),
    },
    KeySpec {
        key: "public-url",
        about: "the URL under which clients reach the gateway, as they type it but without `/mcp`; tokens are for it. Required with `auth.issuers`",
        default: "",
        takes: ValueKind::Other(SchemaBuilder::url, |reader, field, draft| {
            draft.public_url_given = true;
            draft.public_url = authentication::read_public_url(reader, field);
        }),
    },
    KeySpec {
        key: "stdio-principal",
        about: "who the client on standard input is, for rules and logs: `{name, claims}`",
        default: "",
        takes: ValueKind::Other(authentication::principal_shape, |reader, field, draft| {
            draft.config.stdio_principal = authentication::read_principal(reader, field)
        }),
    },
    KeySpec {
        key: "access",
        about: "rules: which clients may see and use what, and which variants they are offered. With it, nothing is allowed that no rule allows",
        default: "",
        takes: ValueKind::Other(access::shape, |reader, field, draft| {
            access::read(reader, field, &mut draft.access, &mut draft.named)
        }),
    },
    KeySpec {
        key: "rates",
        about: "rate limits: how often clients may call tools, read, change their variant, or present wrong credentials",
        default: "",
        takes: ValueKind::Other(rates::shape, |reader, field, draft| {
            rates::read(reader, field, &mut draft.rates)
        }),
    },
    KeySpec {
        key: "log",
        about: "the log of the program on standard error: how much is written, and in which form",
        default: "",
        takes: ValueKind::Other(log::shape, |reader, field, draft| {
            draft.log = log::read(reader, field)
        }),
    },
    KeySpec {
        key: "audit",
        about: "the log of who did what, separate from the log of the program; none without it",
        default: "",
        takes: ValueKind::Other(audit::shape, |reader, field, draft| {
            let to = field.deepest(&["to"]);
            draft.addresses_at.insert("audit.to", to.node.at);
            draft.config.audit = audit::read(reader, field);
        }),
    },
    KeySpec {
        key: "experiments",
        about: "variants that are compared: each client gets one of them, and `vary experiment` shows the results",
        default: "",
        takes: ValueKind::Other(experiments::shape, |reader, field, draft| {
            experiments::read(
                reader,
                field,
                &mut draft.config.experiments,
                &mut draft.named,
            )
        }),
    },
    KeySpec {
        key: "variants",
        about: "the variants that are offered; without any these four: `standard`, `compact`, `directory` and \
`read-only`. `off`: none",
        default: "on",
        takes: ValueKind::Other(variants::shape, |reader, field, draft| {
            variants::read(reader, field, &mut draft.variants)
        }),
    },
    KeySpec {
        key: "variant",
        about: "the variant of clients that select none and match no rule of `clients`; without it their \
hints decide. `--variant` wins",
        default: "",
        takes: ValueKind::Other(SchemaBuilder::variant_id, |reader, field, draft| {
            let variant = clients::variant(reader, field, &mut draft.named);
            draft.config.selection.default = variant;
        }),
    },
    KeySpec {
        key: "clients",
        about: "rules for clients: the variant of clients that select none, and how it is shown to them",
        default: "",
        takes: ValueKind::Other(clients::shape, |reader, field, draft| {
            let rules = &mut draft.config.selection.rules;
            clients::read(reader, field, rules, &mut draft.named);
        }),
    },
    KeySpec {
        key: "known-clients",
        about: "whether rules for clients that are known to need something come after those of `clients`; \
`vary config clients` shows them",
        default: "off",
        takes: ValueKind::Switch(|draft| &mut draft.config.selection.known_clients),
    },
    KeySpec {
        key: "strict-header",
        about: "whether a header `MCP-Server-Variant` that contradicts `_meta` or the address \
`/mcp/v/<id>` is an error; otherwise these win",
        default: "off",
        takes: ValueKind::Switch(|draft| &mut draft.config.selection.strict_header),
    },
    KeySpec {
        key: "ranking",
        about: "how variants are ordered for a client: what counts how much of its hints, and a model that reads its description",
        default: "",
        takes: ValueKind::Other(
            |schema| schema.table(&[ranking::SETTINGS]),
            |reader, field, draft| {
                let config = &mut draft.config;
                let mut ranking = PartialRanking::of(&config.weights, config.advertised);
                reader.settings(field, &[ranking::SETTINGS], &mut ranking, ranking::EXAMPLE);
                (config.weights, config.advertised) = (ranking.weights, ranking.advertised);
                config.model_ranking = ranking.model;
                draft.weighted = ranking.weighted;
            },
        ),
    },
    KeySpec {
        key: "advertised-only",
        about: "whether clients can select only variants that they are offered; otherwise all that exist for them",
        default: "off",
        takes: ValueKind::Switch(|draft| &mut draft.config.advertised_only),
    },
    KeySpec {
        key: "enumerate-variants",
        about: "whether the error for an invalid variant names those that the client can select",
        default: "on",
        takes: ValueKind::Switch(|draft| &mut draft.config.enumerate_variants),
    },
    KeySpec {
        key: "results",
        about: "rules that transform results of tools: other values, other texts, for some clients",
        default: "",
        takes: ValueKind::Other(results::shape, |reader, field, draft| {
            draft.config.results = results::read(reader, field, &mut draft.named);
        }),
    },
    KeySpec {
        key: "resources",
        about: "rules that transform resources: other formats, other texts",
        default: "",
        takes: ValueKind::Other(resources::shape, |reader, field, draft| {
            draft.config.resource_results = resources::read(reader, field, &mut draft.named);
        }),
    },
    KeySpec {
        key: "prompts",
        about: "rules that replace the texts of prompts, for some clients",
        default: "",
        takes: ValueKind::Other(prompts::shape, |reader, field, draft| {
            draft.config.prompt_results = prompts::read(reader, field, &mut draft.named)
        }),
    },
    KeySpec {
        key: "start-wait",
        about: "how long clients wait for servers that are starting. After that they get the lists of the servers that are ready, and a notification when others become ready. With a single server `8s`",
        default: "3s",
        takes: ValueKind::Other(SchemaBuilder::duration, |reader, field, draft| {
            let mut wait = Duration::ZERO;
            reader.duration(field, &mut wait);
            draft.start_wait = Some(wait);
        }),
    },
    KeySpec {
        key: "page-size",
        about: "tools, resources, templates or prompts on one page of a list; all on one without it",
        default: "",
        takes: ValueKind::Other(
            |schema| schema.count(1..=MOST),
            |reader, field, draft| reader.some_count(field, &mut draft.config.page_size),
        ),
    },
    KeySpec {
        key: "session-lifetime",
        about: "how long a session lasts after `initialize`",
        default: "24h",
        takes: ValueKind::Duration(|draft| &mut draft.config.session_lifetime),
    },
    KeySpec {
        key: "keys",
        about: "secrets that seal sessions and cursors: the first one seals new ones, and each of them opens what it has sealed. Without it each process makes its own, and sessions end with the process",
        default: "",
        takes: ValueKind::Other(sealing_keys::shape, |reader, field, draft| {
            draft.config.named_keys = sealing_keys::read(reader, field)
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
                reader.settings(
                    field,
                    &[limits::SETTINGS],
                    &mut draft.config.limits,
                    example,
                );
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
