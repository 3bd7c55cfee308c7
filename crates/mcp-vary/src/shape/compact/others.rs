//! Shortens the texts of a result that do not represent its value.

use std::borrow::Cow;

use super::ResultCompactor;
use super::bounds::{fit_to_tokens, shortened_to_tokens};
use super::draft::ContentDraft;
use super::texts::TextForm;
use crate::json::string;
use crate::render::{LeftOut, Limits, fair_share, tokens};
use crate::shape::content::{array, container};

impl ResultCompactor<'_> {
    /// Shortens the other texts: documents as values, and all texts together to at most `most` tokens.
    pub(super) fn shorten_others(
        &self,
        texts: &[(usize, &str)],
        most: Option<usize>,
        draft: &mut ContentDraft<'_>,
    ) {
        let bound = most.unwrap_or(usize::MAX);
        let mut weights: Vec<_> = texts.iter().map(|(_, text)| tokens(text)).collect();
        let is_much = weights.iter().sum::<usize>() > bound;
        // The notice about omissions counts too.
        let most = if is_much {
            bound - self.notice_of_texts().min(bound / 4)
        } else {
            bound
        };
        let count = if is_much {
            texts.len().min((most / MIN_TEXT).max(1))
        } else {
            texts.len()
        };
        weights.truncate(count);
        let share = fair_share(weights, most);
        let mut left_out = Vec::new();
        for (number, (at, text)) in texts[..count].iter().enumerate() {
            let limit = share.filter(|share| tokens(text) > *share);
            let Some((short, of_it)) = self.other(text, limit) else {
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
            draft.omitted_from_texts = left_out;
        }
    }

    /// The approximate tokens of a notice line about the texts.
    fn notice_of_texts(&self) -> usize {
        self.uri().map_or(0, tokens) + MIN_TEXT
    }

    /// Shortens another text to at most `most` tokens, if it is longer.
    fn other(&self, text: &str, most: Option<usize>) -> Option<(String, Vec<LeftOut>)> {
        if let Some(document) = container(text) {
            let limits = self.compaction.bounds.applied_to(Limits::none());
            let say = |limits: &Limits| TextForm::Json.render(&document, limits);
            let short = fit_to_tokens(&limits, most, say, |(text, _)| tokens(text))?;
            return Some(short).filter(|(_, left_out)| !left_out.is_empty());
        }
        let (short, retained) = shortened_to_tokens(text, most?)?;
        let left_out = LeftOut::of_text(String::new(), retained, text.len());
        Some((short, vec![left_out]))
    }
}

/// Tokens of a text, at least; a shorter one has too little information.
const MIN_TEXT: usize = 32;
