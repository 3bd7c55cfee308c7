//! Shapes `resources/read` results with representations.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::applied::{Applied, META_APPLIED, Report, Shaped, meta};
use super::content::{container, is_complete};
use crate::feature::{Features, Format, Verbosity};
use crate::ignored::for_display;
use crate::json::{Json, JsonError, Members, elements, string};
use crate::predicate::{Predicate, choose_with_condition};
use crate::render;

/// The maximum length of a media type, in bytes.
pub const MAX_MEDIA_TYPE: usize = 255;

/// A media type: `text/markdown`, `application/geo+json`, `text/plain; charset=utf-8`.
///
/// # Grammar
///
/// `type "/" subtype [ ";" parameters ]`, type and subtype of letters, digits and ``!#$&-^_.+`` as in
/// RFC 6838, the parameters of printable ASCII.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::Format;
/// use mcp_vary::shape::MediaType;
///
/// assert_eq!("application/geo+json".parse::<MediaType>()?.format(), Some(Format::Json));
///
/// // Markup is not plain text: only a condition selects it.
/// assert_eq!("text/html".parse::<MediaType>()?.format(), None);
/// # Ok::<(), mcp_vary::shape::MediaTypeError>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct MediaType(String);

impl MediaType {
    /// The media type as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The format with which clients request it; `None` if they cannot.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        let written = self.0.split(';').next().unwrap_or_default();
        let essence = written.trim_end().to_ascii_lowercase();
        match essence.as_str() {
            "text/markdown" => Some(Format::Markdown),
            "text/plain" => Some(Format::Text),
            other if other.ends_with("/json") || other.ends_with("+json") => Some(Format::Json),
            _ => None,
        }
    }
}

impl FromStr for MediaType {
    type Err = MediaTypeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphanumeric())
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c))
        };
        let names = essence.trim_end().split_once('/');
        let is_printable = parameters.chars().all(|c| c.is_ascii_graphic() || c == ' ');
        let is_type = names.is_some_and(|(name, subname)| is_name(name) && is_name(subname));
        if text.len() > MAX_MEDIA_TYPE || !is_type || !is_printable {
            return Err(MediaTypeError(for_display(text)));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for MediaType {
    type Error = MediaTypeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<MediaType> for String {
    fn from(media_type: MediaType) -> Self {
        media_type.0
    }
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text is not a media type.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is not a media type; write one like `text/markdown`")]
pub struct MediaTypeError(String);

/// How JSON is rendered.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Rendering {
    /// As [`markdown`](render::markdown).
    Markdown,
    /// As plain [`text`](render::text).
    Text,
    /// [GeoJSON](render::geo_json) as readable markdown; other JSON as markdown.
    GeoMarkdown,
    /// [GeoJSON](render::geo_json) as readable plain text; other JSON as plain text.
    GeoText,
}

impl Rendering {
    /// The output format.
    #[must_use]
    pub fn format(self) -> Format {
        match self {
            Self::Markdown | Self::GeoMarkdown => Format::Markdown,
            Self::Text | Self::GeoText => Format::Text,
        }
    }

    /// Renders `value`.
    #[must_use]
    pub fn apply(self, value: &Json<'_>) -> String {
        let readable = match self {
            Self::GeoMarkdown | Self::GeoText => render::geo_json(value),
            Self::Markdown | Self::Text => None,
        };
        let value = readable.as_ref().unwrap_or(value);
        match self.format() {
            Format::Markdown => render::markdown(value),
            _ => render::text(value),
        }
    }
}

/// One representation of a resource.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Representation {
    /// The server's contents, byte for byte.
    AsServed,
    /// The server's text rendered, if it is a JSON object or array; else as served.
    Rendered(Rendering),
    /// The author's text.
    Text {
        /// The media type of `text`.
        media_type: MediaType,
        /// The text.
        text: String,
    },
}

impl Representation {
    /// A representation with an author's text.
    ///
    /// # Errors
    ///
    /// When `media_type` is not a media type.
    pub fn text(media_type: &str, text: impl Into<String>) -> Result<Self, MediaTypeError> {
        Ok(Self::Text {
            media_type: media_type.parse()?,
            text: text.into(),
        })
    }

    /// The format with which clients request it; `None` if only a condition selects it.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        match self {
            Self::AsServed => None,
            Self::Rendered(rendering) => Some(rendering.format()),
            Self::Text { media_type, .. } => media_type.format(),
        }
    }

    /// The text and its media type, derived from the server's text; `None` if that is sent unchanged.
    fn apply(&self, served: &str) -> Option<(String, &str)> {
        match self {
            Self::AsServed => None,
            Self::Rendered(rendering) => {
                let media_type = match rendering.format() {
                    Format::Markdown => "text/markdown",
                    _ => "text/plain",
                };
                Some((rendering.apply(&container(served)?), media_type))
            }
            Self::Text { media_type, text } => Some((text.clone(), media_type.as_str())),
        }
    }
}

/// The representations of one resource, by format or condition.
///
/// The server's contents are always one of them, in the format of their media type.
///
/// # Examples
///
/// ```
/// use mcp_vary::feature::Features;
/// use mcp_vary::shape::{Rendering, Representation, Representations, Shaped, resource_result};
///
/// let valley = Representations::default()
///     .with(Representation::Rendered(Rendering::GeoMarkdown))?
///     .with_under("agent & mcp-capable".parse()?, Representation::AsServed);
/// let result = r#"{"contents": [{"uri": "map://valley", "mimeType": "application/geo+json",
///     "text": "{\"type\": \"Point\", \"coordinates\": [7.6586, 45.9763]}"}]}"#;
/// let read = |tags: &str| {
///     let (features, _) = Features::from_tags(tags.split(','));
///     resource_result(result, &features, |_uri| Some(&valley), None)
/// };
/// let Shaped::Changed { result, .. } = read("human,format=markdown") else { panic!() };
/// assert_eq!(result, concat!(
///     r#"{"contents":[{"uri":"map://valley","mimeType":"text/markdown","#,
///     r#""text":"- **coordinates**: 45.9763°N, 7.6586°E"}]}"#,
/// ));
///
/// // Conditions precede formats.
/// assert_eq!(read("agent,mcp-capable,format=markdown"), Shaped::Unchanged);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Representations {
    by_format: Vec<(Format, Representation)>,
    conditional: Vec<(Predicate, Representation)>,
    for_all: Vec<(Predicate, Representation)>,
}

impl Representations {
    /// Adds a representation for clients that request its format.
    ///
    /// # Errors
    ///
    /// When clients cannot request it, or when another has the same format.
    pub fn with(mut self, representation: Representation) -> Result<Self, RepresentationError> {
        let Some(format) = representation.format() else {
            return Err(RepresentationError::NoFormat);
        };
        if self.by_format.iter().any(|(other, _)| *other == format) {
            return Err(RepresentationError::Twice(format.as_str()));
        }
        self.by_format.push((format, representation));
        Ok(self)
    }

    /// Adds a representation for clients that match a condition, whatever format they request.
    #[must_use]
    pub fn with_under(mut self, predicate: Predicate, representation: Representation) -> Self {
        self.conditional.push((predicate, representation));
        self
    }

    /// The same, also for clients that declared nothing.
    #[must_use]
    pub fn with_for_all(mut self, predicate: Predicate, representation: Representation) -> Self {
        self.for_all
            .push((predicate.clone(), representation.clone()));
        self.with_under(predicate, representation)
    }

    /// Chooses the representation for a client; `served` is the format of the server's contents.
    ///
    /// The most specific matching condition decides; then the format, explicit before inferred. Clients that
    /// declared nothing get the server's contents, or a representation that is [for all](Self::with_for_all).
    #[must_use]
    pub fn choose(&self, features: &Features, served: Option<Format>) -> &Representation {
        self.choose_with_verbosity(features, served).0
    }

    /// The same, with the verbosity in the condition that decided.
    fn choose_with_verbosity(
        &self,
        features: &Features,
        served: Option<Format>,
    ) -> (&Representation, Option<Verbosity>) {
        let as_served = &Representation::AsServed;
        if features.is_empty() {
            let chosen = choose_with_condition(&self.for_all, features);
            return (chosen.map_or(as_served, |(_, chosen)| chosen), None);
        }
        if let Some((when, representation)) = choose_with_condition(&self.conditional, features) {
            return (representation, when.verbosity());
        }
        let formats = self.by_format.iter().map(|(format, _)| *format);
        let supported: Vec<_> = formats.chain(served).collect();
        let chosen = features.choose_format(&supported);
        let of_format = |(format, _): &&(Format, Representation)| Some(*format) == chosen;
        let found = self.by_format.iter().find(of_format);
        (found.map_or(as_served, |(_, found)| found), None)
    }
}

/// Why clients cannot request a representation.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RepresentationError {
    /// It has no format.
    #[error("no `format` selects this representation; give it a condition")]
    NoFormat,
    /// Another has the same format.
    #[error("two representations have the format `{0}`; give one of them a condition")]
    Twice(&'static str),
}

/// Shapes `result`, the `result` member of a `resources/read` answer, for a client with `features`.
///
/// `representations` returns the representations of a URI.
///
/// # Properties
///
/// A text and its `mimeType` change together, so that the type is always right. Blobs, unknown members, other
/// contents and their order stay byte for byte. The result is unchanged for clients that declared nothing, unless a
/// representation is [for all](Representations::with_for_all), and if it was already shaped, requires input, or is
/// unreadable.
#[must_use]
pub fn resource_result<'r>(
    result: &str,
    features: &Features,
    representations: impl Fn(&str) -> Option<&'r Representations>,
    report: Option<Report<'_>>,
) -> Shaped {
    // An unreadable result is forwarded unchanged.
    shape(result, features, representations, report).unwrap_or(Shaped::Unchanged)
}

fn shape<'r>(
    text: &str,
    features: &Features,
    representations: impl Fn(&str) -> Option<&'r Representations>,
    report: Option<Report<'_>>,
) -> Result<Shaped, JsonError> {
    let mut result = Members::parse(text)?;
    let metadata = meta(&result)?;
    let Some(contents) = result.get("contents") else {
        return Ok(Shaped::Unchanged);
    };
    if !is_complete(&result) || metadata.contains(META_APPLIED) {
        return Ok(Shaped::Unchanged);
    }
    let mut formats = Vec::new();
    let mut verbosity = None;
    let mut shaped = Vec::new();
    for written in elements(contents)? {
        let new = content(written, features, &representations);
        shaped.push(new.map_or_else(
            || written.to_owned(),
            |(new, format, decided)| {
                formats.push(format);
                verbosity = verbosity.or(decided);
                new
            },
        ));
    }
    let Some(first) = formats.first() else {
        return Ok(Shaped::Unchanged);
    };
    let format = first.filter(|_| formats.iter().all(|format| format == first));
    let applied = Applied::new(format, features).decided_by(verbosity);
    let reported = report.map(|report| applied.report(metadata, report));
    result.set("contents", format!("[{}]", shaped.join(",")));
    if let Some(report) = reported {
        result.set("_meta", report);
    }
    Ok(Shaped::Changed {
        result: result.to_json(),
        applied,
    })
}

/// One content with a new text, its format, and the verbosity that decided; `None` if it is unchanged.
fn content<'r>(
    written: &str,
    features: &Features,
    representations: &impl Fn(&str) -> Option<&'r Representations>,
) -> Option<(String, Option<Format>, Option<Verbosity>)> {
    let mut content = Members::parse(written).ok()?;
    if content.contains("blob") {
        return None;
    }
    let known = representations(&content.get_str("uri")?)?;
    let text = content.get_str("text")?;
    let served = match content.get_str("mimeType") {
        Some(media_type) => media_type.parse().ok().and_then(|m: MediaType| m.format()),
        None => container(&text).map(|_| Format::Json),
    };
    let (representation, verbosity) = known.choose_with_verbosity(features, served);
    let (new, media_type) = representation.apply(&text)?;
    content.set("mimeType", string(media_type));
    content.set("text", string(&new));
    Some((content.to_json(), representation.format(), verbosity))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_of(written: &str, format: Option<Format>) {
        let read = MediaType::try_from(written.to_owned()).unwrap();
        assert_eq!(read.format(), format, "{written}");
        let found = (read.to_string(), String::from(read));
        assert_eq!(found, (written.to_owned(), written.to_owned()));
    }

    /// CN-15: which format a media type is asked for by; what was written stays.
    #[test]
    fn a_media_type_has_the_format_of_its_essence() {
        is_of("text/markdown; variant=GFM", Some(Format::Markdown));
        is_of("text/plain", Some(Format::Text));
        is_of("TEXT/Plain ; charset=utf-8", Some(Format::Text));
        is_of("application/json", Some(Format::Json));
        is_of("application/ld+json", Some(Format::Json));
        is_of("text/html", None);
    }

    #[test]
    fn what_is_no_media_type_is_refused() {
        for text in [
            "",
            "text",
            "text/",
            "/plain",
            "text/pl ain",
            "text/plain;\n",
            "a/b; \u{e9}",
        ] {
            assert!(text.parse::<MediaType>().is_err(), "{text:?}");
        }
    }
}
