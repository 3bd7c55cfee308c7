//! Shortens the texts and the structured value that represent a result's value.

use super::bounds::{fit_to_tokens, shortened_to_tokens};
use super::draft::ShortenedBlock;
use super::{Compaction, CustomText, ResultCompactor, Subject};
use crate::feature::Format;
use crate::json::{Json, pointer};
use crate::render::{
    self, Compact, LeftOut, Limits, compact, compact_columns, compact_structured, shorter_prose,
    tokens,
};
use crate::shape::content::container;
use crate::shape::repeat::{Relation, relations, repeats};

/// How a text represents a value.
#[derive(Clone, Copy)]
pub(super) enum TextForm<'f> {
    Json,
    Rendered(Plain, Short),
    Custom(&'f dyn Fn(&Json<'_>) -> Option<String>),
}

type Plain = fn(&Json<'_>) -> String;

type Short = fn(&Json<'_>, &Limits) -> (String, Vec<LeftOut>);

impl TextForm<'_> {
    pub(super) fn render(
        self,
        value: &Json<'_>,
        limits: &Limits,
    ) -> Option<(String, Vec<LeftOut>)> {
        match self {
            Self::Rendered(_, render) if limits.is_terse => return Some(render(value, limits)),
            Self::Json if limits.is_terse => {
                let short = compact_columns(value, limits);
                return Some((short.value.to_json(), short.left_out));
            }
            _ => {}
        }
        let short = compact(value, limits);
        let text = match self {
            Self::Json => short.value.to_json(),
            Self::Rendered(render, _) => render(&short.value),
            Self::Custom(say) => say(&short.value)?,
        };
        Some((text, short.left_out))
    }
}

impl ResultCompactor<'_> {
    /// The indices of the texts that represent the value of `subject`, and the form of the first. Several texts only if
    /// there are bounds: else it is unclear which to replace.
    pub(super) fn representing_texts(
        &self,
        subject: &Subject<'_>,
        format: Option<Format>,
        texts: &[(usize, &str)],
    ) -> (Vec<usize>, TextForm<'_>) {
        if let Some(CustomText {
            text, render: say, ..
        }) = self.compaction.custom_text
            && let Some((at, _)) = texts.iter().find(|(_, native)| Some(*native) == text)
        {
            return (vec![*at], TextForm::Custom(say));
        }
        let render: Option<(Plain, Short)> = match format {
            Some(Format::Markdown) => Some((render::markdown, render::compact_markdown)),
            Some(Format::Text) => Some((render::text, render::compact_text)),
            Some(Format::Json) | None => None,
        };
        if let [(at, text)] = *texts
            && repeats(text, &subject.written)
        {
            return (vec![at], TextForm::Json);
        }
        let value = &subject.value;
        let rendering = render.map(|(render, _)| render(value));
        let written: Vec<_> = texts.iter().map(|(_, text)| *text).collect();
        let found = relations(value, &written);
        let is_rendering = |text: &str| rendering.as_deref() == Some(text);
        let same = texts.iter().zip(found).filter(|((_, text), relation)| {
            *relation == Relation::Repeats && container(text).is_some() || is_rendering(text)
        });
        let repeating: Vec<_> = same.map(|(text, _)| *text).collect();
        let text = match repeating[..] {
            [(_, text)] => text,
            [(_, text), ..] if !self.compaction.bounds.is_unbounded() => text,
            _ => return (Vec::new(), TextForm::Json),
        };
        let numbers = repeating.iter().map(|(at, _)| *at).collect();
        match render.filter(|_| is_rendering(text)) {
            Some((plain, short)) => (numbers, TextForm::Rendered(plain, short)),
            None => (numbers, TextForm::Json),
        }
    }

    /// Shortens the block number `at`, which represents `value` as `text`.
    pub(super) fn text(
        &self,
        value: &Json<'_>,
        form: TextForm<'_>,
        (at, text): (usize, &str),
        most: Option<usize>,
    ) -> Option<ShortenedBlock> {
        let limits = match form {
            // A custom text is rendered again, without compaction.
            TextForm::Custom(_) => self.compaction.bounds.applied_to(Limits::none()),
            _ => self.limits(),
        };
        let say = |limits: &Limits| form.render(value, limits);
        let cost = |(text, left_out): &(String, Vec<LeftOut>)| {
            tokens(text) + tokens(&self.lines(left_out, self.uri()).join("\n"))
        };
        let (short, left_out) = fit_to_tokens(&limits, most, say, cost)?;
        let is_shorter = if self.compaction.bounds.is_unbounded() {
            short.len() < text.len()
        } else {
            // Bounds require the cut, even if the notice is longer.
            !left_out.is_empty() || self.is_terse && short.len() < text.len()
        };
        is_shorter.then_some(ShortenedBlock {
            at,
            text: short,
            left_out,
            others: Vec::new(),
        })
    }

    /// Shortens the only text if it is the author's and equals `value`.
    pub(super) fn prose(
        &self,
        value: &Json<'_>,
        texts: &[(usize, &str)],
    ) -> Option<ShortenedBlock> {
        let [(at, text)] = *texts else { return None };
        let path = match value {
            Json::String(only) if only == text => String::new(),
            // A server wraps a string because the structured value must be an object.
            Json::Object(members) => match members.as_slice() {
                [(key, Json::String(only))] if only == text => pointer("", key),
                _ => return None,
            },
            _ => return None,
        };
        let whole = self.compaction.whole;
        let native = whole
            .filter(|_| self.is_terse)
            .and_then(|_| shorter_prose(text, self.compaction.limits.prose));
        let most = self.compaction.bounds.tokens;
        let bound = most.and_then(|most| shortened_to_tokens(text, most));
        let shortest = [native, bound].into_iter().flatten();
        let (text_left, retained) = shortest.min_by_key(|(_, retained)| *retained)?;
        Some(ShortenedBlock {
            at,
            left_out: vec![LeftOut::of_text(path, retained, text.len())],
            text: text_left,
            others: Vec::new(),
        })
    }

    /// Shortens the structured value within its contract; with `is_alone`, the client gets nothing else.
    pub(super) fn structured<'v>(&self, value: &Json<'v>, is_alone: bool) -> Option<Compact<'v>> {
        let Compaction {
            contract, bounds, ..
        } = self.compaction;
        let is_known = !self.tool.output_schema || !contract.is_free();
        if !is_known || self.tool.ui {
            return None;
        }
        // Programs expect complete rows, so beside a text rows stay complete or are removed.
        let limits = if is_alone {
            self.limits()
        } else {
            self.limits().with_whole_rows()
        };
        let say = |limits: &Limits| {
            let short = compact_structured(value, contract, limits, self.uri());
            // Nothing could be cut: use the whole value.
            let uncut = || Compact::whole(value.clone());
            Some(short.unwrap_or_else(uncut))
        };
        let cost = |short: &Compact<'_>| tokens(&short.value.to_json());
        let short = fit_to_tokens(&limits, bounds.tokens, say, cost)?;
        (!short.left_out.is_empty()).then_some(short)
    }
}
