//! A result on its way to fewer words, and what is said of what it leaves out.

use std::borrow::Cow;

use super::{Compacting, TEXTS};
use crate::json::{Members, string};
use crate::render::{Compact, LeftOut, folded, notice};
use crate::shape::content::{Block, array, text_block, with_text};

/// A block in fewer words.
pub(super) struct Shorter {
    /// Its number.
    pub(super) at: usize,
    pub(super) text: String,
    pub(super) left_out: Vec<LeftOut>,
    /// The numbers of those that say the same, and go.
    pub(super) others: Vec<usize>,
}

/// A result on its way to fewer words.
pub(super) struct Draft<'b> {
    pub(super) blocks: &'b [Block<'b>],
    /// What stands for each of the blocks; nothing for one that goes.
    pub(super) new: Vec<Option<Cow<'b, str>>>,
    pub(super) structured: Option<String>,
    pub(super) left_out: Vec<LeftOut>,
    /// What is left out of texts that do not say the value.
    pub(super) left_out_of_texts: Vec<LeftOut>,
    /// All of these texts, JSON.
    pub(super) texts: Option<String>,
}

impl<'b> Draft<'b> {
    pub(super) fn of(blocks: &'b [Block<'b>]) -> Self {
        let as_written = |block: &Block<'b>| Some(Cow::Borrowed(block.written));
        Self {
            blocks,
            new: blocks.iter().map(as_written).collect(),
            structured: None,
            left_out: Vec::new(),
            left_out_of_texts: Vec::new(),
            texts: None,
        }
    }

    pub(super) fn set(&mut self, at: usize, text: &str) {
        self.new[at] = Some(with_text(self.blocks[at].written, text));
    }

    /// Puts what is shorter in its place.
    pub(super) fn put(&mut self, short: Option<Shorter>, structured: Option<Compact<'_>>) {
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

    /// Whether the block number `at` stays as it was written.
    pub(super) fn is_as_written(&self, at: usize) -> bool {
        self.new[at].as_deref() == Some(self.blocks[at].written)
    }

    /// Whether something is left out.
    pub(super) fn is_cut(&self) -> bool {
        !self.left_out.is_empty() || !self.left_out_of_texts.is_empty()
    }

    /// How long the structured value is, that of the result where this one has none of its own.
    pub(super) fn structured_length(&self, before: Option<&str>) -> usize {
        self.structured.as_deref().or(before).map_or(0, str::len)
    }

    /// The texts of the blocks, each with its number.
    pub(super) fn texts(&self) -> Vec<(usize, &'b str)> {
        let all = self.blocks.iter().enumerate();
        all.filter_map(|(at, block)| Some((at, block.text.as_deref()?)))
            .collect()
    }
}

impl Compacting<'_> {
    /// `content` of what `draft` says, with what it does not.
    pub(super) fn content(&self, draft: &Draft<'_>, is_prose: bool) -> String {
        let mut new: Vec<Cow<'_, str>> = draft.new.iter().flatten().cloned().collect();
        let lines = self.lines(&draft.left_out, self.uri());
        let texts = self.uri().map(|uri| format!("{uri}{TEXTS}"));
        let more = self.lines(&draft.left_out_of_texts, texts.as_deref());
        let mut said: Vec<_> = lines.into_iter().chain(more).collect();
        let reader = self.compaction.reader.filter(|_| self.uri().is_some());
        if let Some(reader) = reader.filter(|_| !said.is_empty()) {
            said.push(format!("the tool `{reader}` reads these URIs"));
        }
        if !said.is_empty() {
            new.push(text_block(&said.join("\n")).into());
        }
        if !draft.left_out.is_empty() {
            new.extend(self.link(self.uri(), is_prose).map(Cow::Owned));
        }
        if !draft.left_out_of_texts.is_empty() {
            new.extend(self.link(texts.as_deref(), false).map(Cow::Owned));
        }
        array(&new)
    }

    /// What is said of `left_out`.
    pub(super) fn lines(&self, left_out: &[LeftOut], uri: Option<&str>) -> Vec<String> {
        let lines = notice(left_out, uri);
        match self.compaction.bounds.tokens {
            Some(tokens) => folded(lines, uri, tokens),
            None => lines,
        }
    }

    /// A block that leads to what is whole at `uri`.
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
