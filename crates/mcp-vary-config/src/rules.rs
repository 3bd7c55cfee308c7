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
use crate::key_spec::{KeySpec, ValueKind, choice, value};
use crate::schema_builder::SchemaBuilder;
use crate::variables::Variables;
use crate::variants::selection;

/// A section of rules, each of which has a scope and an action `A`.
struct Section<A: 'static, R> {
    /// The key of the section in a configuration.
    name: &'static str,
    /// An example of a list of rules, for error messages.
    example: &'static str,
    /// A short example of one rule, for error messages.
    gist: &'static str,
    keys: &'static [KeySpec<PartialRule<A>>],
    /// Converts a draft to a rule. Returns `None` if the draft is invalid, which was reported.
    rule: fn(PartialRule<A>, &mut Reader<'_>, &Located<'_>) -> Option<R>,
}

/// A rule while it is read: the items, variants and clients that it applies to, and what it does.
#[derive(Default)]
struct PartialRule<A> {
    items: Selection,
    variants: VariantScope,
    /// The variants that it names, with their positions.
    named: Vec<Named>,
    when: Option<Predicate>,
    /// Also for clients that declared no features.
    everyone: bool,
    action: A,
}

/// The items that a rule applies to.
const fn items<A>() -> ValueKind<PartialRule<A>> {
    value!(selection::shape, selection::read, |rule| rule.items)
}

/// The variants that a rule applies in.
const fn variants<A>() -> ValueKind<PartialRule<A>> {
    ValueKind::Other(clients::variants_shape, |reader, field, rule| {
        rule.variants = VariantScope::of(clients::variants(reader, field, &mut rule.named));
    })
}

/// The condition on the features of clients.
const fn when<A>() -> ValueKind<PartialRule<A>> {
    value!(SchemaBuilder::word, predicate, |rule| rule.when)
}

/// Whether a rule also applies to clients that declared no features.
const fn audience<A>() -> ValueKind<PartialRule<A>> {
    choice!(FOR, |rule| &mut rule.everyone)
}

impl<A: Default, R> Section<A, R> {
    /// Reads the list of rules. Adds the variants that they name to `named`.
    fn read(
        &self,
        reader: &mut Reader<'_>,
        field: &Located<'_>,
        named: &mut Vec<Named>,
    ) -> Arc<[R]> {
        let mut rules = Vec::new();
        for item in reader.items(field, self.example) {
            let mut draft = PartialRule::default();
            reader.settings(&item, &[self.keys], &mut draft, self.gist);
            named.append(&mut draft.named);
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
            file: "FILE",
        };
        let mut reader = Reader::new(variables, &[]);
        let file = self.name.to_owned();
        let root = document::read(self.name, text).map_err(|all| sorted(&file, all))?;
        let path = file.clone();
        let field = Located { path, node: &root };
        let rules = self.read(&mut reader, &field, &mut Vec::new());
        if reader.diagnostics.is_empty() {
            return Ok(rules);
        }
        Err(sorted(&file, reader.diagnostics))
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
