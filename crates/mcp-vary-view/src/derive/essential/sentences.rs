//! The sentences and list items of a description.

use crate::derive::sentence::{
    end, is_heading, is_ornament, reads_on, starts_item, without_marker,
};

/// The sentences of `text` in order, each on one line. Headings, code blocks, and sections about results and errors
/// (`Returns:`) are left out.
pub(super) fn sentences(text: &str) -> Vec<String> {
    let mut reader = Reader::default();
    let mut in_code = false;
    let mut in_results = false;
    for line in text.lines().map(str::trim) {
        let is_fence = line.starts_with("```") || line.starts_with("~~~");
        in_code ^= is_fence;
        if is_fence || in_code {
            reader.end_passage();
        } else if line.is_empty() || is_ornament(line) || is_heading(line) {
            in_results = is_result_label(line.trim_start_matches('#'));
            reader.end_passage();
        } else if is_result_label(line) {
            in_results = true;
            reader.end_passage();
        } else if !in_results || is_bare_label(line) {
            in_results = false;
            reader.add(line);
        }
    }
    reader.end_passage();
    reader.sentences
}

#[derive(Default)]
struct Reader<'t> {
    /// The lines so far that continue one another.
    passage: String,
    last: &'t str,
    sentences: Vec<String>,
}

impl<'t> Reader<'t> {
    fn add(&mut self, line: &'t str) {
        let is_labelled = self.last.trim_end_matches('*').ends_with(':') && !starts_item(line);
        if !self.passage.is_empty() && !is_labelled && !reads_on(self.last, line) {
            self.end_passage();
        }
        let words = match self.passage.is_empty() {
            true => without_marker(line),
            false => line,
        };
        for word in words.split_whitespace() {
            if !self.passage.is_empty() {
                self.passage.push(' ');
            }
            self.passage.push_str(word);
        }
        self.last = line;
    }

    fn end_passage(&mut self) {
        let passage = std::mem::take(&mut self.passage);
        let mut rest = passage.as_str();
        while !rest.is_empty() {
            let window = rest.split_at(rest.floor_char_boundary(WINDOW)).0;
            let whole = match end(window) {
                Some(end) => end,
                None if window.len() < rest.len() => window.rfind(' ').unwrap_or(window.len()),
                None => rest.len(),
            };
            let (sentence, after) = rest.split_at(whole.max(1));
            self.sentences.push(sentence.to_owned());
            rest = after.trim_start();
        }
        self.last = "";
    }
}

/// `Returns:`, `Error Responses:`, with or without text behind.
fn is_result_label(line: &str) -> bool {
    let label = line.split_once(':').map_or(line, |(label, _)| label);
    let label = label.trim_matches(|c: char| c == '*' || c.is_whitespace());
    RESULT_LABELS.contains(&label.to_lowercase().as_str()) && (line.contains(':') || line == label)
}

/// A line that is only a label: `Notes:`.
fn is_bare_label(line: &str) -> bool {
    line.trim_end_matches('*').ends_with(':')
}

const RESULT_LABELS: [&str; 14] = [
    "error responses",
    "errors",
    "output",
    "outputs",
    "raises",
    "response",
    "responses",
    "result",
    "results",
    "return",
    "return value",
    "returns",
    "throws",
    "yields",
];
/// Bytes in which the end of a sentence is searched, so that brackets that never close cost little.
const WINDOW: usize = 1000;
