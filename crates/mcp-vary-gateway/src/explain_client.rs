//! What a client would get, and which step of the order decides that: for a person who asks, without a request.

mod call;
mod steps;

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

use http::HeaderMap;
use mcp_vary::extension::SERVER_VARIANT_META;
use mcp_vary::json;
use mcp_vary::variant::VariantId;
use mcp_vary_access::{
    AccessReport, Call, Claims, Decision, HiddenBy, ItemReport, Principal, Verdict,
};
use mcp_vary_catalog::access::access_item;
use mcp_vary_catalog::catalog::Catalog;
use mcp_vary_catalog::index::{VariantIndex, ViewIndex};
use mcp_vary_catalog::item::Item;
use mcp_vary_catalog::listing::ListKind;
use mcp_vary_catalog::merge::MergedList;
use mcp_vary_catalog::selection::rankings::Explanation;
use mcp_vary_catalog::selection::rules::RuleOutcome;
use mcp_vary_catalog::selection::variant_selection::{
    DecidedBy, Offers, VariantReason, VariantRequest,
};
use mcp_vary_wire::client_name::ClientName;
use mcp_vary_wire::endpoint_path::{ENDPOINT, EndpointPath};
use mcp_vary_wire::meta::{CLIENT_CAPABILITIES, CLIENT_INFO};
use mcp_vary_wire::params::Params;
use mcp_vary_wire::response::RpcError;
use mcp_vary_wire::revision::{Era, Revision};

pub use self::call::{ClientCall, ClientResponse};
use self::steps::Steps;
use crate::gateway::Gateway;
use crate::pipeline::capabilities::ParsedCapabilities;
use crate::pipeline::experiments::Identity;
use crate::pipeline::snapshot::ConfigSnapshot;
use crate::pipeline::variant_selection::Candidates;
use crate::pool::access::AllowedVariants;

/// A client, as far as somebody knows it.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "who asks writes it out")]
pub struct ClientDescription {
    /// The params of its `initialize`, JSON text; `None` for a client without sessions.
    pub initialize: Option<String>,
    /// The `_meta` of its requests, JSON text.
    pub meta: Option<String>,
    /// The headers of its requests.
    pub headers: HeaderMap,
    /// The path that it connects to; `/mcp` without one.
    pub path: Option<String>,
    /// The claims of its access token, JSON text.
    pub claims: Option<String>,
    /// The name of its API key.
    pub key: Option<String>,
    /// The name that a tool has at its server, if no other tools are asked about.
    pub tool: Option<String>,
}

/// What a client would get, and why.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientExplanation {
    /// Its variant; `None` if its request would be refused, or variants are off.
    pub variant: Option<VariantId>,
    /// What selects the variant: the name of a [`DecidedBy`].
    pub reason: &'static str,
    /// The rule that does: `clients[0]`, `variant`, the name of an experiment, or that of an access rule.
    pub rule: Option<String>,
    /// Each step of the order, the first one that can decide first.
    pub steps: Vec<ExplainedStep>,
    /// The name that it gives itself.
    pub client: Option<ClientName>,
    /// The features that it declares, or that are assumed for it.
    pub features: Vec<String>,
    /// How the variants rank by its hints.
    pub ranking: Explanation,
    /// The access rules that apply to it, each with its `when`.
    pub rules: Vec<String>,
    /// Each tool of each server that is asked about.
    pub tools: Vec<ExplainedTool>,
}

/// A step of the order by which the variant of a client is selected.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ExplainedStep {
    /// Its name.
    pub step: &'static str,
    /// Whether it decides.
    pub decided: bool,
    /// What it finds, as a sentence.
    pub detail: String,
}

/// A tool, and whether the client sees it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ExplainedTool {
    /// The name of the server.
    pub server: String,
    /// The name of the tool there.
    pub name: String,
    /// Its name for the client, or all that hides it.
    pub shown: Result<String, Vec<HiddenTool>>,
    /// The access rules that decided, each with what matches, and with scopes and expressions that decide at each call. Where
    /// those decide the same for each call, the rule by which they do comes first. Of a tool that no rule allows to the client,
    /// those that allow it to others.
    pub rules: Vec<String>,
    /// Whether access rules allow each call of it; `None` without such rules, and if the arguments decide.
    pub is_allowed: Option<bool>,
}

/// Why a client does not see a tool.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct HiddenTool {
    /// `access` or `variant`.
    pub by: &'static str,
    /// The rule, or the id of the variant.
    pub rule: Option<String>,
    /// A sentence.
    pub detail: String,
    /// Whether an entry for the tool in `tools` of the variant would not show it either.
    pub is_locked: bool,
}

impl Gateway {
    /// What a client would get of this gateway now, and why. Nothing is counted, no server or model is asked: where those rank
    /// variants, the client may get another order.
    ///
    /// # Errors
    ///
    /// When the description cannot be read. The error names the part.
    pub fn explain_client(
        &self,
        description: &ClientDescription,
    ) -> Result<ClientExplanation, String> {
        let snapshot = self.current();
        Ok(Question::read(&snapshot, description)?.answer())
    }

    /// Whether clients without a key or a token are refused over HTTP.
    pub fn requires_credential(&self) -> bool {
        let snapshot = self.current();
        let authentication = snapshot.config.authentication.as_ref();
        authentication.is_some_and(|settings| !settings.authenticator.allows_anonymous())
    }

    /// The names that [`ClientDescription::key`] can have.
    pub fn key_names(&self) -> Vec<String> {
        let snapshot = self.current();
        let names = key_principals(&snapshot).filter_map(|principal| principal.key_name());
        names.map(str::to_owned).collect()
    }
}

/// A description that was read.
struct Question<'a> {
    snapshot: &'a ConfigSnapshot,
    params: Params<'a>,
    /// The revision of a client with sessions.
    legacy: Option<Revision>,
    /// What the client says that it is, JSON text.
    info: Option<String>,
    /// Its capabilities, JSON text.
    capabilities: Option<String>,
    declared: Arc<ParsedCapabilities>,
    requested: VariantRequest,
    principal: Option<Arc<Principal>>,
    /// The name of the tools that are asked about; all without it.
    tool: Option<&'a str>,
}

impl<'a> Question<'a> {
    fn read(
        snapshot: &'a ConfigSnapshot,
        description: &'a ClientDescription,
    ) -> Result<Self, String> {
        let (name, text, era) = match (&description.initialize, &description.meta) {
            (Some(initialize), _) => ("initialize", Some(initialize.as_str()), Era::Legacy),
            (None, _) => ("meta", None, Era::Modern),
        };
        let mut params = Params::read(text).map_err(|_| format!("`{name}` cannot be read"))?;
        if let Some(meta) = &description.meta {
            params.meta = json::Members::parse(meta).map_err(|error| format!("`meta`: {error}"))?;
        }
        let member = |initialize: &str, meta: &str| match era {
            Era::Legacy => params.members.get(initialize).map(str::to_owned),
            Era::Modern => params.meta.get(meta).map(str::to_owned),
        };
        let info = member("clientInfo", CLIENT_INFO);
        let capabilities = member("capabilities", CLIENT_CAPABILITIES);
        let parsed = snapshot.parse_capabilities(capabilities.as_deref().unwrap_or("{}"));
        let written = params.members.get_str("protocolVersion");
        let known = written.and_then(|text| Revision::parse(&text));
        let revision = known.filter(|revision| revision.era() == Era::Legacy);
        let legacy = (era == Era::Legacy).then(|| revision.unwrap_or(Revision::LATEST_LEGACY));
        let declared = parsed.map_err(|error| format!("`{name}`: {}", error.message()))?;
        let path = description.path.as_deref().unwrap_or(ENDPOINT);
        let path = EndpointPath::of_request(path).ok_or_else(|| {
            format!("`path` is not one of the MCP endpoint; write {ENDPOINT} or {ENDPOINT}/v/ID")
        })?;
        let selection = &snapshot.config.selection;
        let requested = VariantRequest::read(&path, &description.headers, selection);
        let principal = principal(snapshot, description)?;
        Ok(Self {
            snapshot,
            params,
            legacy,
            info,
            capabilities,
            declared,
            requested,
            principal,
            tool: description.tool.as_deref(),
        })
    }

    fn answer(&self) -> ClientExplanation {
        let snapshot = self.snapshot;
        let selector = &snapshot.selector;
        let allowed = snapshot.allowed_variants(self.principal.as_ref());
        let info = self.info.as_deref();
        let outcome = selector.rules.outcome(info, &self.requested);
        let offers = self.offers(allowed.as_ref(), &outcome);
        let selected = offers.and_then(|offers| Ok((self.selected(&offers)?, offers)));
        let steps = Steps {
            question: self,
            allowed: allowed.as_deref(),
            outcome: &outcome,
        };
        let catalog = snapshot.pool.base().catalog.current();
        let (rules, report) = self.access(&catalog);
        let features = self
            .declared
            .features
            .as_ref()
            .or(outcome.features.as_ref());
        let tags = features.iter().flat_map(|features| features.tags());
        let mut rule = None;
        let (variant, reason, steps, tools) = match selected {
            Ok(((index, reason), offers)) => {
                let id = self.id_of(index).filter(|_| snapshot.config.variants);
                let views = &snapshot.variant_set;
                let view = views.presented_view(index, outcome.presentation);
                let tools = self.tools(&catalog, view, report.as_ref());
                let explained = steps.explained(&reason, &offers, index);
                rule = reason.rule.as_deref().map(str::to_owned);
                (id.cloned(), reason.by.as_str(), explained, tools)
            }
            Err(refusal) => (None, "refused", steps.refused(&refusal), Vec::new()),
        };
        ClientExplanation {
            variant,
            reason,
            rule,
            steps,
            client: info.map(ClientName::read),
            features: tags.map(ToString::to_string).collect(),
            ranking: selector.rankings.explain(&self.declared.variant_hints),
            rules,
            tools,
        }
    }

    /// The variants that the client is offered.
    fn offers(
        &self,
        allowed: Option<&Arc<AllowedVariants>>,
        outcome: &RuleOutcome,
    ) -> Result<Offers, RpcError> {
        let selector = &self.snapshot.selector;
        let visible = allowed.map(|allowed| &*allowed.variants);
        let ranked = selector.ranked_by_rules(&self.declared, visible);
        let candidates = Candidates {
            order: &ranked.order,
            allowed: allowed.cloned(),
            outcome: Some(outcome),
        };
        let by_experiment = |offers: &Offers| {
            let identity = Identity::of(self.principal.as_ref(), None);
            let hints = &self.declared.variant_hints;
            let participation = self.snapshot.experiments.assign(hints, identity, offers)?;
            Some(participation.choice())
        };
        let mut offers =
            selector.select(&candidates, &self.requested, &self.params, by_experiment)?;
        selector.restrict_to_offered(&mut offers);
        Ok(offers)
    }

    /// The variant of a request, and why: that of the selector in `_meta`, or else the default.
    fn selected(&self, offers: &Offers) -> Result<(VariantIndex, VariantReason), RpcError> {
        let Some(requested) = self.params.meta.get(SERVER_VARIANT_META) else {
            return Ok((offers.default_variant(), offers.reason.clone()));
        };
        let id = json::unquoted(requested);
        let known = id.and_then(|id| self.snapshot.variant_index(&id));
        let allowed = known.filter(|index| offers.allows(*index));
        let index = allowed.ok_or_else(|| {
            let requested = json::to_value(requested).unwrap_or_default();
            self.snapshot.selector.invalid_variant(offers, &requested)
        })?;
        Ok((index, DecidedBy::Selector.into()))
    }

    fn id_of(&self, index: VariantIndex) -> Option<&VariantId> {
        self.snapshot.variant_set.id(index)
    }

    /// The access rules that apply, and what they decide on each tool of the merged list.
    fn access(&self, catalog: &Catalog) -> (Vec<String>, Option<AccessReport>) {
        let Some(access) = &self.snapshot.config.access else {
            return (Vec::new(), None);
        };
        let tools = self.merged_tools(catalog);
        let described = tools.map(|(item, server)| {
            let is_trusted = access.trusted_annotations.contains(server);
            access_item(ListKind::Tools, item, server, is_trusted)
        });
        let items: Vec<_> = described.collect();
        let class = match &self.principal {
            Some(principal) => access.policy.class_of(principal),
            None => access.policy.class_of(&Principal::anonymous()),
        };
        let report = access.policy.explain(&class, &items);
        let rules = report.rules().map(str::to_owned).collect();
        (rules, Some(report))
    }

    fn tools(
        &self,
        catalog: &Catalog,
        view: ViewIndex,
        report: Option<&AccessReport>,
    ) -> Vec<ExplainedTool> {
        let config = self.snapshot.variant_set.config(view);
        let listed = catalog.view(ListKind::Tools, view);
        let names = listed.into_iter().flat_map(|listed| listed.tool_names());
        let shown: BTreeMap<_, _> = names
            .map(|(server, name, shown)| ((server, name), shown))
            .collect();
        let mut items = report.into_iter().flat_map(|report| &report.items);
        let tools = self.merged_tools(catalog).map(|(item, server)| {
            let decided = items.next();
            let by_access = decided.and_then(hidden_by_access);
            let verdict =
                decided.and_then(|report| self.verdict(item, server, report, &config.variant.id));
            let rules = decided.map_or_else(Vec::new, |report| match report.decision {
                Decision::Hidden(HiddenBy::Default) => self.rules_for_others(item, server),
                _ => report.reasons_of(verdict.as_ref()),
            });
            let tool = shown.get(&(server, &*item.item_ref.upstream_name));
            let by_variant = |detail: String, is_locked| HiddenTool {
                by: "variant",
                rule: Some(config.variant.id.to_string()),
                detail,
                is_locked,
            };
            let left_out = || {
                let reason = config.why_hidden(item, server)?;
                Some(by_variant(reason.detail, reason.is_locked))
            };
            let other = "it lists another tool under this name, or the list of another server";
            ExplainedTool {
                server: server.to_owned(),
                name: item.item_ref.upstream_name.to_string(),
                shown: match (by_access, tool) {
                    (None, Some(shown)) => Ok((*shown).to_owned()),
                    (Some(hidden), _) => Err(iter::once(hidden).chain(left_out()).collect()),
                    (None, None) => {
                        let why = left_out().unwrap_or_else(|| by_variant(other.to_owned(), true));
                        Err(vec![why])
                    }
                },
                rules,
                is_allowed: verdict.map(|verdict| matches!(verdict, Verdict::Allowed(_))),
            }
        });
        tools.collect()
    }

    /// What access rules decide on each call of a tool; `None` without rules, and if the arguments decide.
    fn verdict(
        &self,
        item: &Item,
        server: &str,
        report: &ItemReport,
        variant: &VariantId,
    ) -> Option<Verdict> {
        let access = self.snapshot.config.access.as_ref()?;
        let anonymous = Principal::anonymous();
        let is_trusted = access.trusted_annotations.contains(server);
        let call = Call {
            principal: self.principal.as_deref().unwrap_or(&anonymous),
            item: access_item(ListKind::Tools, item, server, is_trusted),
            variant,
            arguments: None,
        };
        access.policy.check_all(&report.decision, &call)
    }

    /// The access rules that allow a tool to others.
    fn rules_for_others(&self, item: &Item, server: &str) -> Vec<String> {
        let Some(access) = &self.snapshot.config.access else {
            return Vec::new();
        };
        let is_trusted = access.trusted_annotations.contains(server);
        let tool = access_item(ListKind::Tools, item, server, is_trusted);
        access.policy.rules_for_others(&tool)
    }

    /// The tools that are asked about as they are merged, each with its server.
    fn merged_tools<'c>(&self, of: &'c Catalog) -> impl Iterator<Item = (&'c Arc<Item>, &'c str)> {
        let all = of.lists().map(|lists| &lists.merged);
        let lists = all.filter(|merged| merged.kind == ListKind::Tools);
        let tools = lists.flat_map(MergedList::items_with_server);
        let only = self.tool;
        let is_asked = move |name: &str| only.is_none_or(|tool| tool == name);
        tools.filter(move |(item, _)| is_asked(&item.item_ref.upstream_name))
    }
}

fn hidden_by_access(item: &ItemReport) -> Option<HiddenTool> {
    let Decision::Hidden(by) = &item.decision else {
        return None;
    };
    let is_by_rule = matches!(by, HiddenBy::Rule(_));
    let denied = is_by_rule.then(|| item.reasons.first()).flatten();
    Some(HiddenTool {
        by: "access",
        rule: denied.map(|reason| reason.label.clone()),
        detail: match denied {
            Some(reason) => format!("the rule `{}` denies it: {}", reason.label, reason.pattern),
            None => "no access rule that applies to the client allows it".to_owned(),
        },
        is_locked: true,
    })
}

/// The client's principal, by its claims or the name of its key.
fn principal(
    snapshot: &ConfigSnapshot,
    description: &ClientDescription,
) -> Result<Option<Arc<Principal>>, String> {
    if let Some(claims) = &description.claims {
        let claims = Claims::from_json(claims).map_err(|error| format!("`claims`: {error}"))?;
        // Which issuer and subject it is does not matter to rules: those are claims as well.
        let token = Principal::token("page", "page", claims);
        let principal = token.map_err(|error| format!("`claims`: {error}"))?;
        return Ok(Some(Arc::new(principal)));
    }
    let Some(name) = &description.key else {
        return Ok(None);
    };
    let known = key_principals(snapshot).find(|principal| principal.key_name() == Some(name));
    let found = known.ok_or_else(|| format!("`key`: `auth.keys` has no key `{name}`"))?;
    Ok(Some(Arc::clone(found)))
}

fn key_principals(snapshot: &ConfigSnapshot) -> impl Iterator<Item = &Arc<Principal>> {
    let authentication = snapshot.config.authentication.as_ref();
    let keys = authentication.map(|settings| settings.authenticator.keys());
    keys.into_iter().flat_map(|keys| keys.principals())
}
