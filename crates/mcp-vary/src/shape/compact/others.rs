//! The texts of a result that say something else than its value, in fewer words.

use std::borrow::Cow;

use super::Compacting;
use super::bounds::{fitted, within};
use super::draft::Draft;
use super::saying::Form;
use crate::json::string;
use crate::render::{LeftOut, Limits, level, tokens};
use crate::shape::content::{array, container};

impl Compacting<'_> {
    /// Says texts that are not about the value shorter: documents as values, and all of them together in at
    /// most so many tokens.
    pub(super) fn shorten_others(
        &self,
        texts: &[(usize, &str)],
        most: Option<usize>,
        draft: &mut Draft<'_>,
    ) {
        let most = most.unwrap_or(usize::MAX);
        let mut weights: Vec<_> = texts.iter().map(|(_, text)| tokens(text)).collect();
        let is_much = weights.iter().sum::<usize>() > most;
        // What is left out of them is said, too.
        let most = match is_much {
            true => most - self.notice_of_texts().min(most / 4),
            false => most,
        };
        let count = match is_much {
            true => texts.len().min((most / SMALLEST_TEXT).max(1)),
            false => texts.len(),
        };
        weights.truncate(count);
        let share = level(weights, most);
        let mut left_out = Vec::new();
        for (number, (at, text)) in texts[..count].iter().enumerate() {
            let share = share.filter(|share| tokens(text) > *share);
            let Some((short, of_it)) = self.other(text, share) else {
                continue;
            };
            draft.set(*at, &short);
            let under = format!("/{number}");
            left_out.extend(of_it.into_iter().map(|one| one.under(&under)));
        }
        for (at, _) in &texts[count..] {
            draft.new[*at] = None;
        }
        if count < texts.len() {
            left_out.push(LeftOut::of_elements(count, texts.len()));
        }
        if !left_out.is_empty() {
            let all = texts.iter().map(|(_, text)| match container(text) {
                Some(_) => Cow::Borrowed(*text),
                None => Cow::Owned(string(text)),
            });
            draft.texts = Some(array(&all.collect::<Vec<_>>()));
            draft.left_out_of_texts = left_out;
        }
    }

    /// About what a line costs that says how much of the texts is left out.
    fn notice_of_texts(&self) -> usize {
        self.uri().map_or(0, tokens) + SMALLEST_TEXT
    }

    /// A text that is not about the value in at most `most` tokens, where it is longer.
    fn other(&self, text: &str, most: Option<usize>) -> Option<(String, Vec<LeftOut>)> {
        if let Some(document) = container(text) {
            let limits = self.compaction.bounds.within(Limits::none());
            let say = |limits: &Limits| Form::Json.say(&document, limits);
            let short = fitted(&limits, most, say, |(text, _)| tokens(text))?;
            return Some(short).filter(|(_, left_out)| !left_out.is_empty());
        }
        let (short, kept) = within(text, most?)?;
        let left_out = LeftOut::of_text(String::new(), kept, text.len());
        Some((short, vec![left_out]))
    }
}

/// A text that costs no more tokens than this says little.
const SMALLEST_TEXT: usize = 32;
