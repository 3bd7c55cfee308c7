//! `results`, `resources` and `prompts`: lists of rules that change what clients receive.

pub(super) mod prompts;
pub(super) mod resources;
pub(super) mod results;

use std::sync::Arc;

use mcp_vary::predicate::Predicate;
use mcp_vary_results::{Template, VariantScope};
use mcp_vary_view::Selection;

use super::clients::{self, Named};
use super::reader::{Located, Reader};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{self, Value};
use crate::key_spec::{KeySpec, ValueKind};
use crate::schema_builder::SchemaBuilder;
use crate::variables::Variables;
use crate::variants::selection;

/// A section of rules.
struct Section<D: 'static, R> {
    /// The key of the section in a configuration.
    name: &'static str,
    /// An example of a list of rules, for error messages.
    example: &'static str,
    /// A short example of one rule, for error messages.
    gist: &'static str,
    /// The keys of a rule: those of its scope, and its own.
    keys: [&'static [KeySpec<D>]; 2],
    /// Converts a draft to a rule. Returns `None` if the draft is invalid, which was reported.
    rule: fn(D, &mut Reader<'_>, &Located<'_>) -> Option<R>,
}

/// The items, variants and clients that a rule applies to.
#[derive(Default)]
struct RuleScope {
    items: Selection,
    variants: VariantScope,
    /// The variants that it names, with their places.
    named: Vec<Named>,
    when: Option<Predicate>,
    /// Also for clients that declared no features.
    everyone: bool,
}

/// A rule while it is read.
trait RuleDraft: Default + 'static {
    fn scope(&mut self) -> &mut RuleScope;
}

/// The descriptions of the keys of a [`RuleScope`], as far as the sections differ.
struct ScopeDescriptions {
    /// The key that selects the items, with its description.
    items: (&'static str, &'static str),
    /// The description and the default of `when`.
    when: (&'static str, &'static str),
    for_clients: &'static str,
}

/// The keys of a [`RuleScope`].
const fn scope_keys<D: RuleDraft>(descriptions: &ScopeDescriptions) -> [KeySpec<D>; 4] {
    [
        KeySpec {
            key: descriptions.items.0,
            about: descriptions.items.1,
            default: "",
            takes: ValueKind::Other(selection::shape, |reader, field, draft| {
                draft.scope().items = selection::read(reader, field);
            }),
        },
        KeySpec {
            key: "variants",
            about: "the variants that it applies in, by id; all without it",
            default: "",
            takes: ValueKind::Other(clients::variants_shape, |reader, field, draft| {
                let scope = draft.scope();
                let variants = clients::variants(reader, field, &mut scope.named);
                scope.variants = VariantScope::of(variants);
            }),
        },
        KeySpec {
            key: "when",
            about: descriptions.when.0,
            default: descriptions.when.1,
            takes: ValueKind::Other(SchemaBuilder::word, |reader, field, draft| {
                draft.scope().when = predicate(reader, field);
            }),
        },
        KeySpec {
            key: "for",
            about: descriptions.for_clients,
            default: "negotiating",
            takes: ValueKind::Other(
                |schema| schema.choice(FOR),
                |reader, field, draft| reader.choice(field, FOR, &mut draft.scope().everyone),
            ),
        },
    ]
}

impl<D: RuleDraft, R> Section<D, R> {
    /// Reads the list of rules. Adds the variants that they name to `named`.
    fn read(
        &self,
        reader: &mut Reader<'_>,
        field: &Located<'_>,
        named: &mut Vec<Named>,
    ) -> Arc<[R]> {
        let mut rules = Vec::new();
        for item in reader.items(field, self.example) {
            let mut draft = D::default();
            reader.settings(&item, &self.keys, &mut draft, self.gist);
            named.append(&mut draft.scope().named);
            if let Value::Table(_) = item.node.value {
                rules.extend((self.rule)(draft, reader, &item));
            }
        }
        rules.into()
    }

    /// Reads rules from a text that holds nothing else, so that they may name any variant.
    fn read_text(&self, text: &str) -> Result<Arc<[R]>, Diagnostics> {
        let none = |_: &str| None;
        let variables = Variables {
            environment: &none,
            files: None,
        };
        let mut reader = Reader::new(variables, &[]);
        let file = self.name.to_owned();
        let root = document::read(self.name, text).map_err(|all| sorted(&file, all))?;
        let path = file.clone();
        let field = Located { path, node: &root };
        let rules = self.read(&mut reader, &field, &mut Vec::new());
        match reader.diagnostics.is_empty() {
            true => Ok(rules),
            false => Err(sorted(&file, reader.diagnostics)),
        }
    }
}

fn sorted(file: &str, mut all: Vec<Diagnostic>) -> Diagnostics {
    all.sort_by_key(|diagnostic| diagnostic.at);
    let file = file.to_owned();
    Diagnostics { file, all }
}

/// Whether the table `field` has one of `keys`, even with an invalid value.
fn has_key(field: &Located<'_>, keys: &[&str]) -> bool {
    field.keys().iter().any(|key| keys.contains(key))
}

/// The values of `for`, and whether clients that declared no features are among them.
const FOR: &[(&str, bool)] = &[("negotiating", false), ("everyone", true)];

/// Reads a condition on a client's features.
fn predicate(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<Predicate> {
    let word = reader.word(field)?;
    match word.parse() {
        Ok(predicate) => Some(predicate),
        Err(error) => {
            let what = format!("is not a condition: {error}");
            reader.report(field, what, "write one like `agent & !interactive`");
            None
        }
    }
}

fn template(reader: &mut Reader<'_>, field: &Located<'_>) -> Option<Template> {
    let source = reader.text(field)?;
    match Template::new(&source) {
        Ok(template) => Some(template),
        Err(why) => {
            reader.report(field, why, "write Jinja, such as `{{ value.title }}`");
            None
        }
    }
}
