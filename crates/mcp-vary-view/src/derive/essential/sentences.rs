//! The sentences and list items of a description.

use super::cues::LEFT_OUT_LABELS;
use crate::derive::sentence::{
    end, is_heading, is_label, is_ornament, is_symbol, reads_on, starts_item, without_marker,
};

/// A sentence or list item of a description.
#[derive(Debug)]
pub(super) struct Sentence {
    /// On one line.
    pub(super) text: String,
    /// The position of the sentence without which this one cannot be understood: the line with a colon that introduces
    /// a list, the item that a nested list belongs to, or the beginning of the same item.
    pub(super) parent: Option<usize>,
    /// Whether it begins a list item.
    pub(super) is_item: bool,
    /// Whether it is the item above a code block, which is left out: most are the titles of examples.
    pub(super) is_title: bool,
}

impl Sentence {
    /// Whether it ends with the colon of an introduction.
    pub(super) fn introduces(&self) -> bool {
        is_bare_label(&self.text)
    }
}

/// The sentences of `text` in order. Headings, code blocks, and sections about results and errors (`Returns:`) or of praise
/// (`Key features:`) are left out.
pub(super) fn sentences(text: &str) -> Vec<Sentence> {
    let mut reader = Reader::default();
    let mut in_code = false;
    let mut is_left_out = false;
    for written in text.lines() {
        let line = written.trim();
        let is_fence = line.starts_with("```") || line.starts_with("~~~");
        in_code ^= is_fence;
        if is_fence || in_code || line.is_empty() {
            is_left_out &= !line.is_empty();
            reader.end_passage();
            if is_fence && in_code {
                reader.end_introduction();
            }
        } else if is_ornament(line) || is_heading(line) {
            is_left_out = is_left_out_label(line.trim_start_matches('#'));
            reader.end_section();
        } else if is_left_out_label(line) {
            is_left_out = true;
            reader.end_section();
        } else if !is_left_out || is_bare_label(line) {
            is_left_out = false;
            reader.add(line, written.len() - written.trim_start().len());
        }
    }
    reader.end_passage();
    reader.sentences
}

#[derive(Default)]
struct Reader<'t> {
    /// The lines so far that continue one another.
    passage: String,
    /// Whether the passage is a list item, and its indentation.
    is_item: bool,
    indent: usize,
    last: &'t str,
    /// What the next passage may belong to, outermost first: the positions of items, with their indentation, and of
    /// introductions.
    open: Vec<(Option<usize>, usize)>,
    sentences: Vec<Sentence>,
}

impl<'t> Reader<'t> {
    fn add(&mut self, line: &'t str, indent: usize) {
        let is_labelled = is_bare_label(self.last) && !starts_item(line);
        if !self.passage.is_empty() && !is_labelled && !reads_on(self.last, line) {
            self.end_passage();
        }
        let terms = if self.passage.is_empty() {
            (self.is_item, self.indent) = (starts_item(line), indent);
            without_marker(line)
        } else {
            line
        };
        for word in terms.split_whitespace() {
            if !self.passage.is_empty() {
                self.passage.push(' ');
            }
            self.passage.push_str(word);
        }
        self.last = line;
    }

    fn end_passage(&mut self) {
        let passage = std::mem::take(&mut self.passage);
        let first = self.sentences.len();
        let is_item = self.is_item;
        let parent = (!passage.is_empty()).then(|| self.parent()).flatten();
        let mut remaining = passage.as_str();
        while !remaining.is_empty() {
            let window = remaining.split_at(remaining.floor_char_boundary(WINDOW)).0;
            let whole = match end(window) {
                Some(end) => end,
                None if window.len() < remaining.len() => window.rfind(' ').unwrap_or(window.len()),
                None => remaining.len(),
            };
            let (sentence, after) = remaining.split_at(whole.max(1));
            let is_first = self.sentences.len() == first;
            self.sentences.push(Sentence {
                text: sentence.to_owned(),
                parent: if is_item && !is_first {
                    Some(first)
                } else {
                    parent
                },
                is_item: is_item && is_first,
                is_title: false,
            });
            remaining = after.trim_start();
        }
        let last = self.sentences.last().filter(|_| !passage.is_empty());
        match last {
            Some(_) if is_item => self.open.push((Some(self.indent), first)),
            Some(last) if last.introduces() => self.open.push((None, self.sentences.len() - 1)),
            _ => {}
        }
        self.last = "";
    }

    /// What the passage belongs to.
    fn parent(&mut self) -> Option<usize> {
        while let Some((indent, at)) = self.open.last() {
            if indent.map_or(self.is_item, |indent| indent < self.indent) {
                return Some(*at);
            }
            self.open.pop();
        }
        None
    }

    /// What a code block follows introduces the code, and no list after it.
    fn end_introduction(&mut self) {
        let last = self.sentences.len().checked_sub(1);
        self.open
            .pop_if(|(indent, at)| indent.is_none() && Some(*at) == last);
        let Some(last) = self.sentences.last_mut() else {
            return;
        };
        last.is_title = last.is_item;
        if last.introduces() && !is_label(&last.text) {
            last.text = format!("{}.", last.text.trim_end_matches(['*', ':']));
        }
    }

    fn end_section(&mut self) {
        self.end_passage();
        self.open.clear();
    }
}

/// `Returns:`, `Error Responses:`, `Key features:`, with or without text behind.
fn is_left_out_label(line: &str) -> bool {
    let label = line.split_once(':').map_or(line, |(label, _)| label);
    let is_mark = |c: char| c == '*' || c.is_whitespace() || is_symbol(c);
    let unmarked = label.trim_matches(is_mark);
    LEFT_OUT_LABELS.contains(&unmarked.to_lowercase().as_str())
        && (line.contains(':') || line == unmarked)
}

/// A line that is only a label: `Notes:`.
fn is_bare_label(line: &str) -> bool {
    line.trim_end_matches('*').ends_with(':')
}

/// Bytes in which the end of a sentence is searched, so that brackets that never close cost little.
const WINDOW: usize = 1000;
