//! `vary inspect`: the variants of a server, and the cost of their tools.

use std::fmt::Write as _;

use mcp_vary::json::Members;
use mcp_vary::variant::{Date, ServerVariant, VariantId};
use mcp_vary_gateway::Explanation;
use mcp_vary_wire::extension_methods::declares_extension_of;
use mcp_vary_wire::list_kind::ListKind;
use serde_json::{Map, Value, json};

use crate::client::{Client, ClientIdentity};
use crate::commands::status::{self, ReceivedStatus};
use crate::credentials::LoginMode;
use crate::environment;
use crate::failure::{Failure, Verdict};
use crate::print::deprecation::deprecation_notice;
use crate::print::ranking::Why;
use crate::print::servers::collision_table;
use crate::print::table::table;
use crate::print::wrap::wrap;
use crate::print::{self, Progress, sanitize, sanitize_json};
use crate::server_target::args::ServerTarget;
use crate::server_target::session::TargetSession;
use crate::serving::server_summary::ServerSummary;
use crate::stop::Stop;
use crate::tokens;

pub(crate) mod args;
mod rows;
mod task_cost;

use self::args::Inspect;
use self::rows::TASK_NOTE;
use self::task_cost::DescriptionCost;

/// Reads the variants and their tools, and prints them with their cost. Always closes the server.
pub(crate) async fn run(args: Inspect, mut stop: Stop) -> Result<Verdict, Failure> {
    let declared = ClientIdentity::from_args(args.features.as_deref(), &args.hints)?;
    let identity = declared
        .selecting_variants(true)
        .named(args.client.client());
    let given = &args.client.target;
    let target = given.resolve(args.named.as_deref(), "vary inspect").await?;
    if args.admin.is_some() && !matches!(target, ServerTarget::Url { .. }) {
        return Err(Failure::command(
            "--admin is the address of a running gateway, so TARGET must be its URL",
        ));
    }
    let mode = LoginMode::from_flag(args.client.login);
    let session = TargetSession::open(&target, None, mode, &mut stop).await?;
    session.note_selection(&identity, args.client.variant.as_deref());
    let seen = stop
        .unless_requested(inspect(&args, &identity, &session))
        .await;
    let shown = seen.and_then(|seen| {
        print::data(&if args.client.json {
            sanitize_json(&seen.to_json())
        } else {
            seen.to_text(print::width())
        })?;
        session.warn_unmatched();
        let rows = seen
            .variants
            .iter()
            .map(|variant| variant.listed.len())
            .sum::<usize>();
        if !args.client.json && !args.summary && rows > MANY_ROWS {
            print::notice("tip: --summary prints the sums alone");
        }
        Ok(())
    });
    let closed = session.close(&mut stop).await;
    shown.and(closed).map(|()| Verdict::Fine)
}

async fn inspect(
    args: &Inspect,
    identity: &ClientIdentity,
    session: &TargetSession,
) -> Result<Inspection, Failure> {
    let client = session.client(identity).await?;
    let first = client.variants().into_iter().next();
    let status = match &args.admin {
        Some(address) => Some(status::fetch(Some(address)).await?),
        None => None,
    };
    let hints = identity.hints.as_ref();
    let of_session = session.configured(hints);
    let document = status.as_ref().map(|received| &received.document);
    let known = of_session.or_else(|| document.map(status::known_variants));
    let is_known = known.is_some();
    let configured = known.unwrap_or_default();
    let mut variants = variant_tools(&client, configured, args.client.variant.as_deref()).await?;
    // Its summary has the states of servers that it knows.
    if !session.knows_servers() {
        client.note_missing("vary status");
    }
    for variant in &mut variants {
        variant.descriptions = DescriptionCost::read(&client, variant.id(), &variant.listed).await;
        variant.others = other_tokens(&client, variant.id()).await;
    }
    let reference = baseline(&variants);
    let whole = reference.map_or(0, |variant| variant.tokens);
    let compared = reference.and_then(VariantTools::id).map(str::to_owned);
    if let Some(only) = &args.client.variant {
        variants.retain(|variant| variant.id().is_none_or(|id| id == only));
    }
    Ok(Inspection {
        whole,
        compared,
        is_summary: args.summary,
        summary: session.summary.clone(),
        more: client.more_variants(),
        is_known,
        has_hints: hints.is_some(),
        ranking: hints.and_then(|hints| session.explain(hints)),
        first: first.map(|variant| variant.id),
        today: environment::today(),
        variants,
        status,
    })
}

/// The tokens of the lists besides the tools, and of the instructions. A list that the server does not have counts nothing.
async fn other_tokens(client: &Client, variant: Option<&str>) -> Vec<(&'static str, usize)> {
    let lists = [
        ("prompts", ListKind::Prompts),
        ("resources", ListKind::Resources),
        ("resource templates", ListKind::Templates),
    ];
    let mut others = Vec::new();
    for (name, kind) in lists {
        let items = client.items(kind, variant).await.unwrap_or_default();
        if !items.is_empty() {
            others.push((name, tokens::count_whole(&items)));
        }
    }
    if declares_extension_of(&client.handshake().capabilities, SKILLS) {
        let skills = client.listed(SKILLS, "skills", variant).await;
        let skills = skills.unwrap_or_default();
        if !skills.is_empty() {
            others.push(("skills", tokens::count_whole(&skills)));
        }
    }
    if let Some(instructions) = &client.handshake().instructions {
        others.push(("instructions", tokens::count(instructions)));
    }
    others
}

/// The method that lists skills.
const SKILLS: &str = "skills/list";

/// The tools in all variants from which on the sums alone are suggested.
const MANY_ROWS: usize = 200;

/// One variant and its tools.
#[derive(Debug)]
pub(crate) struct VariantTools {
    /// `None` when the server offers no variants.
    pub(crate) definition: Option<ServerVariant>,
    source: Source,
    /// What a model gets of the tools.
    pub(crate) tokens: usize,
    /// The whole list, with what clients do not forward.
    whole: usize,
    /// The tokens of the other lists, by name.
    others: Vec<(&'static str, usize)>,
    tools: Vec<Tool>,
    /// The tools as they are listed.
    listed: Vec<String>,
    /// The cost of what clients get on demand, if schemas are on demand.
    descriptions: Option<DescriptionCost>,
}

/// The source of the knowledge about a variant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Source {
    /// The server advertises it.
    Advertised,
    /// It is configured, but not advertised.
    Configured,
    /// It can be selected, but is not described.
    Selected,
}

#[derive(Debug)]
struct Tool {
    name: String,
    tokens: usize,
}

impl VariantTools {
    pub(crate) fn id(&self) -> Option<&str> {
        self.definition
            .as_ref()
            .map(|definition| definition.id.as_str())
    }

    fn read(definition: Option<ServerVariant>, source: Source, listed: Vec<String>) -> Self {
        let name = |tool: &String| {
            Members::parse(tool)
                .ok()
                .and_then(|tool| tool.get_str("name"))
        };
        let tools = listed.iter().map(|tool| Tool {
            name: name(tool).unwrap_or_else(|| "(without a name)".to_owned()),
            tokens: tokens::count_tool(tool),
        });
        Self {
            definition,
            source,
            tools: tools.collect::<Vec<_>>(),
            tokens: tokens::count_tools(&listed),
            whole: tokens::count_whole(&listed),
            others: Vec::new(),
            listed,
            descriptions: None,
        }
    }

    /// The tokens that a task reads which uses `tools` distinct tools.
    fn task_tokens(&self, tools: usize) -> usize {
        self.tokens + self.descriptions.map_or(0, |cost| cost.of(tools))
    }
}

/// The variants that the client is offered, then the other `configured` ones, with their tools. With `only`, that
/// variant and the one it is compared with.
pub(crate) async fn variant_tools(
    client: &Client,
    configured: Vec<ServerVariant>,
    only: Option<&str>,
) -> Result<Vec<VariantTools>, Failure> {
    let offered = client.variants();
    if offered.is_empty() && only.is_none() {
        let listed = client.tools(None).await?;
        return Ok(vec![VariantTools::read(None, Source::Advertised, listed)]);
    }
    client.check_selectable(only)?;
    let all = with_configured(offered, configured);
    let compared = all
        .iter()
        .position(|(variant, _)| variant.id == STANDARD)
        .unwrap_or(0);
    let mut variants = Vec::new();
    for (at, (variant, source)) in all.into_iter().enumerate() {
        if at != compared && only.is_some_and(|only| variant.id != only) {
            continue;
        }
        let _progress = Progress::show(&format!("counting the tokens of {} ...", variant.id));
        let listed = client.tools(Some(variant.id.as_str())).await?;
        variants.push(VariantTools::read(Some(variant), source, listed));
    }
    if let Some(id) = only.filter(|id| variants.iter().all(|variant| variant.id() != Some(id))) {
        variants.push(selected(client, id).await?);
    }
    Ok(variants)
}

/// The offered variants, then the other configured ones.
fn with_configured(
    offered: Vec<ServerVariant>,
    configured: Vec<ServerVariant>,
) -> Vec<(ServerVariant, Source)> {
    let is_new = |variant: &ServerVariant| offered.iter().all(|other| other.id != variant.id);
    let unlisted: Vec<_> = configured.into_iter().filter(is_new).collect();
    let advertised = offered.into_iter().map(|found| (found, Source::Advertised));
    let added = unlisted.into_iter().map(|new| (new, Source::Configured));
    advertised.chain(added).collect()
}

/// A variant that was not offered but may exist.
async fn selected(client: &Client, id: &str) -> Result<VariantTools, Failure> {
    let listed = client.tools(Some(id)).await?;
    let parsed = id
        .parse()
        .map_err(|error| Failure::command(format!("`{id}` is not a valid variant id: {error}")))?;
    let variant = ServerVariant::new(parsed, "");
    Ok(VariantTools::read(Some(variant), Source::Selected, listed))
}

/// The variant that the others are compared with: `standard`, or else the first.
pub(crate) fn baseline(variants: &[VariantTools]) -> Option<&VariantTools> {
    variants
        .iter()
        .find(|variant| variant.id() == Some(STANDARD))
        .or_else(|| variants.first())
}

/// The result of `inspect`.
struct Inspection {
    /// Whether only the sums are shown.
    is_summary: bool,
    /// The tokens that others are compared with.
    whole: usize,
    /// The variant that others are compared with; `None` without variants.
    compared: Option<String>,
    summary: ServerSummary,
    more: bool,
    /// Whether every variant is known, advertised or not.
    is_known: bool,
    /// Whether hints were given.
    has_hints: bool,
    /// The reasons for the order of the variants, if hints were given.
    ranking: Option<Explanation>,
    first: Option<VariantId>,
    today: Date,
    variants: Vec<VariantTools>,
    /// The gateway's status for its operator, if it was requested.
    status: Option<ReceivedStatus>,
}

impl Inspection {
    fn why(&self) -> Option<Why<'_>> {
        let explanation = self.ranking.as_ref()?;
        let first = self.first.as_ref();
        Some(Why { explanation, first })
    }

    fn to_json(&self) -> String {
        let variants: Vec<Value> = self
            .variants
            .iter()
            .map(|variant| self.variant_to_json(variant))
            .collect();
        let mut seen = self.summary.to_json();
        seen.insert("encoding".to_owned(), json!("o200k_base"));
        seen.insert("moreVariantsAvailable".to_owned(), json!(self.more));
        seen.insert("variants".to_owned(), json!(variants));
        if self.has_hints {
            let why = self.why().map(|why| why.to_json());
            seen.insert("ranking".to_owned(), json!(why));
        }
        if let Some(status) = &self.status {
            let uses = status.json["deprecatedUse"].clone();
            seen.insert("deprecatedUse".to_owned(), uses);
        }
        format!("{:#}\n", Value::Object(seen))
    }

    fn variant_to_json(&self, variant: &VariantTools) -> Value {
        let described = match &variant.definition {
            Some(definition) if variant.source == Source::Selected => json!({"id": definition.id}),
            Some(definition) => json!(definition),
            None => json!({"id": null}),
        };
        let mut members = described.as_object().cloned().unwrap_or_else(Map::new);
        if variant.definition.is_some() {
            let is_advertised = variant.source == Source::Advertised;
            members.insert("advertised".to_owned(), json!(is_advertised));
        }
        let tools = variant
            .tools
            .iter()
            .map(|tool| match self.server_of(&tool.name) {
                Some(server) => json!({"name": tool.name, "server": server, "tokens": tool.tokens}),
                None => json!({"name": tool.name, "tokens": tool.tokens}),
            });
        let definition = variant.definition.as_ref();
        let info = definition.and_then(|definition| definition.deprecation_info.as_ref());
        if let Some(left) = info.and_then(|info| info.days_left(self.today)) {
            members.insert("daysLeft".to_owned(), json!(left));
        }
        members.insert("tokens".to_owned(), json!(variant.tokens));
        members.insert("wholeTokens".to_owned(), json!(variant.whole));
        let counts = variant.others.iter();
        let others = counts.map(|(list, tokens)| ((*list).to_owned(), json!(tokens)));
        members.insert(
            "otherTokens".to_owned(),
            others.collect::<Map<_, _>>().into(),
        );
        members.insert(
            "percent".to_owned(),
            json!(tokens::percent(variant.tokens, self.whole)),
        );
        let sizes = self.task_sizes().into_iter();
        let costs = sizes.map(|size| (size.to_string(), json!(variant.task_tokens(size))));
        let tasks: Map<String, Value> = costs.collect();
        if !tasks.is_empty() {
            members.insert("taskTokens".to_owned(), tasks.into());
        }
        members.insert("tools".to_owned(), tools.collect());
        Value::Object(members)
    }

    fn to_text(&self, width: usize) -> String {
        let mut out = self.summary.to_text();
        out.push('\n');
        out.push_str(&sanitize(&table(&self.rows(), 1)));
        if !self.task_sizes().is_empty() {
            out.push_str(TASK_NOTE);
        }
        out.push_str(&sanitize(&collision_table(&self.summary.collisions)));
        if self.is_summary {
            return out;
        }
        out.push('\n');
        self.write_variants(&mut out, width);
        if let Some(status) = &self.status {
            out.push_str(&sanitize(&status::deprecated_use(&status.document)));
        }
        if self.has_hints {
            out.push('\n');
            out.push_str(&match self.why() {
                Some(why) => sanitize(&why.to_text()),
                None => "ranking: by the server itself, without an explanation\n".to_owned(),
            });
        }
        out
    }

    fn write_variants(&self, out: &mut String, width: usize) {
        if self
            .variants
            .iter()
            .all(|variant| variant.definition.is_none())
        {
            out.push_str("no variants\n");
            return;
        }
        out.push_str("variants, best first\n");
        let variants = || {
            let listed_variants = self.variants.iter();
            listed_variants
                .filter_map(|variant| Some((variant.definition.as_ref()?, variant.source)))
        };
        let indent = variants()
            .map(|(variant, _)| variant.id.as_str().len())
            .max()
            .unwrap_or(0)
            .min(24)
            + 4;
        for (variant, source) in variants() {
            let text = sanitize(&self.variant_details(variant, source));
            let mut id = format!("  {}", variant.id);
            for line in wrap(&text, width.saturating_sub(indent)) {
                let _ = writeln!(out, "{id:indent$}{line}");
                id.clear();
            }
        }
        if self.more && !self.is_known {
            out.push_str("  and more\n");
        }
    }

    /// Status, hints, deprecation and description of a variant.
    fn variant_details(&self, variant: &ServerVariant, source: Source) -> String {
        if source == Source::Selected {
            return "not advertised; the server does not describe it".to_owned();
        }
        let mut text = variant.status.as_str().to_owned();
        for (key, value) in &variant.hints {
            let _ = write!(text, " · {key}={value}");
        }
        if source == Source::Configured {
            text.push_str(" · not advertised");
        }
        if let Some(info) = &variant.deprecation_info {
            if !info.message.is_empty() {
                let _ = write!(text, "\n{}", info.message);
            }
            let replacement = info.replacement.as_ref().map(VariantId::as_str);
            let left = info.days_left(self.today);
            let farewell = deprecation_notice(replacement, info.removal_date.as_deref(), left);
            if !farewell.is_empty() {
                let _ = write!(text, "\n{farewell}");
            }
        }
        if !variant.description.is_empty() {
            let _ = write!(text, "\n{}", variant.description);
        }
        text
    }
}

/// The variant that changes nothing.
const STANDARD: &str = "standard";
