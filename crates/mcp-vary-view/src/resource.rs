//! One resource, or resource template, as one view lists it.

use std::collections::BTreeMap;

use mcp_vary::json::{Json, JsonError, Members};

use super::tool::{Changes, Style};

/// What a view makes of one resource or resource template.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "written out by hand")]
pub struct ResourceOverride {
    /// Its URI, or the URI template with the same expressions. What it is to the server, and what else is
    /// called otherwise with it, says a [`UriMap`](super::UriMap).
    pub uri: Option<String>,
    /// What it is called.
    pub name: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its description, listed as it is whatever the style.
    pub description: Option<String>,
    /// Its MIME type as it is listed. What is read says its own: it may be another rendering.
    pub mime_type: Option<String>,
    /// Members of its `annotations`, set or replaced.
    pub annotations: BTreeMap<String, Json<'static>>,
}

impl ResourceOverride {
    /// The resource of `definition` as the view lists it; nothing when that is as the server does.
    ///
    /// # Errors
    ///
    /// When `definition` is not a JSON object or repeats a key. Such a resource is best listed as it is.
    ///
    /// # Examples
    ///
    /// ```
    /// use crate::{Description, ResourceOverride, Style};
    ///
    /// let resource = r#"{"uri": "docs://a", "name": "a", "description": "The guide. Long."}"#;
    /// let style = Style { description: Description::FirstSentence, ..Style::default() };
    /// assert_eq!(
    ///     ResourceOverride::default().prepare(resource, style)?.as_deref(),
    ///     Some(r#"{"uri":"docs://a","name":"a","description":"The guide."}"#),
    /// );
    /// assert_eq!(ResourceOverride::default().prepare(resource, Style::default())?, None);
    ///
    /// let change = ResourceOverride { uri: Some("guide:start".into()), ..ResourceOverride::default() };
    /// assert_eq!(
    ///     change.prepare(r#"{"uri": "docs://a", "size": 7.0}"#, Style::default())?.as_deref(),
    ///     Some(r#"{"uri":"guide:start","size":7.0}"#),
    /// );
    /// # Ok::<(), mcp_vary::json::JsonError>(())
    /// ```
    pub fn prepare(&self, definition: &str, style: Style) -> Result<Option<String>, JsonError> {
        let mut members = Members::parse(definition)?;
        let key = ["uriTemplate", "uri"];
        let key = key.into_iter().find(|key| members.contains(key));
        let mut changed = Changes::new(&mut members);
        if let Some(key) = key {
            changed.string(key, self.uri.as_deref());
        }
        changed.string("mimeType", self.mime_type.as_deref());
        changed.string("name", self.name.as_deref());
        changed.string("title", self.title.as_deref());
        changed.description(self.description.as_deref(), style.description)?;
        changed.annotations(&self.annotations)?;
        Ok(changed.any.then(|| members.to_json()))
    }
}
