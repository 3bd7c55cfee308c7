//! The result of `tools/call` in fewer words: for a client that asks for few, and within an operator's limits.

use std::borrow::Cow;
use std::fmt;

use super::applied::{Applied, META_APPLIED, Report, Shaped, meta};
use super::content::{Block, array, blocks, container, text_block, texts, with_text};
use super::repeat::{Relation, relations};
use super::tool_result::{Policy, ToolFacts, document, is_shapeable, tool_result};
use crate::feature::{Features, Format, Verbosity};
use crate::json::{Json, JsonError, Members, pointer, string};
use crate::render::{
    self, Compact, Contract, ELLIPSIS, LeftOut, Limits, compact, compact_columns,
    compact_structured, folded, level, notice, shorter_prose, tokens,
};

/// How a result is made shorter, and where the whole of it can be read.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers override some of the defaults"
)]
pub struct Compaction<'c> {
    /// How much stays for a client that asks for few words.
    pub limits: Limits,
    /// How much stays for every client.
    pub bounds: Bounds,
    /// What the tool's `outputSchema` demands. A structured value whose schema is not shown here stays whole.
    pub contract: Contract<'c>,
    /// Where the whole value can be read.
    pub whole: Option<Whole<'c>>,
    /// The tool that reads the whole value as well, where there is one, for models that read no resources.
    pub reader: Option<&'c str>,
    /// How the value is told in words that are not made here.
    pub words: Option<Words<'c>>,
}

/// How much of a result every client gets, whatever it declared.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::Features;
/// use mcp_vary::shape::{
///     Bounds, Compaction, Policy, Shaped, ToolFacts, Whole, compact_tool_result,
/// };
///
/// let result = r#"{"content": [{"type": "text", "text": "[{\"id\": 1}, {\"id\": 2}, {\"id\": 3}]"}]}"#;
/// let within = |bounds| {
///     let compaction = Compaction {
///         bounds,
///         whole: Some(Whole { uri: "vary://result/x", ..Whole::default() }),
///         ..Compaction::default()
///     };
///     let (features, tool) = (Features::default(), ToolFacts::default());
///     compact_tool_result(result, &features, tool, &Policy::default(), &compaction).shaped
/// };
/// let Shaped::Changed { result: short, .. } = within(Bounds { elements: Some(2), ..Bounds::default() }) else {
///     panic!()
/// };
/// assert_eq!(short, concat!(
///     r#"{"content":[{"type":"text","text":"[{\"id\":1},{\"id\":2}]"},"#,
///     r#"{"type":"text","text":"2 of 3 elements; vary://result/x?offset=2"}]}"#,
/// ));
///
/// // What is within them stays as the bytes it was.
/// assert_eq!(within(Bounds { elements: Some(3), ..Bounds::default() }), Shaped::Unchanged);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers override some of the defaults"
)]
pub struct Bounds {
    /// Elements of any array; members of an object that has more than 64.
    pub elements: Option<usize>,
    /// Levels of arrays and objects.
    pub depth: Option<usize>,
    /// [`tokens`] of the texts together, and of the structured value.
    pub tokens: Option<usize>,
}

impl Bounds {
    fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// `limits`, and these.
    fn within(&self, limits: Limits) -> Limits {
        let limits = match self.elements {
            Some(elements) => limits.with_at_most(elements),
            None => limits,
        };
        match self.depth {
            Some(depth) => limits.with_depth(depth),
            None => limits,
        }
    }
}

/// Where the whole of a value can be read.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers override some of the defaults"
)]
pub struct Whole<'c> {
    /// Its URI. With the query of a [`Part`](crate::render::Part) it leads to a part of it.
    pub uri: &'c str,
    /// Whether the client's revision knows resource links (2025-06-18 on).
    pub is_linked: bool,
}

/// A value that the result says in words of somebody else, a template say.
#[derive(Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "callers spell out all of it")]
pub struct Words<'c> {
    /// The value, JSON.
    pub value: &'c str,
    /// The text in the result that says it, if there is one.
    pub text: Option<&'c str>,
    /// What says another value in the same words; none when nothing does.
    pub say: &'c dyn Fn(&Json<'_>) -> Option<String>,
}

impl fmt::Debug for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Words").finish_non_exhaustive()
    }
}

/// A result in few words.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Compacted {
    /// What goes out.
    pub shaped: Shaped,
    /// Whether that says less, or the same in fewer words, than it would without.
    pub is_shorter: bool,
    /// What of the value does not; empty when it is whole.
    pub left_out: Vec<LeftOut>,
    /// The whole value as JSON, as it was written, which the pointers in `left_out` lead into: the structured
    /// value, else the document that the one text is, else that text. None when nothing was left out of it.
    pub whole: Option<String>,
    /// The texts beside the value, whole, as a JSON array, where something of them was left out as well: they
    /// can be read where the whole value can, below `/texts`. A text that is a JSON document is one here.
    pub texts: Option<String>,
}

impl Compacted {
    fn nothing(shaped: Shaped) -> Self {
        Self {
            shaped,
            is_shorter: false,
            left_out: Vec::new(),
            whole: None,
            texts: None,
        }
    }
}

/// Like [`tool_result`], in few words under `verbosity=compact`, and within [`Bounds`] for everybody; with what was
/// left out.
///
/// # Properties
///
/// What repeats the value is made from a shorter one: JSON text in columns, markdown and plain text with
/// uniform rows in one table. The author's own words stay, but for a long text that is all there is, and
/// only where the whole of it can be read; images and links stay. The structured value stays whole
/// unless its contract lets it go and it has room to say so itself; the data of a user interface always
/// does. Beside a text its rows stay whole, for programs; where it is all that an agent asked for,
/// it is shortened like a text. Where something is left out, the last blocks of `content` say so and lead to the whole value,
/// even for an agent that asked for JSON alone. A result that would not become shorter stays.
///
/// Bounds cut and do nothing else: texts that say the value say the shorter one in the form that they have,
/// JSON stays JSON, and a result within them stays as the bytes it is. Of texts that say something else only
/// the tokens are bounded, and the elements and depth of those that are JSON documents.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::Features;
/// use mcp_vary::shape::{Compaction, Policy, Shaped, ToolFacts, Whole, compact_tool_result};
///
/// let value = serde_json::json!({"next": null, "note": "One sentence. ".repeat(300)});
/// let result = serde_json::json!({"content": [{"type": "text", "text": value.to_string()}]}).to_string();
/// let (features, _) = Features::from_tags(["verbosity=compact"]);
/// let compacted = compact_tool_result(
///     &result,
///     &features,
///     ToolFacts::default(),
///     &Policy::default(),
///     &Compaction {
///         whole: Some(Whole { uri: "vary://result/x", is_linked: true }),
///         ..Compaction::default()
///     },
/// );
/// let Shaped::Changed { result: short, .. } = compacted.shaped else { panic!() };
/// assert!(short.contains("/note: 994 of 4200 bytes; vary://result/x?pointer=/note&offset=994"));
/// assert!(short.ends_with(r#"{"type":"resource_link","uri":"vary://result/x","name":"whole result","mimeType":"application/json"}]}"#));
/// assert_eq!(compacted.left_out.len(), 2);
///
/// // Nobody asked.
/// let whole = compact_tool_result(
///     &result,
///     &Features::default(),
///     ToolFacts::default(),
///     &Policy::default(),
///     &Compaction::default(),
/// );
/// assert_eq!(whole.shaped, Shaped::Unchanged);
/// ```
#[must_use]
pub fn compact_tool_result(
    result: &str,
    features: &Features,
    tool: ToolFacts,
    policy: &Policy<'_>,
    compaction: &Compaction<'_>,
) -> Compacted {
    let shaped = tool_result(result, features, tool, policy);
    compact_shaped(result, shaped, features, tool, policy, compaction)
}

/// Like [`compact_tool_result`], of what `shaped` already made of `result`: it stays in that form.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::Features;
/// use mcp_vary::shape::{Compaction, Policy, Shaped, ToolFacts, compact_shaped};
///
/// let (features, _) = Features::from_tags(["format=json", "verbosity=compact"]);
/// let result = r#"{"content": [{"type": "text", "text": "in the operator's words"}], "structuredContent": {"a": 1}}"#;
/// let compacted = compact_shaped(
///     result,
///     Shaped::Unchanged,
///     &features,
///     ToolFacts::default(),
///     &Policy::default(),
///     &Compaction::default(),
/// );
/// // JSON was asked for: whoever told it otherwise is taken at its word.
/// assert_eq!(compacted.shaped, Shaped::Unchanged);
/// ```
#[must_use]
pub fn compact_shaped(
    result: &str,
    shaped: Shaped,
    features: &Features,
    tool: ToolFacts,
    policy: &Policy<'_>,
    compaction: &Compaction<'_>,
) -> Compacted {
    let compacting = Compacting {
        features,
        tool,
        policy,
        compaction,
        is_terse: features.verbosity() == Verbosity::Compact,
    };
    if !compacting.is_terse && compaction.bounds.are_none() {
        return Compacted::nothing(shaped);
    }
    match compacting.run(result, &shaped) {
        Ok(Some(compacted)) => compacted,
        // A result that cannot be read is the client's to judge.
        Ok(None) | Err(_) => Compacted::nothing(shaped),
    }
}

/// What is said in fewer words.
struct Subject<'s> {
    /// As JSON, as it was written.
    written: Cow<'s, str>,
    value: Json<'s>,
    /// Whether it is the author's text rather than data.
    is_prose: bool,
}

/// A block in fewer words.
struct Shorter {
    /// Its number.
    at: usize,
    text: String,
    left_out: Vec<LeftOut>,
    /// The numbers of those that say the same, and go.
    others: Vec<usize>,
}

/// How a text says a value.
#[derive(Clone, Copy)]
enum Form<'f> {
    Json,
    Rendered(Plain, Short),
    Words(&'f dyn Fn(&Json<'_>) -> Option<String>),
}

type Plain = fn(&Json<'_>) -> String;
type Short = fn(&Json<'_>, &Limits) -> (String, Vec<LeftOut>);

impl Form<'_> {
    fn say(self, value: &Json<'_>, limits: &Limits) -> Option<(String, Vec<LeftOut>)> {
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

/// A result on its way to fewer words.
struct Draft<'b> {
    blocks: &'b [Block<'b>],
    /// What stands for each of the blocks; nothing for one that goes.
    new: Vec<Option<Cow<'b, str>>>,
    structured: Option<String>,
    left_out: Vec<LeftOut>,
    /// What is left out of texts that do not say the value.
    left_out_of_texts: Vec<LeftOut>,
    /// All of these texts, JSON.
    texts: Option<String>,
}

impl<'b> Draft<'b> {
    fn of(blocks: &'b [Block<'b>]) -> Self {
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

    fn set(&mut self, at: usize, text: &str) {
        self.new[at] = Some(with_text(self.blocks[at].written, text));
    }

    fn is_changed(&self) -> bool {
        let mut pairs = self.new.iter().zip(self.blocks);
        self.structured.is_some() || pairs.any(|(new, block)| new.as_deref() != Some(block.written))
    }

    /// The texts of the blocks, each with its number.
    fn texts(&self) -> Vec<(usize, &'b str)> {
        let all = self.blocks.iter().enumerate();
        all.filter_map(|(at, block)| Some((at, block.text.as_deref()?)))
            .collect()
    }
}

struct Compacting<'c> {
    features: &'c Features,
    tool: ToolFacts,
    policy: &'c Policy<'c>,
    compaction: &'c Compaction<'c>,
    /// Whether the client asks for few words.
    is_terse: bool,
}

impl Compacting<'_> {
    /// The shorter form of `shaped`, which was made from `served`; none where there is none.
    fn run(&self, served: &str, shaped: &Shaped) -> Result<Option<Compacted>, JsonError> {
        let original = Members::parse(served)?;
        if !is_shapeable(&original) || meta(&original)?.contains(META_APPLIED) {
            return Ok(None);
        }
        let served_blocks = original.get("content").map_or(Ok(Vec::new()), blocks)?;
        let served_texts = texts(&served_blocks);
        let subject = self.subject(&original, &served_texts)?;
        let (current, mut applied) = match shaped {
            Shaped::Changed { result, applied } => (result.as_str(), *applied),
            // Words of somebody else have the form that the client chose already.
            Shaped::Unchanged => {
                let format = self.features.choose_format(&Format::ALL);
                let format = format.filter(|_| self.compaction.words.is_some());
                (served, Applied::new(format, self.features))
            }
        };
        if self.is_terse {
            applied.verbosity = Some(Verbosity::Compact);
        }
        let mut result = Members::parse(current)?;
        let content = result.get("content").unwrap_or("[]").to_owned();
        let blocks = blocks(&content)?;
        let mut draft = Draft::of(&blocks);
        let structured = result.get("structuredContent").filter(|v| *v != "null");
        self.shorten(subject.as_ref(), applied.format, structured, &mut draft);
        if !draft.is_changed() {
            return Ok(None);
        }
        let variant = self.policy.variant;
        let told = self.policy.report.then_some(Report { variant });
        let report = match told {
            Some(told) => Some(applied.report(meta(&result)?, told)),
            None => None,
        };
        let is_prose = subject.as_ref().is_some_and(|subject| subject.is_prose);
        result.set("content", self.content(&draft, is_prose));
        if let Some(structured) = draft.structured {
            result.set("structuredContent", structured);
        }
        if let Some(report) = report {
            result.set("_meta", report);
        }
        let result = result.to_json();
        let is_cut = !draft.left_out.is_empty() || !draft.left_out_of_texts.is_empty();
        let is_due = is_cut && !self.compaction.bounds.are_none();
        let whole = subject.filter(|_| !draft.left_out.is_empty());
        Ok(
            (is_due || result.len() < current.len()).then_some(Compacted {
                shaped: Shaped::Changed { result, applied },
                is_shorter: true,
                left_out: draft.left_out,
                whole: whole.map(|subject| subject.written.into_owned()),
                texts: draft.texts,
            }),
        )
    }

    /// `content` of what `draft` says, with what it does not.
    fn content(&self, draft: &Draft<'_>, is_prose: bool) -> String {
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
    fn lines(&self, left_out: &[LeftOut], uri: Option<&str>) -> Vec<String> {
        let lines = notice(left_out, uri);
        match self.compaction.bounds.tokens {
            Some(tokens) => folded(lines, uri, tokens),
            None => lines,
        }
    }

    /// What `result`, with these texts, is about: the value that it is told to say, else its structured value, else the
    /// document that its one text is, else that text, where the whole of it can be read.
    fn subject<'s>(
        &'s self,
        result: &'s Members<'_>,
        texts: &[&'s str],
    ) -> Result<Option<Subject<'s>>, JsonError> {
        let data = |written: &'s str, value| Subject {
            written: Cow::Borrowed(written),
            value,
            is_prose: false,
        };
        if let Some(Words { value, .. }) = self.compaction.words {
            return Ok(Some(data(value, Json::parse(value)?)));
        }
        if let Some(written) = result.get("structuredContent").filter(|v| *v != "null") {
            return Ok(Some(data(written, Json::parse(written)?)));
        }
        let [text] = *texts else { return Ok(None) };
        if let Some(document) = document(texts) {
            return Ok(Some(data(text, document)));
        }
        let is_wanted = self.compaction.whole.is_some() || self.compaction.bounds.tokens.is_some();
        Ok(is_wanted.then(|| Subject {
            written: Cow::Owned(string(text)),
            value: Json::String(Cow::Borrowed(text)),
            is_prose: true,
        }))
    }

    /// Says `subject`, and the texts that are not about it, shorter.
    fn shorten(
        &self,
        subject: Option<&Subject<'_>>,
        format: Option<Format>,
        structured: Option<&str>,
        draft: &mut Draft<'_>,
    ) {
        let texts = draft.texts();
        let said = subject.map(|subject| self.saying(&subject.value, format, &texts));
        let (ours, form) = said.unwrap_or((Vec::new(), Form::Json));
        let prose = subject.and_then(|subject| self.prose(&subject.value, &texts));
        let others: Vec<_> = texts
            .iter()
            .filter(|(at, _)| !ours.contains(at) && prose.is_none())
            .copied()
            .collect();
        let most = self.compaction.bounds.tokens;
        let of_others: usize = others.iter().map(|(_, text)| tokens(text)).sum();
        let most = most.map(|most| (most - of_others.min(most / 2), most));
        if let Some(subject) = subject {
            let text = |at: &usize| draft.blocks[*at].text.as_deref();
            let own = ours.first().and_then(|at| Some((*at, text(at)?)));
            let short = own.and_then(|own| {
                let most = most.map(|(most, _)| most);
                self.text(&subject.value, form, own, most)
            });
            let short = short.map(|short| Shorter {
                others: ours[1..].to_vec(),
                ..short
            });
            // Where a schema refused the value that is told, another one stands there: it stays.
            let same = structured.and_then(|written| Json::parse(written).ok());
            let same = same.filter(|same| same.is_same(&subject.value));
            let structured = same.and_then(|_| self.structured(&subject.value, texts.is_empty()));
            self.put(short.or(prose), structured, draft);
        }
        if !self.compaction.bounds.are_none() {
            self.shorten_others(
                &others,
                most.map(|(own, all)| all - own.min(all / 2)),
                draft,
            );
        }
    }

    /// Puts what is shorter in its place.
    fn put(&self, short: Option<Shorter>, structured: Option<Compact<'_>>, draft: &mut Draft<'_>) {
        if let Some(structured) = structured {
            draft.structured = Some(structured.value.to_json());
            draft.left_out = structured.left_out;
        }
        if let Some(short) = short {
            draft.set(short.at, &short.text);
            for at in short.others {
                draft.new[at] = None;
            }
            draft.left_out = short.left_out;
        }
    }

    /// The numbers of the texts that say `value`, and how the first of them does. Several of them only where
    /// a bound holds: else which to replace is anybody's guess.
    fn saying(
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
    fn text(
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
    fn prose(&self, value: &Json<'_>, texts: &[(usize, &str)]) -> Option<Shorter> {
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

    /// Says texts that are not about the value shorter: documents as values, and all of them together in at
    /// most so many tokens.
    fn shorten_others(&self, texts: &[(usize, &str)], most: Option<usize>, draft: &mut Draft<'_>) {
        let most = most.unwrap_or(usize::MAX);
        let mut weights: Vec<_> = texts.iter().map(|(_, text)| tokens(text)).collect();
        let is_much = weights.iter().sum::<usize>() > most;
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

    /// The structured value as its contract lets it go; with `is_alone` it is all that the reader gets.
    fn structured<'v>(&self, value: &Json<'v>, is_alone: bool) -> Option<Compact<'v>> {
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

    /// How much stays.
    fn limits(&self) -> Limits {
        let Compaction { limits, bounds, .. } = self.compaction;
        bounds.within(if self.is_terse {
            *limits
        } else {
            Limits::none()
        })
    }

    fn uri(&self) -> Option<&str> {
        self.compaction.whole.map(|whole| whole.uri)
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

/// What `say` makes within `limits` that costs at most so many tokens, or as few as it can.
fn fitted<T>(
    limits: &Limits,
    most: Option<usize>,
    say: impl Fn(&Limits) -> Option<T>,
    cost: impl Fn(&T) -> usize,
) -> Option<T> {
    let mut said = say(limits)?;
    let Some(most) = most else { return Some(said) };
    let mut bytes = most.saturating_mul(BYTES_PER_TOKEN);
    for _ in 0..MOST_TRIES {
        if cost(&said) <= most {
            break;
        }
        said = say(&limits.with_bytes(bytes))?;
        let fitting = bytes.saturating_mul(most) / cost(&said).max(1);
        bytes = fitting.min(bytes / 10 * 9);
    }
    Some(said)
}

/// The beginning of `text` that costs at most so many tokens, and how many bytes of it that keeps; none when
/// it stays.
fn within(text: &str, most: usize) -> Option<(String, usize)> {
    let mut bytes = text.len();
    let mut cost = tokens(text);
    let mut short = None;
    while cost > most && bytes > 1 {
        bytes = (bytes.saturating_mul(most) / cost).min(bytes / 10 * 9);
        let next = shorter_prose(text, bytes.max(ELLIPSIS.len()))?;
        cost = tokens(&next.0);
        short = Some(next);
    }
    short
}

/// What stands after the URI of a whole value for the texts beside it.
pub const TEXTS: &str = "/texts";

/// So many bytes of JSON make a token at first.
const BYTES_PER_TOKEN: usize = 4;

/// So often a value is said again until it is short enough.
const MOST_TRIES: usize = 12;

/// A text that costs no more tokens than this says little.
const SMALLEST_TEXT: usize = 32;
