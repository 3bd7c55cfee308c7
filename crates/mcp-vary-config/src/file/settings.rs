//! The top-level keys of a file, and their values while the file is read.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use mcp_vary_auth::address::PublicUrl;
use mcp_vary_base::environment::Environment;
use mcp_vary_catalog::merge::Naming;
use mcp_vary_operator::{AdminToken, TokenError};
use mcp_vary_settings::config::Config;
use mcp_vary_settings::listener::{HostName, Origin, TrustedProxies};
use mcp_vary_settings::metrics::Readiness;
use mcp_vary_traces::TracesSettings;
use serde_json::{Value, json};

use super::{ProgramSettings, listener};
use crate::access::{self, PartialAccess};
use crate::authentication::{self, PartialAuthentication};
use crate::clients::{self, Named};
use crate::diagnostic::Position;
use crate::experiments;
use crate::extensions::Chosen;
use crate::key_spec::ValueKind::{Duration, Other, Switch};
use crate::key_spec::{KeySpec, choice, count, keys, set, table, value};
use crate::log;
use crate::ranking;
use crate::rates::{self, PartialRates};
use crate::reader::{Located, MOST, Reader};
use crate::require::Required;
use crate::rules::{prompts, resources, results};
use crate::schema_builder::SchemaBuilder;
use crate::server::{self, Servers};
use crate::variants::{self, Declared};
use crate::{admin_readers, audit, extensions, limits, require, sealing_keys, store, traces};

mcp_vary_base::defaults! {
    /// A file while it is read.
    pub(super) struct PartialFile {
        /// What is read of an empty file.
        pub(super) fn new();
        pub(super) servers: Servers = Servers::default(),
        pub(super) variants: Declared = Declared::default(),
        /// References to variants that must be declared.
        pub(super) named: Vec<Named> = Vec::new(),
        pub(super) required: Vec<Required> = Vec::new(),
        pub(super) extensions: Vec<Chosen> = Vec::new(),
        pub(super) access: PartialAccess = PartialAccess::default(),
        pub(super) rates: PartialRates = PartialRates::default(),
        pub(super) authentication: PartialAuthentication = PartialAuthentication::default(),
        pub(super) is_behind_proxy: bool = false,
        pub(super) public_url: Option<PublicUrl> = None,
        pub(super) program: ProgramSettings = ProgramSettings::default(),
        pub(super) addresses_at: BTreeMap<&'static str, Position> = BTreeMap::new(),
        /// The settings that need no check against other keys. Keys that the file does not have keep the gateway's
        /// defaults.
        pub(super) config: Config = Config::with_servers(Vec::new(), NO_ENVIRONMENT),
    }
}

/// The environment until [`File::into_config`] sets the real one.
const NO_ENVIRONMENT: Environment = Environment::new(|| 0, |_| {});

fn read_address(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<String> {
    let word = reader.word(field)?;
    let fix = "write HOST:PORT, such as `127.0.0.1:8800`, or a port";
    usable_address(reader, field, word, fix)
}

/// An address, or [`OFF`].
fn read_admin(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<String> {
    let word = reader.word(field)?;
    if word == OFF {
        return Some(word);
    }
    usable_address(reader, field, word, "write `off`, a port or HOST:PORT")
}

fn admin_shape(schema: &mut SchemaBuilder) -> Value {
    json!({"anyOf": [{"const": OFF}, schema.address()]})
}

fn usable_address(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    word: String,
    fix: &str,
) -> Option<String> {
    let port = word
        .rsplit_once(':')
        .map_or(word.as_str(), |(_, port)| port);
    if port.parse::<u16>().is_ok() {
        return Some(word);
    }
    reader.report(field, "is not an address to listen on", fix);
    None
}

fn read_admin_token(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<AdminToken> {
    let token = reader.text(field)?.parse();
    let fix = "set it to what `openssl rand -hex 32` prints, best in a variable";
    let report = |error: TokenError| reader.report(field, error.to_string(), fix);
    token.map_err(report).ok()
}

fn admin_token_shape(schema: &mut SchemaBuilder) -> Value {
    json!({"anyOf": [schema.variable(), {"allOf": [schema.text(), {"minLength": 16, "maxLength": 1024, "pattern": "^[!-~]*$"}]}]})
}

/// The top-level settings of a file.
pub(super) const SETTINGS: &[KeySpec<PartialFile>] = keys![
    /// the servers by name; at least one
    "servers" => set!(server::shape, server::read_all, |draft| &mut draft.servers),
    /// whether names of tools and prompts have the prefix of their server. `as-needed`: `name_tool` if there are
    /// several servers. `always`: `name_tool`. `never`: none; of two with one name, a variant that shows both has
    /// that of the first server. `on-collision`: `name_tool` only for names that several servers have
    "naming" = "as-needed" => choice!(NAMINGS, |draft| &mut draft.config.naming),
    /// where to serve: HOST:PORT, or a port of this machine. Addresses that other machines can reach need [`auth` and
    /// encryption](other-machines.md). `--listen` wins
    "listen" = "127.0.0.1:8800" => value!(SchemaBuilder::address, read_address, |draft| draft.program.listen),
    /// where [the page](../../how-to/page.md), `vary status`, `vary reload` and `vary drain` reach the gateway, such as
    /// `8801`; only on this machine. By default, over HTTP, the port that it had before, or a free one. `off`: nowhere.
    /// `--admin` wins
    "admin" => value!(admin_shape, read_admin, |draft| draft.program.admin),
    /// the secret for `POST /reload` and `POST /drain` at `admin`, as `Authorization: Bearer TOKEN`; at least 16
    /// characters. Without it Vary makes one, in a file that only its user can read
    "admin-token" => value!(admin_token_shape, read_admin_token, |draft| draft.program.admin_token),
    /// whether [the page](../../how-to/page.md#call-tools-from-the-page) at `admin` may call tools, as clients would
    "admin-calls" = "off" => Switch(|draft| &mut draft.program.admin_calls),
    /// whether [the page](../../how-to/page.md#save-a-draft) at `admin` may write variants into this file, and which
    /// clients get them
    "admin-writes" = "off" => Switch(|draft| &mut draft.program.admin_writes),
    /// whose access tokens may read [the page](../../how-to/page.md#let-your-team-read-it) at `admin`, by their claims,
    /// such as `{groups: operators}`: as `when` of [`access`](access.md), without `anyone`. Needs `auth`
    "admin-readers" => value!(admin_readers::shape, admin_readers::read, |draft| draft.config.admin_readers),
    /// where `GET /metrics`, `/livez` and `/readyz` are answered to anybody who can connect, also from other machines:
    /// HOST:PORT, or a port of this machine. By default nowhere, and nothing is [measured](../../how-to/metrics.md).
    /// They show names of servers and tools, also those that `access` hides. `--probes` wins
    "probes" => value!(SchemaBuilder::address, read_address, |draft| draft.program.probes),
    /// how many servers must be up for `/readyz`: `any`, `all`, or `none`
    "ready" = "any" => choice!(READINESS, |draft| &mut draft.config.ready),
    /// [who may use](auth.md) the gateway over HTTP; everybody who can connect without it
    "auth" => set!(authentication::shape, authentication::read, |draft| &mut draft.authentication),
    /// the URL under which clients reach the gateway, without `/mcp`; tokens are for it. Required with `auth.issuers`
    "public-url" => value!(SchemaBuilder::url, authentication::read_public_url, |draft| draft.public_url),
    /// further names of the gateway that clients may send in `Host`, without ports, besides that of `public-url`.
    /// Loopback names work on this machine
    "hosts" => value!(SchemaBuilder::strings, listener::read_list::<HostName>, |draft| draft.config.listener.hosts),
    /// origins of web pages that may use the gateway, such as `https://app.example.com`; by default none, but pages of
    /// this machine can use a gateway on this machine
    "origins" => value!(SchemaBuilder::strings, listener::read_list::<Origin>, |draft| draft.config.listener.origins),
    /// the files of a [certificate](other-machines.md), to serve https
    "tls" => value!(listener::tls_shape, listener::read_tls, |draft| draft.config.listener.tls),
    /// whether only proxies connect, which speak https with clients; needs `trusted-proxies`
    "behind-proxy" = "off" => Switch(|draft| &mut draft.is_behind_proxy),
    /// [addresses and networks](other-machines.md) from which proxies connect; other connections are refused. The
    /// address of a client is then the rightmost one in `X-Forwarded-For` that is not a proxy
    "trusted-proxies" => Other(SchemaBuilder::strings, |reader, field, draft| {
        let networks = listener::read_list(reader, field);
        draft.config.listener.trusted_proxies = Some(TrustedProxies::new(networks));
    }),
    /// [who the client](auth.md) on standard input is, for rules and logs: `{name, claims}`
    "stdio-principal" => value!(
        authentication::principal_shape, authentication::read_principal, |draft| draft.config.stdio_principal
    ),
    /// [rules](access.md): which clients may see and use what, and which variants they are offered. What no rule allows
    /// is not allowed
    "access" => Other(access::shape, |reader, field, draft| {
        access::read(reader, field, &mut draft.access, &mut draft.named)
    }),
    /// [rate limits](rates.md): how often clients may call tools, read, change their variant, or present wrong
    /// credentials
    "rates" => set!(rates::shape, rates::read, |draft| &mut draft.rates),
    /// the [log](log.md) of the program on standard error
    "log" => table!("`log`", &[log::SETTINGS], "{level: info}", |draft| &mut draft.program.log),
    /// the [log](audit.md) of who did what; none without it
    "audit" => value!(audit::shape, audit::read, |draft| draft.config.audit),
    /// the [spans](traces.md) of requests, and their collector; none without it
    "traces" => table!(
        "`traces`", &[traces::SETTINGS], "{endpoint: http://localhost:4318}",
        |draft| draft.config.traces.insert(TracesSettings::default())
    ),
    /// [variants that are compared](experiments.md)
    "experiments" => Other(experiments::shape, |reader, field, draft| {
        experiments::read(reader, field, &mut draft.config.experiments, &mut draft.named)
    }),
    /// the [variants](variants.md) that are offered; by default `standard`, `compact`, `directory` and `read-only`.
    /// `off`: none
    "variants" = "on" => set!(variants::shape, variants::read, |draft| &mut draft.variants),
    /// the variant of clients that select none and match no rule of `clients`; without it their hints decide.
    /// `--variant` wins
    "variant" => Other(SchemaBuilder::variant_id, |reader, field, draft| {
        draft.config.selection.default = clients::variant(reader, field, &mut draft.named)
    }),
    /// [rules](clients.md) for the variant of clients that select none, and how it is shown to them
    "clients" => Other(clients::shape, |reader, field, draft| {
        clients::read(reader, field, &mut draft.config.selection.rules, &mut draft.named)
    }),
    /// whether rules for [known clients](../known-clients.md) come after those of `clients`; `vary config clients`
    /// shows them
    "known-clients" = "off" => Switch(|draft| &mut draft.config.selection.known_clients),
    /// [how hints order variants](ranking.md) for a client, and a model that reads its description
    "ranking" => table!("`ranking`", &[ranking::SETTINGS], ranking::EXAMPLE, |draft| &mut draft.config),
    /// whether a header `MCP-Server-Variant` that contradicts `_meta` or the address `/mcp/v/<id>` is an error;
    /// otherwise these win
    "strict-header" = "off" => Switch(|draft| &mut draft.config.selection.strict_header),
    /// whether clients can select only variants that they are offered; otherwise all that exist for them
    "advertised-only" = "off" => Switch(|draft| &mut draft.config.advertised_only),
    /// whether the error for an invalid variant names those that the client can select
    "enumerate-variants" = "on" => Switch(|draft| &mut draft.config.enumerate_variants),
    /// whether content is negotiated
    "negotiation" = "on" => Switch(|draft| &mut draft.config.negotiation),
    /// what clients that declare `agent` and `format=json` get in `content`, beside the value in `structuredContent`.
    /// `strict`: no text; if one says more than the value, `vary/applied` names the whole result. `texts`: such texts.
    /// `both`: the JSON as text, too
    "json-content" = "strict" => choice!(clients::JSON_CONTENTS, |draft| &mut draft.config.json_content),
    /// whether a text that is exactly one JSON document becomes the structured value for clients that declare
    /// `format=json`, if the tool has no `outputSchema`
    "lift-json-text" = "on" => Switch(|draft| &mut draft.config.lift_json_text),
    /// extensions without which no client is served: `negotiation`, `variants`, or other identifiers
    "require" => value!(require::shape, require::read, |draft| draft.required),
    /// the server that answers the methods of an extension that Vary does not know, by its identifier:
    /// `{com.example/units: SERVER}`. Without it, nobody answers and nobody is offered an [extension of several
    /// servers](../extensions.md#other-extensions)
    "extensions" => value!(extensions::shape, extensions::read, |draft| draft.extensions),
    /// whether clients have the tool `read_result`, which reads what was left out of
    /// [results](results.md#the-rest-of-a-result)
    "read-result" = "off" => Switch(|draft| &mut draft.config.read_result),
    /// rules that transform [results](results.md) of tools: other values, other texts, for some clients
    "results" => Other(results::shape, |reader, field, draft| {
        draft.config.results = results::read(reader, field, &mut draft.named);
    }),
    /// rules that transform [resources](resources-and-prompts.md): other formats, other texts
    "resources" => Other(resources::shape, |reader, field, draft| {
        draft.config.resource_results = resources::read(reader, field, &mut draft.named);
    }),
    /// rules that replace the texts of [prompts](resources-and-prompts.md), for some clients
    "prompts" => Other(prompts::shape, |reader, field, draft| {
        draft.config.prompt_results = prompts::read(reader, field, &mut draft.named)
    }),
    /// how long clients wait for servers that are starting. After that they get the lists of those that are ready, and
    /// a notification when others are. With a single server `8s` at the start
    "start-wait" = "2s" => set!(SchemaBuilder::duration, Reader::duration, |draft| &mut draft.program.start_wait),
    /// items on one page of a list; all without it
    "page-size" => count!(NonZeroUsize::MIN..=MOST_ON_PAGE, |draft| &mut draft.config.page_size),
    /// how long a session lasts after `initialize`
    "session-lifetime" = "24h" => Duration(|draft| &mut draft.config.session_lifetime),
    /// secrets that seal sessions and cursors: the first seals new ones, each opens what it has sealed. By default each
    /// process makes its own, and sessions end with it
    "keys" => value!(sealing_keys::shape, sealing_keys::read, |draft| draft.config.named_keys),
    /// the Redis or Valkey that [replicas](../../how-to/replicas.md) share, as
    /// `redis://USER:PASSWORD@HOST:PORT/DATABASE`, or by Redis Sentinel
    /// `redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NAME/DATABASE`; `rediss` for TLS; best in a variable. Needs
    /// `keys`
    "store" => value!(store::shape, store::read, |draft| draft.config.store),
    /// requests with a limit of `rates` while the store is away. `open`: each replica counts by itself. `closed`: they
    /// are refused with status 503
    "store-failure" = "open" => choice!(store::FAILURES, |draft| &mut draft.config.store_failure),
    /// what clients [may use](limits.md) at most
    "limits" => table!("`limits`", &[limits::SETTINGS], "{connections: 1024}", |draft| &mut draft.config.limits),
];

/// The most items on a page.
const MOST_ON_PAGE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(MOST - 1);

/// The value of `admin` for no listener.
pub(super) const OFF: &str = "off";

/// The values of `ready`.
const READINESS: &[(&str, Readiness)] = &[
    ("any", Readiness::Any),
    ("all", Readiness::All),
    ("none", Readiness::None),
];

const NAMINGS: &[(&str, Naming)] = &[
    ("as-needed", Naming::AsNeeded),
    ("always", Naming::Always),
    ("never", Naming::Never),
    ("on-collision", Naming::OnCollision),
];
