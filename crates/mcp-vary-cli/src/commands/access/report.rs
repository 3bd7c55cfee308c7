//! What `vary access explain` shows.

use std::fmt::Write as _;

use mcp_vary::variant::{ServerVariant, VariantId};
use mcp_vary_access::{
    AccessClass, AccessPolicy, AccessReport, AccessRule, Claims, Decision, ItemKind, ItemReport,
    Reason, RuleIndex,
};
use mcp_vary_gateway::ServerReport;
use serde_json::{Value, json};

use crate::print::sanitize_line;
use crate::print::servers::{is_up, reason, state};
use crate::print::table::table;

/// What a client may see and use, and why.
pub(crate) struct Explanation<'a> {
    pub(crate) policy: &'a AccessPolicy,
    pub(crate) class: &'a AccessClass,
    pub(crate) claims: &'a Claims,
    pub(crate) report: AccessReport,
    /// All variants of the configuration.
    pub(crate) variants: Vec<ServerVariant>,
    pub(crate) servers: Vec<ServerReport>,
}

/// A variant, and whether the client is offered it.
struct VariantRow<'a> {
    id: &'a VariantId,
    is_offered: bool,
    /// The rules that offer it or pin it.
    rules: Vec<String>,
}

impl Explanation<'_> {
    /// Whether every server is up, so that no item is missing.
    pub(crate) fn is_complete(&self) -> bool {
        self.servers.iter().all(|server| is_up(&server.state))
    }

    /// The rules that apply.
    fn rules(&self) -> impl Iterator<Item = (RuleIndex, &AccessRule)> {
        let rules = self.class.rules().iter();
        rules.filter_map(|index| Some((index, self.policy.rule(index)?)))
    }

    /// The claims that rules use, and whether the client has each. Their values are not shown.
    fn used_claims(&self) -> Vec<(&str, bool)> {
        let names = self.policy.claim_names().into_iter();
        names
            .map(|name| (name, self.claims.get(name).is_some()))
            .collect()
    }

    fn variant_rows(&self) -> Vec<VariantRow<'_>> {
        let access = self.class.variants();
        let rows = self.variants.iter().map(|variant| {
            let names = |rule: &AccessRule| {
                let is_pinned = rule.is_pinned() && rule.variant() == Some(&variant.id);
                is_pinned || rule.variants().is_some_and(|ids| ids.contains(&variant.id))
            };
            let rules = self.rules().filter(|(_, rule)| names(rule));
            VariantRow {
                id: &variant.id,
                is_offered: access.offers(&variant.id),
                rules: rules.map(|(index, _)| self.policy.label(index)).collect(),
            }
        });
        rows.collect()
    }

    /// Whether the client has all scopes that one of the rules needs.
    fn has_scopes(&self, item: &ItemReport) -> bool {
        let allowing = item.reasons.iter().filter(|reason| !reason.denies);
        let mut scopes = allowing.map(|reason| &reason.scopes);
        scopes.any(|scopes| scopes.iter().all(|scope| self.claims.has_scope(scope)))
    }

    pub(crate) fn to_text(&self) -> String {
        let mut out = self.summary();
        self.write_rules(&mut out);
        self.write_variants(&mut out);
        self.write_items(&mut out);
        for why in self.servers.iter().filter_map(reason) {
            let _ = writeln!(out, "\nincomplete: {why}");
        }
        out
    }

    fn of_kind(&self, kind: ItemKind) -> impl Iterator<Item = &ItemReport> {
        let items = self.report.items.iter();
        items.filter(move |item| item.kind == kind)
    }

    /// How much of each kind the client sees, in one line.
    fn summary(&self) -> String {
        let parts = KINDS.iter().filter_map(|(kind, plural)| {
            let items = self.of_kind(*kind);
            let visible = items.filter(|item| item.decision.is_visible()).count();
            let all = self.of_kind(*kind).count();
            (all > 0).then(|| format!("{visible} of {all} {plural}"))
        });
        let counts: Vec<String> = parts.collect();
        if counts.is_empty() {
            "sees nothing: the servers list nothing\n".to_owned()
        } else {
            format!("sees {}\n", counts.join(", "))
        }
    }

    fn write_rules(&self, out: &mut String) {
        let mut rows = vec![["rules that apply", "when"].map(str::to_owned).to_vec()];
        let rules = self.rules();
        rows.extend(
            rules.map(|(index, rule)| vec![self.policy.label(index), rule.when().to_string()]),
        );
        match rows.len() {
            1 => out.push_str("\nno rule applies\n"),
            _ => {
                let _ = write!(out, "\n{}", table(&rows, 2));
            }
        }
        let used = self.used_claims().into_iter();
        let shown = used.map(|(name, is_present)| {
            if is_present {
                format!("{name} (present)")
            } else {
                format!("{name} (absent)")
            }
        });
        let claims: Vec<String> = shown.collect();
        if !claims.is_empty() {
            let _ = writeln!(out, "claims that rules use: {}", claims.join(", "));
        }
    }

    fn write_variants(&self, out: &mut String) {
        let access = self.class.variants();
        if self.variants.is_empty() {
            out.push_str("\nvariants are off\n");
            return;
        }
        let mut rows = vec![["variant", "offered", "by"].map(str::to_owned).to_vec()];
        for row in self.variant_rows() {
            let offered = match (row.is_offered, access.pin().is_some()) {
                (false, _) => "no",
                (true, true) => "pinned",
                (true, false) if access.default_variant() == Some(row.id) => "default",
                (true, false) => "yes",
            };
            let by = match (row.rules.is_empty(), row.is_offered) {
                (true, true) => "no rule names variants".to_owned(),
                _ => row.rules.join(", "),
            };
            rows.push(vec![row.id.to_string(), offered.to_owned(), by]);
        }
        let _ = write!(out, "\n{}", table(&rows, 3));
        if access.has_conflict() {
            out.push_str("rules pin different variants, so this client cannot use the gateway\n");
        }
    }

    fn write_items(&self, out: &mut String) {
        for (kind, plural) in KINDS {
            let items = self.of_kind(*kind);
            let rows = items.map(|item| {
                vec![
                    sanitize_line(&item.name),
                    item.server.clone(),
                    self.access(item).to_owned(),
                    reasons(item),
                ]
            });
            let head = [*plural, "server", "access", "decided by"];
            let head = std::iter::once(head.map(str::to_owned).to_vec());
            let rows: Vec<_> = head.chain(rows).collect();
            if rows.len() > 1 {
                let _ = write!(out, "\n{}", table(&rows, 4));
            }
        }
    }

    /// What the client may do with an item, in a few words.
    fn access(&self, item: &ItemReport) -> &'static str {
        match &item.decision {
            Decision::Hidden(_) => "hidden",
            Decision::Allowed(_) => "allowed",
            Decision::NeedsScopes(_) if self.has_scopes(item) => "allowed, has the scopes",
            Decision::NeedsScopes(_) => "visible, lacks scopes",
            Decision::Conditional(_) => "visible, depends on the call",
        }
    }

    pub(crate) fn to_json(&self) -> String {
        let access = self.class.variants();
        let rules = self.rules().map(|(index, rule)| {
            json!({"rule": self.policy.label(index), "when": rule.when().to_string()})
        });
        let used = self.used_claims().into_iter();
        let claims = used.map(|(name, present)| json!({"name": name, "present": present}));
        let rows = self.variant_rows().into_iter();
        let variants = rows.map(|row| {
            json!({
                "id": row.id,
                "offered": row.is_offered,
                "default": access.default_variant() == Some(row.id),
                "pinned": access.pin() == Some(row.id),
                "rules": row.rules,
            })
        });
        let items = self.report.items.iter();
        let servers = self.servers.iter();
        let shown = json!({
            "rules": rules.collect::<Value>(),
            "claims": claims.collect::<Value>(),
            "variants": variants.collect::<Value>(),
            "pinsConflict": access.has_conflict(),
            "items": items.map(|item| self.item_json(item)).collect::<Value>(),
            "servers": servers.map(server_json).collect::<Value>(),
        });
        format!("{shown:#}\n")
    }

    fn item_json(&self, item: &ItemReport) -> Value {
        let (decision, has_scopes) = match &item.decision {
            Decision::Hidden(_) => ("hidden", None),
            Decision::Allowed(_) => ("allowed", None),
            Decision::NeedsScopes(_) => ("needsScopes", Some(self.has_scopes(item))),
            Decision::Conditional(_) => ("conditional", None),
        };
        let reasons = item.reasons.iter().map(|reason| {
            json!({
                "rule": reason.label,
                "effect": if reason.denies { "deny" } else { "allow" },
                "pattern": reason.pattern,
                "scopes": reason.scopes,
                "if": reason.condition,
            })
        });
        json!({
            "kind": item.kind.as_str(),
            "name": item.name,
            "server": item.server,
            "visible": item.decision.is_visible(),
            "decision": decision,
            "hasScopes": has_scopes,
            "reasons": reasons.collect::<Value>(),
        })
    }
}

fn server_json(server: &ServerReport) -> Value {
    json!({"name": server.name, "state": state(&server.state), "error": reason(server)})
}

/// The rules that decided on an item.
fn reasons(item: &ItemReport) -> String {
    let reasons: Vec<String> = item.reasons.iter().map(Reason::to_string).collect();
    if reasons.is_empty() {
        "no rule allows it".to_owned()
    } else {
        reasons.join(", ")
    }
}

/// The kinds of items that servers list, in the order in which they are shown.
const KINDS: &[(ItemKind, &str)] = &[
    (ItemKind::Tool, "tools"),
    (ItemKind::Prompt, "prompts"),
    (ItemKind::Resource, "resources"),
    (ItemKind::ResourceTemplate, "resource templates"),
];
