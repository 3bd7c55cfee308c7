//! How many tokens the tools of each variant cost in a list.

use std::sync::{Arc, Weak};

use mcp_vary::json::{Members, elements};
use mcp_vary_base::lock::Lock;
use mcp_vary_view::model_tool;
use mcp_vary_wire::revision::Era;

use crate::catalog::Catalog;
use crate::index::VariantIndex;
use crate::listing::ListKind;
use crate::variant_set::VariantSet;
use crate::view::View;

/// Counts the tokens of lists.
#[derive(Debug)]
pub struct ListTokens {
    count: fn(&str) -> usize,
    counted: Lock<Counted>,
}

/// The tokens that were counted last, by variant, and the catalogue that they are of.
#[derive(Debug, Default)]
struct Counted {
    catalog: Weak<Catalog>,
    tokens: Vec<(String, usize)>,
}

impl ListTokens {
    /// Counts with this function.
    #[must_use]
    pub fn new(count: fn(&str) -> usize) -> Self {
        Self {
            count,
            counted: Lock::default(),
        }
    }

    /// The tokens of the list of each variant, in the order of configuration. They are counted once for each catalogue,
    /// which takes a while. `further` returns the tools that end a list, JSON texts.
    pub fn of(
        &self,
        catalog: &Arc<Catalog>,
        variants: &VariantSet,
        further: impl Fn(&View) -> Vec<String>,
    ) -> Vec<(String, usize)> {
        let now = Arc::downgrade(catalog);
        {
            let counted = self.counted.lock();
            if counted.catalog.ptr_eq(&now) {
                return counted.tokens.clone();
            }
        }
        let variants = VariantIndex::enumerate(variants.variants.as_slice());
        let counts = variants.filter_map(|(index, variant)| {
            let view = catalog.view(ListKind::Tools, index.declared_view())?;
            let tokens = tokens_of(view, &further(view), self.count);
            Some((variant.id.to_string(), tokens))
        });
        let tokens: Vec<_> = counts.collect();
        *self.counted.lock() = Counted {
            catalog: now,
            tokens: tokens.clone(),
        };
        tokens
    }
}

/// The tokens that a model gets of all pages of a list and of `further` tools: clients forward a part of each tool.
fn tokens_of(view: &View, further: &[String], count: fn(&str) -> usize) -> usize {
    let mut tools = Vec::new();
    let mut position = None;
    while let Ok(page) = view.page(Era::Modern, position.as_deref()) {
        let (start, end) = page.result(None);
        let result = String::from_utf8_lossy(start) + &*end;
        let result = Members::parse(&result).unwrap_or_default();
        let listed = elements(result.get("tools").unwrap_or("[]"));
        tools.extend(listed.into_iter().flatten().map(model_tool));
        match page.next() {
            Some(next) => position = Some(view.cursor_at(next)),
            None => break,
        }
    }
    tools.extend(further.iter().map(|tool| model_tool(tool)));
    count(&format!("[{}]", tools.join(",")))
}
