//! Where a file configures its variants.

use std::collections::BTreeMap;

use mcp_vary::variant::VariantId;

use crate::diagnostic::{Diagnostic, Position};
use crate::reader::Located;

/// The positions of a file's settings for variants, for errors that are only found when the servers are connected.
#[derive(Clone, Debug, Default)]
pub struct VariantSpans {
    /// The positions by path: `variants.brief.tools[0]`.
    all: BTreeMap<String, Position>,
    /// What each variant starts from.
    starts: BTreeMap<String, String>,
}

impl VariantSpans {
    /// Records the positions of a variant's settings.
    pub(super) fn add(&mut self, id: &str, field: &Located<'_>, at: Position) {
        self.all.insert(field.path.clone(), at);
        self.collect(field);
        let from = field.deepest(&["from"]);
        if from.path != field.path {
            self.starts.insert(id.to_owned(), from.written().to_owned());
        }
    }

    fn collect(&mut self, field: &Located<'_>) {
        for entry in field.node.entries() {
            let member = field.member(entry);
            self.all.insert(member.path.clone(), entry.at);
            self.collect(&member);
        }
        for item in field.items() {
            self.all.insert(item.path.clone(), item.node.at);
            self.collect(&item);
        }
    }

    /// Turns a problem of a variant with the connected servers into an error with a position in the file. The position
    /// may be in a variant that this one starts from.
    ///
    /// For a variant that the file does not declare, the position is the start of the file.
    pub fn diagnostic(
        &self,
        variant: &VariantId,
        diagnostic: &mcp_vary_view::ViewDiagnostic,
    ) -> Diagnostic {
        let (at, key) = self.position(variant.as_str(), diagnostic.key());
        Diagnostic::new(at, key, diagnostic.problem()).with_fix(diagnostic.fix())
    }

    /// The position of an override that is written with the server's own name: `tools.git_log.name` may be written as
    /// `tools.log.name`.
    fn by_upstream_name(&self, id: &str, key: &str) -> Option<(Position, String)> {
        let (part, name) = key.split_once('.')?;
        let start = format!("variants.{id}.overrides.{part}.");
        let after_prefix = name.match_indices('_').map(|(at, _)| &name[at + 1..]);
        let mut paths = after_prefix.map(|name| format!("{start}{name}"));
        paths.find_map(|path| Some((*self.all.get(&path)?, path)))
    }

    fn position(&self, id: &str, key: &str) -> (Position, String) {
        let of = |id: &str| {
            // A list is short for `include`, and overrides are in their own table.
            let short = key.replacen(".include[", "[", 1);
            let tried = [format!("overrides.{key}"), key.to_owned(), short];
            let mut paths = tried.iter().map(|key| format!("variants.{id}.{key}"));
            let found = paths.find_map(|path| Some((*self.all.get(&path)?, path)));
            found.or_else(|| self.by_upstream_name(id, key))
        };
        let mut at = id;
        // Cycles are rejected when the file is read, so this many steps are enough.
        for _ in 0..=self.starts.len() {
            if let Some(position) = of(at) {
                return position;
            }
            let Some(start) = self.starts.get(at) else {
                break;
            };
            at = start;
        }
        let variant_path = format!("variants.{id}");
        let position = self.all.get(&variant_path).copied();
        (
            position.unwrap_or(Position::START),
            format!("{variant_path}.{key}"),
        )
    }
}
