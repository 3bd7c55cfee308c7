//! The index: which tool has which term, and how often in which field.

use thiserror::Error;

use crate::interner::Interner;
use crate::tool::{FIELDS, Tool};

/// The tools that an index can have.
pub const MAX_TOOLS: usize = 100_000;

/// The tools of one view, to be searched.
///
/// # Properties
///
/// - A tool has a position, which does not change: 0 for the first one, as in a list.
/// - A change costs as much as the tool has terms, times the logarithm of the tools that have them, and moves the
///   postings behind. It does not depend on how many tools there are otherwise.
/// - An index after changes equals one that was built from the same tools, to the last bit of every score.
/// - The memory is bounded by the most tools that it had at once, with [`MAX_TOOL_TERMS`](crate::MAX_TOOL_TERMS) each. Tools
///   that were replaced leave nothing.
///
/// # Examples
///
/// ```
/// use mcp_vary_search::{Query, Tool, ToolIndex};
///
/// let tools = [Tool::new("read", "fs"), Tool::new("delete", "fs")];
/// let mut index: ToolIndex = tools.iter().collect();
/// assert!(index.search(&Query::new("rename")?, 3).is_empty());
///
/// index.replace(1, &Tool::new("rename", "fs"))?;
/// assert_eq!(index.search(&Query::new("rename")?, 3)[0].position, 1);
/// assert!(index.replace(2, &tools[0]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ToolIndex {
    terms: Interner<Vec<Posting>>,
    /// The number of tools of each server.
    servers: Interner<u32>,
    documents: Vec<Option<Document>>,
    /// The terms in each field of all tools.
    lengths: [u64; FIELDS],
    count: u32,
}

/// A tool that has a term.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posting {
    pub(crate) position: u32,
    /// How often each field has the term, at most 255.
    pub(crate) counts: [u8; FIELDS],
}

/// What the index stores of a tool.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) server: u32,
    /// The terms of each field, at most 255.
    pub(crate) lengths: [u8; FIELDS],
    /// Each of its terms once.
    terms: Box<[u32]>,
}

/// There is no tool at the position.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("there is no tool at position {position}; the index has {len} positions")]
#[non_exhaustive]
pub struct PositionError {
    /// The position that was given.
    pub position: usize,
    /// The number of positions.
    pub len: usize,
}

impl ToolIndex {
    /// An index without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `tool` at the end and returns its position, or `None` if there are [`MAX_TOOLS`] positions already.
    pub fn push(&mut self, tool: &Tool<'_>) -> Option<usize> {
        let position = self.documents.len();
        if position >= MAX_TOOLS {
            return None;
        }
        self.documents.push(None);
        self.insert(position, tool);
        Some(position)
    }

    /// Replaces the tool at `position`, or the gap that it left.
    ///
    /// # Errors
    ///
    /// If the index has no such position. It stays as it was.
    pub fn replace(&mut self, position: usize, tool: &Tool<'_>) -> Result<(), PositionError> {
        self.remove(position)?;
        self.insert(position, tool);
        Ok(())
    }

    /// Removes the tool at `position`. Those behind it keep their positions.
    ///
    /// # Errors
    ///
    /// If the index has no such position.
    pub fn remove(&mut self, position: usize) -> Result<(), PositionError> {
        let len = self.documents.len();
        let found = self.documents.get_mut(position);
        let slot = found.ok_or(PositionError { position, len })?;
        let Some(document) = slot.take() else {
            return Ok(());
        };
        let number = as_number(position);
        for &term in &document.terms {
            self.remove_posting(term, number);
        }
        for (total, length) in self.lengths.iter_mut().zip(document.lengths) {
            *total -= u64::from(length);
        }
        if let Some(tools) = self.servers.value_mut(document.server) {
            *tools -= 1;
            if *tools == 0 {
                self.servers.remove(document.server);
            }
        }
        self.count -= 1;
        Ok(())
    }

    /// The number of positions, with the gaps that [`remove`](Self::remove) left.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether there are no positions.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// An estimate of the memory of the index, in bytes.
    pub fn memory(&self) -> usize {
        let postings: usize = self.terms.values().map(Vec::capacity).sum();
        let documents = self.documents.iter().flatten();
        let terms: usize = documents
            .map(|document| size_of_val(&*document.terms))
            .sum();
        self.terms.memory()
            + self.servers.memory()
            + postings * size_of::<Posting>()
            + self.documents.capacity() * size_of::<Option<Document>>()
            + terms
    }

    fn insert(&mut self, position: usize, tool: &Tool<'_>) {
        let mut found: Vec<(u32, usize)> = Vec::new();
        tool.for_each_term(|field, term| found.push((self.terms.insert(term), field as usize)));
        found.sort_unstable();
        let mut document = Document {
            server: self.servers.insert(tool.server_name()),
            lengths: [0; FIELDS],
            terms: Box::default(),
        };
        let mut terms = Vec::new();
        for same_term in found.chunk_by(|(left, _), (right, _)| left == right) {
            let Some(&(term, _)) = same_term.first() else {
                continue;
            };
            let mut counts = [0; FIELDS];
            for &(_, field) in same_term {
                increment(&mut counts, field);
                increment(&mut document.lengths, field);
            }
            self.insert_posting(term, as_number(position), counts);
            terms.push(term);
        }
        document.terms = terms.into();
        for (total, length) in self.lengths.iter_mut().zip(document.lengths) {
            *total += u64::from(length);
        }
        if let Some(tools) = self.servers.value_mut(document.server) {
            *tools += 1;
        }
        self.count += 1;
        if let Some(slot) = self.documents.get_mut(position) {
            *slot = Some(document);
        }
    }

    fn insert_posting(&mut self, term: u32, position: u32, counts: [u8; FIELDS]) {
        if let Some(postings) = self.terms.value_mut(term) {
            let at = postings.partition_point(|posting| posting.position < position);
            postings.insert(at, Posting { position, counts });
        }
    }

    fn remove_posting(&mut self, term: u32, position: u32) {
        let Some(postings) = self.terms.value_mut(term) else {
            return;
        };
        if let Ok(at) = postings.binary_search_by_key(&position, |posting| posting.position) {
            postings.remove(at);
        }
        if postings.is_empty() {
            self.terms.remove(term);
        } else if postings.len() < postings.capacity() / 4 {
            postings.shrink_to(postings.len() * 2);
        }
    }

    /// The number of tools.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The tools that have `term`, by position.
    pub(crate) fn postings(&self, term: &str) -> Option<&[Posting]> {
        self.terms
            .value(self.terms.number(term)?)
            .map(Vec::as_slice)
    }

    pub(crate) fn document(&self, position: u32) -> Option<&Document> {
        self.documents.get(position as usize)?.as_ref()
    }

    /// The number of tools of the server with this number.
    pub(crate) fn tools_of(&self, server: u32) -> u32 {
        self.servers.value(server).copied().unwrap_or_default()
    }

    /// One more than the highest number of a server.
    pub(crate) fn server_bound(&self) -> usize {
        self.servers.bound()
    }

    /// The terms that the fields of all tools have together.
    pub(crate) fn lengths(&self) -> [u64; FIELDS] {
        self.lengths
    }
}

impl<'a, 'b: 'a> FromIterator<&'a Tool<'b>> for ToolIndex {
    fn from_iter<T: IntoIterator<Item = &'a Tool<'b>>>(tools: T) -> Self {
        let mut index = Self::new();
        for tool in tools {
            index.push(tool);
        }
        index
    }
}

fn increment(counts: &mut [u8; FIELDS], field: usize) {
    if let Some(count) = counts.get_mut(field) {
        *count = count.saturating_add(1);
    }
}

/// Positions are less than [`MAX_TOOLS`].
fn as_number(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
