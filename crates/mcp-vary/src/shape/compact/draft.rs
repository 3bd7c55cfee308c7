//! The `content` of a result during compaction, and the notice about omissions.

use std::borrow::Cow;

use super::{ResultCompactor, TEXTS_PATH};
use crate::json::{Members, string};
use crate::render::{Compact, LeftOut, fold_lines, notice};
use crate::shape::content::{Block, array, text_block, with_text};

/// A shortened block.
pub(super) struct ShortenedBlock {
    /// The index of the block.
    pub(super) at: usize,
    pub(super) text: String,
    pub(super) left_out: Vec<LeftOut>,
    /// The indices of blocks with the same content, which are removed.
    pub(super) others: Vec<usize>,
}

/// The `content` of a result during compaction.
pub(super) struct ContentDraft<'b> {
    pub(super) blocks: &'b [Block<'b>],
    /// The new text of each block; `None` for a removed one.
    pub(super) new: Vec<Option<Cow<'b, str>>>,
    pub(super) structured: Option<String>,
    pub(super) left_out: Vec<LeftOut>,
    /// What is left out of texts that do not represent the value.
    pub(super) omitted_from_texts: Vec<LeftOut>,
    /// All of these texts, as JSON.
    pub(super) texts: Option<String>,
}

impl<'b> ContentDraft<'b> {
    pub(super) fn of(blocks: &'b [Block<'b>]) -> Self {
        let as_written = |block: &Block<'b>| Some(Cow::Borrowed(block.written));
        Self {
            blocks,
            new: blocks.iter().map(as_written).collect(),
            structured: None,
            left_out: Vec::new(),
            omitted_from_texts: Vec::new(),
            texts: None,
        }
    }

    pub(super) fn set(&mut self, at: usize, text: &str) {
        self.new[at] = Some(with_text(self.blocks[at].written, text));
    }

    /// Applies the shortened parts.
    pub(super) fn apply(&mut self, short: Option<ShortenedBlock>, structured: Option<Compact<'_>>) {
        if let Some(structured) = structured {
            self.structured = Some(structured.value.to_json());
            self.left_out = structured.left_out;
        }
        if let Some(short) = short {
            self.set(short.at, &short.text);
            for at in short.others {
                self.new[at] = None;
            }
            self.left_out = short.left_out;
        }
    }

    pub(super) fn is_changed(&self) -> bool {
        let mut all = 0..self.blocks.len();
        self.structured.is_some() || all.any(|at| !self.is_as_written(at))
    }

    /// Whether the block number `at` is unchanged.
    pub(super) fn is_as_written(&self, at: usize) -> bool {
        self.new[at].as_deref() == Some(self.blocks[at].written)
    }

    /// Whether something is left out.
    pub(super) fn has_omissions(&self) -> bool {
        !self.left_out.is_empty() || !self.omitted_from_texts.is_empty()
    }

    /// The length of the structured value; `before` is the original one.
    pub(super) fn structured_length(&self, before: Option<&str>) -> usize {
        self.structured.as_deref().or(before).map_or(0, str::len)
    }

    /// The texts of the blocks with their indices.
    pub(super) fn texts(&self) -> Vec<(usize, &'b str)> {
        let all = self.blocks.iter().enumerate();
        all.filter_map(|(at, block)| Some((at, block.text()?)))
            .collect()
    }
}

impl ResultCompactor<'_> {
    /// The `content` of `draft`, with a notice about omissions.
    pub(super) fn content(&self, draft: &ContentDraft<'_>, is_prose: bool) -> String {
        let mut new: Vec<Cow<'_, str>> = draft.new.iter().flatten().cloned().collect();
        let lines = self.lines(&draft.left_out, self.uri());
        let texts = self.uri().map(|uri| format!("{uri}{TEXTS_PATH}"));
        let more = self.lines(&draft.omitted_from_texts, texts.as_deref());
        let mut notices: Vec<_> = lines.into_iter().chain(more).collect();
        let is_readable = self.uri().is_some() && !notices.is_empty();
        if is_readable && let Some(reader) = self.compaction.reader {
            notices.push(format!("the tool `{reader}` reads these URIs"));
        }
        if !notices.is_empty() {
            new.push(text_block(&notices.join("\n")).into());
        }
        if !draft.left_out.is_empty() {
            new.extend(self.link(self.uri(), is_prose).map(Cow::Owned));
        }
        if !draft.omitted_from_texts.is_empty() {
            new.extend(self.link(texts.as_deref(), false).map(Cow::Owned));
        }
        array(&new)
    }

    /// The notice about `left_out`.
    pub(super) fn lines(&self, left_out: &[LeftOut], uri: Option<&str>) -> Vec<String> {
        let lines = notice(left_out, uri);
        match self.compaction.bounds.tokens {
            Some(tokens) => fold_lines(lines, uri, tokens),
            None => lines,
        }
    }

    /// A block with a link to the whole value at `uri`.
    fn link(&self, uri: Option<&str>, is_prose: bool) -> Option<String> {
        self.compaction.whole.filter(|whole| whole.is_linked)?;
        let media_type = if is_prose {
            "text/plain"
        } else {
            "application/json"
        };
        let mut block = Members::default();
        block.set("type", string("resource_link"));
        block.set("uri", string(uri?));
        block.set("name", string("whole result"));
        block.set("mimeType", string(media_type));
        Some(block.to_json())
    }
}
