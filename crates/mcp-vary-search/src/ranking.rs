//! The ranking of the tools for a query.

use std::cmp::Ordering;

use crate::index::{Document, Posting, ToolIndex};
use crate::query::{Clause, Query, Word};
use crate::stem::stem;
use crate::tool::FIELDS;

/// The results of one search, at most.
pub const MAX_RESULTS: usize = 100;

/// A tool that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Match {
    /// Its position in the index.
    pub position: usize,
    /// How well it matches: more than 0, to be compared within one result only.
    pub score: f64,
}

impl ToolIndex {
    /// The tools that match `query`, best first: at most `limit`, and at most [`MAX_RESULTS`].
    ///
    /// Tools with the same score are in the order of their positions. Tools that share no word with the query are not
    /// found at all.
    pub fn search(&self, query: &Query, limit: usize) -> Vec<Match> {
        let most = limit.min(MAX_RESULTS);
        let mut scores = Scores::new(self);
        for clause in query.clauses() {
            scores.add(clause);
        }
        let mut found = scores.finish();
        let candidates = (most * CANDIDATES_PER_RESULT).max(MIN_CANDIDATES);
        keep_best(&mut found, candidates);
        self.mix_servers(&mut found);
        found.truncate(most);
        found
    }

    /// Sorts again: each further tool of one server counts less than the one before.
    fn mix_servers(&self, found: &mut [Match]) {
        let mut factors = vec![1.0; self.server_bound()];
        for result in found.iter_mut() {
            let document = self.document(as_number(result.position));
            let server = document.map(|document| document.server as usize);
            if let Some(factor) = server.and_then(|server| factors.get_mut(server)) {
                result.score *= *factor;
                *factor *= FURTHER_TOOL;
            }
        }
        found.sort_unstable_by(best_first);
    }
}

/// The scores of all tools for one query.
struct Scores<'a> {
    index: &'a ToolIndex,
    weights: LengthWeights,
    /// The score of each tool for one clause, and the sum of the squares over the clauses before it.
    of_clause: Vec<f64>,
    squares: Vec<f64>,
    /// The tools whose `of_clause` is not 0.
    touched: Vec<u32>,
}

impl<'a> Scores<'a> {
    fn new(index: &'a ToolIndex) -> Self {
        Self {
            index,
            weights: LengthWeights::new(index),
            of_clause: vec![0.0; index.len()],
            squares: vec![0.0; index.len()],
            touched: Vec::new(),
        }
    }

    /// Adds the squares of the scores for `clause`: one clause that matches well counts more than two that match a little.
    fn add(&mut self, clause: &Clause) {
        for word in &clause.keywords {
            match self.index.postings(&word.term) {
                Some(postings) => self.add_term(postings),
                None => self.add_halves(word),
            }
        }
        for compound in &clause.compounds {
            if let Some(postings) = self.index.postings(compound) {
                self.add_term(postings);
            }
        }
        for position in self.touched.drain(..) {
            let index = position as usize;
            let entries = (self.of_clause.get_mut(index), self.squares.get_mut(index));
            if let (Some(of_clause), Some(squares)) = entries {
                *squares += *of_clause * *of_clause;
                *of_clause = 0.0;
            }
        }
    }

    /// Searches for the two words that an unknown one consists of, as `filesystem` does.
    fn add_halves(&mut self, word: &Word) {
        if !word.written.is_ascii() || word.written.len() < 2 * SHORTEST_HALF {
            return;
        }
        for middle in SHORTEST_HALF..=word.written.len() - SHORTEST_HALF {
            let Some((first, second)) = word.written.split_at_checked(middle) else {
                continue;
            };
            let postings = |half: &str| {
                let mut term = half.to_owned();
                stem(&mut term);
                self.index.postings(&term)
            };
            if let Some((first, second)) = postings(first).zip(postings(second)) {
                self.add_term(first);
                self.add_term(second);
                return;
            }
        }
    }

    fn add_term(&mut self, postings: &[Posting]) {
        let weight = rarity(self.index.count(), postings.len());
        for posting in postings {
            let Some(document) = self.index.document(posting.position) else {
                continue;
            };
            let frequency = self.weights.frequency(posting, document);
            if let Some(score) = self.of_clause.get_mut(posting.position as usize) {
                if *score == 0.0 {
                    self.touched.push(posting.position);
                }
                *score += weight * frequency / (frequency + SATURATION);
            }
        }
    }

    /// The tools that match, by position, each with a share of what its server's tools score on average.
    fn finish(self) -> Vec<Match> {
        let mut of_server = vec![0.0; self.index.server_bound()];
        let mut found = Vec::new();
        let mut servers = Vec::new();
        for (position, squares) in self.squares.iter().enumerate() {
            if *squares == 0.0 {
                continue;
            }
            let Some(document) = self.index.document(as_number(position)) else {
                continue;
            };
            let score = squares.sqrt();
            if let Some(sum) = of_server.get_mut(document.server as usize) {
                *sum += score;
            }
            found.push(Match { position, score });
            servers.push(document.server);
        }
        for (result, server) in found.iter_mut().zip(servers) {
            let sum = of_server.get(server as usize).copied().unwrap_or_default();
            result.score += sum * SERVER_SHARE / f64::from(self.index.tools_of(server).max(1));
        }
        found
    }
}

/// The weight of one occurrence of a term in a field, by the length of the field.
struct LengthWeights([[f64; 256]; FIELDS]);

impl LengthWeights {
    fn new(index: &ToolIndex) -> Self {
        let mut weights = [[0.0; 256]; FIELDS];
        let fields = weights.iter_mut().zip(FIELD_WEIGHTS).zip(index.lengths());
        for ((of_length, field), total) in fields {
            let average = as_float(total) / f64::from(index.count().max(1));
            for (length, weight) in (0_u8..=255).zip(of_length.iter_mut()) {
                let relative = if average > 0.0 {
                    f64::from(length) / average
                } else {
                    1.0
                };
                *weight = field.weight / (1.0 - field.by_length + field.by_length * relative);
            }
        }
        Self(weights)
    }

    /// How often `document` has the term, in occurrences of a field of weight 1 and average length.
    fn frequency(&self, posting: &Posting, document: &Document) -> f64 {
        let fields = self.0.iter().zip(posting.counts).zip(document.lengths);
        let mut frequency = 0.0;
        for ((of_length, count), length) in fields {
            if count > 0 {
                let weight = of_length
                    .get(usize::from(length))
                    .copied()
                    .unwrap_or_default();
                frequency += f64::from(count) * weight;
            }
        }
        frequency
    }
}

/// The inverse document frequency of a term that `having` of `count` tools have. It is never negative.
fn rarity(count: u32, having: usize) -> f64 {
    let having = f64::from(as_number(having));
    (1.0 + (f64::from(count) - having + 0.5) / (having + 0.5)).ln()
}

/// Sorts `found`, best first, and drops all but the best `count`.
fn keep_best(found: &mut Vec<Match>, count: usize) {
    if found.len() > count {
        found.select_nth_unstable_by(count, best_first);
        found.truncate(count);
    }
    found.sort_unstable_by(best_first);
}

fn best_first(left: &Match, right: &Match) -> Ordering {
    let by_score = right.score.total_cmp(&left.score);
    by_score.then(left.position.cmp(&right.position))
}

fn as_number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Sums of lengths are far below 2^53.
#[expect(clippy::cast_precision_loss, reason = "lengths of tools are small")]
fn as_float(total: u64) -> f64 {
    total as f64
}

/// What an occurrence in a field counts, and how much less in a long one: 0 not at all, 1 inversely.
#[derive(Clone, Copy)]
struct FieldWeight {
    weight: f64,
    by_length: f64,
}

/// Decision 0038 says where these figures come from. Half or twice of each changes the result by a query or two of a
/// hundred.
const FIELD_WEIGHTS: [FieldWeight; FIELDS] = [
    FieldWeight {
        weight: 4.0,
        by_length: 0.6,
    }, // name
    FieldWeight {
        weight: 1.0,
        by_length: 0.5,
    }, // server
    FieldWeight {
        weight: 2.0,
        by_length: 0.6,
    }, // title
    FieldWeight {
        weight: 1.5,
        by_length: 0.6,
    }, // first sentence
    FieldWeight {
        weight: 0.5,
        by_length: 0.75,
    }, // argument names
    FieldWeight {
        weight: 0.2,
        by_length: 0.75,
    }, // description
];

/// BM25's k1: how soon further occurrences of a term stop to count.
const SATURATION: f64 = 1.5;
/// What the average score of the server's tools counts. Servers match what a query says of its subject ("spreadsheet").
const SERVER_SHARE: f64 = 1.0;
/// What a tool counts after a better one of the same server, so that a server with many similar tools leaves room.
const FURTHER_TOOL: f64 = 0.9;
/// The best tools are put in their final order among this many.
const CANDIDATES_PER_RESULT: usize = 3;
const MIN_CANDIDATES: usize = 32;
/// The letters of each half of a compound, at least.
const SHORTEST_HALF: usize = 3;
