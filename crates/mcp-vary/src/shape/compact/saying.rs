//! What says the value of a result, in fewer words.

use super::bounds::{fitted, within};
use super::draft::Shorter;
use super::{Compacting, Compaction, Words};
use crate::feature::Format;
use crate::json::{Json, pointer};
use crate::render::{
    self, Compact, LeftOut, Limits, compact, compact_columns, compact_structured, shorter_prose,
    tokens,
};
use crate::shape::content::container;
use crate::shape::repeat::{Relation, relations};

/// How a text says a value.
#[derive(Clone, Copy)]
pub(super) enum Form<'f> {
    Json,
    Rendered(Plain, Short),
    Words(&'f dyn Fn(&Json<'_>) -> Option<String>),
}

type Plain = fn(&Json<'_>) -> String;

type Short = fn(&Json<'_>, &Limits) -> (String, Vec<LeftOut>);

impl Form<'_> {
    pub(super) fn say(self, value: &Json<'_>, limits: &Limits) -> Option<(String, Vec<LeftOut>)> {
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
            Self::Words(say) => say(&short.value)?,
        };
        Some((text, short.left_out))
    }
}

impl Compacting<'_> {
    /// The numbers of the texts that say `value`, and how the first of them does. Several of them only where
    /// a bound holds: else which to replace is anybody's guess.
    pub(super) fn saying(
        &self,
        value: &Json<'_>,
        format: Option<Format>,
        texts: &[(usize, &str)],
    ) -> (Vec<usize>, Form<'_>) {
        if let Some(Words { text, say, .. }) = self.compaction.words
            && let Some((at, _)) = texts.iter().find(|(_, own)| Some(*own) == text)
        {
            return (vec![*at], Form::Words(say));
        }
        let render: Option<(Plain, Short)> = match format {
            Some(Format::Markdown) => Some((render::markdown, render::compact_markdown)),
            Some(Format::Text) => Some((render::text, render::compact_text)),
            Some(Format::Json) | None => None,
        };
        let rendering = render.map(|(render, _)| render(value));
        let written: Vec<_> = texts.iter().map(|(_, text)| *text).collect();
        let relations = relations(value, &written);
        let is_rendering = |text: &str| rendering.as_deref() == Some(text);
        let repeating = texts.iter().zip(relations).filter(|((_, text), relation)| {
            *relation == Relation::Repeats && container(text).is_some() || is_rendering(text)
        });
        let repeating: Vec<_> = repeating.map(|(text, _)| *text).collect();
        let text = match repeating[..] {
            [(_, text)] => text,
            [(_, text), ..] if !self.compaction.bounds.are_none() => text,
            _ => return (Vec::new(), Form::Json),
        };
        let numbers = repeating.iter().map(|(at, _)| *at).collect();
        match render.filter(|_| is_rendering(text)) {
            Some((plain, short)) => (numbers, Form::Rendered(plain, short)),
            None => (numbers, Form::Json),
        }
    }

    /// The block number `at`, which says `value` as `text`, in fewer words.
    pub(super) fn text(
        &self,
        value: &Json<'_>,
        form: Form<'_>,
        (at, text): (usize, &str),
        most: Option<usize>,
    ) -> Option<Shorter> {
        let limits = match form {
            // What is said in somebody else's words is said in those.
            Form::Words(_) => self.compaction.bounds.within(Limits::none()),
            _ => self.limits(),
        };
        let say = |limits: &Limits| form.say(value, limits);
        let cost = |(text, left_out): &(String, Vec<LeftOut>)| {
            tokens(text) + tokens(&self.lines(left_out, self.uri()).join("\n"))
        };
        let (short, left_out) = fitted(&limits, most, say, cost)?;
        let is_shorter = match self.compaction.bounds.are_none() {
            true => short.len() < text.len(),
            // A cut is due however long it takes to say so.
            false => !left_out.is_empty() || self.is_terse && short.len() < text.len(),
        };
        is_shorter.then_some(Shorter {
            at,
            text: short,
            left_out,
            others: Vec::new(),
        })
    }

    /// The one text that says what `value` says in the author's words, as far as a long text goes.
    pub(super) fn prose(&self, value: &Json<'_>, texts: &[(usize, &str)]) -> Option<Shorter> {
        let [(at, text)] = *texts else { return None };
        let path = match value {
            Json::String(only) if only == text => String::new(),
            // The string that a server wraps since its schema must be an object.
            Json::Object(members) => match members.as_slice() {
                [(key, Json::String(only))] if only == text => pointer("", key),
                _ => return None,
            },
            _ => return None,
        };
        let whole = self.compaction.whole;
        let own = whole
            .filter(|_| self.is_terse)
            .and_then(|_| shorter_prose(text, self.compaction.limits.prose));
        let most = self.compaction.bounds.tokens;
        let bound = most.and_then(|most| within(text, most));
        let shortest = [own, bound].into_iter().flatten();
        let (text_left, kept) = shortest.min_by_key(|(_, kept)| *kept)?;
        Some(Shorter {
            at,
            left_out: vec![LeftOut::of_text(path, kept, text.len())],
            text: text_left,
            others: Vec::new(),
        })
    }

    /// The structured value as its contract lets it go; with `is_alone` it is all that the reader gets.
    pub(super) fn structured<'v>(&self, value: &Json<'v>, is_alone: bool) -> Option<Compact<'v>> {
        let Compaction {
            contract, bounds, ..
        } = self.compaction;
        let is_known = !self.tool.output_schema || !contract.is_free();
        if !is_known || self.tool.ui {
            return None;
        }
        // A program expects a row to be one, so that beside a text rows stay whole or go.
        let limits = match is_alone {
            true => self.limits(),
            false => self.limits().with_whole_rows(),
        };
        let say = |limits: &Limits| {
            let short = compact_structured(value, contract, limits, self.uri());
            // Nothing could be cut: all of it, unless less of it would do.
            let uncut = || Compact::whole(value.clone());
            Some(short.unwrap_or_else(uncut))
        };
        let cost = |short: &Compact<'_>| tokens(&short.value.to_json());
        let short = fitted(&limits, bounds.tokens, say, cost)?;
        (!short.left_out.is_empty()).then_some(short)
    }
}
