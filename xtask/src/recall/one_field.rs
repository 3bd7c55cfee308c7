//! The baseline: BM25 over one field, the name and the description of a tool.

use std::collections::BTreeMap;

use mcp_vary_search::terms;

use super::data::ListedTool;
use super::figures::as_float;

/// An index with the terms of [`mcp_vary_search`], so that only the ranking differs.
pub(super) struct OneField<'a> {
    tools: &'a [ListedTool],
    frequencies: Vec<BTreeMap<String, usize>>,
    lengths: Vec<usize>,
    having: BTreeMap<String, usize>,
}

impl<'a> OneField<'a> {
    pub(super) fn new(tools: &'a [ListedTool]) -> Self {
        let mut index = Self {
            tools,
            frequencies: Vec::new(),
            lengths: Vec::new(),
            having: BTreeMap::new(),
        };
        for tool in tools {
            let terms = terms(&format!("{} {}", tool.name, tool.description));
            index.lengths.push(terms.len());
            let mut frequencies = BTreeMap::new();
            for term in terms {
                *frequencies.entry(term).or_default() += 1;
            }
            for term in frequencies.keys() {
                *index.having.entry(term.clone()).or_default() += 1;
            }
            index.frequencies.push(frequencies);
        }
        index
    }

    /// The names of the best tools, at most `limit`.
    pub(super) fn search(&self, query: &str, limit: usize) -> Vec<&'a str> {
        let terms = terms(query);
        let scored = self.tools.iter().zip(&self.frequencies).zip(&self.lengths);
        let mut scored: Vec<(f64, &str)> = scored
            .map(|((tool, frequencies), length)| {
                (self.score(&terms, frequencies, *length), tool.name.as_str())
            })
            .filter(|(score, _)| *score > 0.0)
            .collect();
        // The sort is stable: tools with the same score stay in their order.
        scored.sort_by(|(left, _), (right, _)| right.total_cmp(left));
        scored.truncate(limit);
        scored.into_iter().map(|(_, name)| name).collect()
    }

    fn score(&self, terms: &[String], frequencies: &BTreeMap<String, usize>, length: usize) -> f64 {
        let count = as_float(self.tools.len());
        let average = as_float(self.lengths.iter().sum()) / count;
        let of_terms = terms.iter().filter_map(|term| {
            let frequency = as_float(*frequencies.get(term)?);
            let having = as_float(*self.having.get(term)?);
            let rarity = (1.0 + (count - having + 0.5) / (having + 0.5)).ln();
            let relative = 1.0 - B + B * as_float(length) / average;
            Some(rarity * frequency * (K1 + 1.0) / (frequency + K1 * relative))
        });
        of_terms.sum()
    }
}

/// The usual values.
const K1: f64 = 1.2;
const B: f64 = 0.75;
