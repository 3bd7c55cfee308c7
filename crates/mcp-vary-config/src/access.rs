//! `access`: what clients may see and use.

mod pattern;
mod rule;
mod when;

pub(super) use self::when::{read as read_when, shape as when_shape};

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_vary::variant::{Status, VariantId};
use mcp_vary_access::{AccessPolicy, AccessRule, MAX_RULES, Principal};
use mcp_vary_catalog::merge::Naming;
use mcp_vary_catalog::variant_set::VariantSet;
use mcp_vary_settings::access::AccessSettings;
use mcp_vary_settings::config::Config;
use mcp_vary_view::Pattern;
use serde_json::json;

use self::pattern::PlacedPattern;
use self::rule::{EXAMPLE, PartialRule, SETTINGS};
use super::clients::Named;
use super::reader::{Located, Reader, did_you_mean, meant_or_known};
use super::schema_builder::SchemaBuilder;
use super::server::Servers;
use super::variants::Declared;
use crate::diagnostic::{Diagnostic, Position, nearest};
use crate::document::Value;

/// `access` while the file is read.
#[derive(Default)]
pub(super) struct PartialAccess {
    rules: Vec<AccessRule>,
    /// The patterns of all rules.
    patterns: Vec<PlacedPattern>,
}

/// Reads the list of rules.
pub(super) fn read(
    reader: &mut Reader<'_>,
    field: &Located<'_>,
    into: &mut PartialAccess,
    named: &mut Vec<Named>,
) {
    let items = reader.items(field, &format!("[{EXAMPLE}]"));
    if items.is_empty() && matches!(field.node.value, Value::List(_)) {
        let fix = "write a rule, or leave it out to allow everything";
        return reader.report(field, "is empty, so that nothing is allowed", fix);
    }
    let items = reader.at_most(MAX_RULES, field, items);
    let mut names = BTreeMap::<String, Position>::new();
    for item in items {
        let before = reader.diagnostics.len();
        let mut draft = PartialRule::default();
        reader.settings(&item, &[SETTINGS], &mut draft, EXAMPLE);
        named.append(&mut draft.named);
        let fix = "add `when: {groups: ...}`, or `when: {anyone: on}` for everyone";
        reader.require(&item, &[("when", fix)]);
        if reader.diagnostics.len() > before {
            continue;
        }
        into.patterns
            .extend(draft.allow.iter().chain(&draft.deny).cloned());
        let Some(rule) = draft.finish(reader, &item) else {
            continue;
        };
        let first = rule
            .name()
            .and_then(|name| names.insert(name.to_owned(), item.node.at));
        if let Some(first) = first {
            let what = format!("is the name of the rule in line {}", first.line);
            let fix = "give each rule its own name, or none";
            reader.report(&item.deepest(&["name"]), what, fix);
            continue;
        }
        into.rules.push(rule);
    }
}

/// Adds a note for each rule that applies to nobody, if clients have keys alone: nobody knows the claims of tokens before.
pub(super) fn check_clients(reader: &mut Reader<'_>, root: &Located<'_>, config: &Config) {
    let tls = config.listener.tls.as_ref();
    let (Some(access), Some(authentication)) = (&config.access, &config.authentication) else {
        return;
    };
    let authenticator = &authentication.authenticator;
    if authenticator.tokens().is_some() || tls.is_some_and(|tls| tls.client_ca.is_some()) {
        return;
    }
    let anonymous = Arc::new(Principal::anonymous());
    let others = config.stdio_principal.iter().chain([&anonymous]);
    let known: Vec<_> = authenticator.keys().principals().chain(others).collect();
    let rules = reader.items(&root.deepest(&["access"]), EXAMPLE);
    for (item, rule) in rules.iter().zip(access.policy.rules()) {
        if !known.iter().any(|principal| rule.when().matches(principal)) {
            let what = format!(
                "applies to nobody: no key of `auth.keys` has `{}`",
                rule.when()
            );
            let fix = "give it to the `claims` of a key, or remove the rule";
            reader.note(&item.deepest(&["when"]), what, fix);
        }
    }
}

/// The names in `allow` and `deny`.
#[derive(Clone, Debug, Default)]
pub(super) struct AccessNames(Vec<AccessName>);

#[derive(Clone, Debug)]
struct AccessName {
    at: Position,
    path: String,
    pattern: Pattern,
    /// Whether it is also compared with the names on the servers.
    compares_upstream_name: bool,
    denies: bool,
}

impl AccessNames {
    /// A note for each pattern that fits none of `items`, each with its name for clients and on its server. What servers
    /// list as a template has other names as well, so patterns for URIs are left out.
    pub(super) fn unmatched(&self, items: &[(&str, &str)], servers: &[&str]) -> Vec<Diagnostic> {
        let is_unmatched = |name: &&AccessName| {
            let fits = |(id, upstream): &(&str, &str)| {
                name.pattern.matches(id)
                    || name.compares_upstream_name && name.pattern.matches(upstream)
            };
            !name.pattern.as_str().contains("://") && !items.iter().any(fits)
        };
        let ids: Vec<&str> = items.iter().map(|(id, _)| *id).collect();
        let notes = self.0.iter().filter(is_unmatched).map(|name| {
            let written = name.pattern.as_str();
            let what = format!("matches nothing now: `{written}`");
            let note = Diagnostic::new(name.at, name.path.as_str(), what);
            if let Some((server, tools)) = split_prefix(written, servers, &ids) {
                let fix = format!(
                    "names have no prefix here: write `{{server: {server}, tools: \"{tools}\"}}`"
                );
                return note.with_fix(fix);
            }
            let upstream = items
                .iter()
                .find(|(_, upstream)| name.pattern.matches(upstream));
            match upstream
                .map(|(id, _)| *id)
                .or_else(|| nearest(written, &ids))
            {
                Some(meant) => note.with_fix(did_you_mean(meant)),
                None if name.denies => note.with_fix("it will deny what the servers add later"),
                None => note,
            }
        });
        notes.collect()
    }
}

/// The server of `servers` with whose prefix a pattern begins, and what follows, if none of the names `ids` has that prefix.
fn split_prefix<'w>(
    written: &'w str,
    servers: &[&'w str],
    ids: &[&str],
) -> Option<(&'w str, &'w str)> {
    let mut split = servers.iter().filter_map(|server| {
        let prefix = format!("{server}_");
        let is_used = ids.iter().any(|id| id.starts_with(&prefix));
        let after = written.strip_prefix(&prefix)?;
        (!is_used).then_some((*server, after))
    });
    split.next()
}

impl PartialAccess {
    /// The names in all patterns.
    pub(super) fn names(&self) -> AccessNames {
        let named = self.patterns.iter().filter_map(|pattern| {
            Some(AccessName {
                at: pattern.at,
                path: pattern.path.clone(),
                pattern: pattern.name.clone()?,
                compares_upstream_name: pattern.server.is_some() || pattern.denies,
                denies: pattern.denies,
            })
        });
        AccessNames(named.collect())
    }

    /// Checks the rules against the rest of the file, whose top is `root`. `None` without rules, or after a mistake.
    pub(super) fn finish(
        self,
        reader: &mut Reader<'_>,
        root: &Located<'_>,
        naming: Naming,
        declared: &Declared,
        servers: &Servers,
    ) -> Option<AccessSettings> {
        let has = |key| root.keys().contains(&key);
        if !has("access") {
            return None;
        }
        if naming == Naming::OnCollision {
            let what = "is `on-collision`: the prefix of a name shows that another server has an item of this name, even if \
                 rules hide that item";
            let field = root.deepest(&["naming"]);
            reader.note(
                &field,
                what,
                "if clients must not learn that, write `always`",
            );
        }
        let field = root.deepest(&["access"]);
        if !has("auth") && !has("stdio-principal") {
            let what =
                "treats all clients alike: without `auth` and `stdio-principal` they are anonymous";
            reader.note(
                &field,
                what,
                "add `auth`, so that rules can tell clients apart",
            );
        }
        self.check_servers(reader, servers);
        if self.rules.is_empty() {
            return None;
        }
        self.check_variants(reader, &field, declared);
        let policy = reader.usable(&field, AccessPolicy::new(self.rules))?;
        Some(AccessSettings {
            policy: Arc::new(policy),
            trusted_annotations: Arc::new(servers.trusted_annotations.clone()),
        })
    }

    /// Adds a note for each rule that leaves its clients no stable variant.
    fn check_variants(&self, reader: &mut Reader<'_>, field: &Located<'_>, declared: &Declared) {
        let built_in = VariantSet::built_in();
        let variants = declared.variant_set.as_deref().unwrap_or(&built_in);
        let items = reader.items(field, EXAMPLE);
        // Those that servers offer are not known here.
        let may_be_stable = |id: &VariantId| {
            let known = variants.variants.iter().find(|known| known.id == *id);
            known.is_none_or(|known| known.status == Status::Stable)
        };
        for (item, rule) in items.iter().zip(&self.rules) {
            let ids = rule.variants();
            if ids.is_some_and(|ids| !ids.iter().any(may_be_stable)) {
                let what = "has no stable variant, which clients that choose none should get";
                reader.note(&item.deepest(&["variants"]), what, "add one");
            }
        }
    }

    /// Adds a note for each pattern that matches nothing of these servers.
    fn check_servers(&self, reader: &mut Reader<'_>, servers: &Servers) {
        if !reader.only.is_empty() {
            return;
        }
        let enabled = servers.enabled.iter().map(|server| &server.name);
        let names: Vec<&str> = enabled
            .chain(&servers.disabled)
            .map(String::as_str)
            .collect();
        for pattern in &self.patterns {
            let matches = |name: &str| {
                let server = pattern.server.as_ref();
                server.is_none_or(|server| server.matches(name))
            };
            let mut trusted = servers.trusted_annotations.iter();
            let is_trusted = trusted.any(|server| matches(server));
            let written = pattern.server.as_ref().map(|server| server.as_str());
            let (what, fix) = if !names.iter().any(|name| matches(name)) {
                let fix = meant_or_known(written.unwrap_or_default(), &names);
                ("matches no server", fix)
            } else if pattern.needs_trust && !is_trusted {
                let fix = "add `trust-annotations: on` to each server whose hints you trust";
                (
                    "allows nothing: hints count only where `trust-annotations` is on",
                    fix.to_owned(),
                )
            } else {
                continue;
            };
            reader.note_at(pattern.at, &pattern.path, what, fix);
        }
    }
}

/// The schema of `access`.
pub(super) fn shape(schema: &mut SchemaBuilder) -> serde_json::Value {
    let rule = schema.table("an access rule", &[SETTINGS]);
    let rule = schema.with_required(rule, &["when"]);
    let mut rules = schema.list(&rule);
    rules["minItems"] = json!(1);
    rules["maxItems"] = json!(MAX_RULES);
    rules
}
