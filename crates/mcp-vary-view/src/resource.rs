//! One resource or resource template in a view.

use std::collections::BTreeMap;

use mcp_vary::json::{Json, JsonError, Members};

use super::changes::Changes;
use super::style::Style;

/// How a view changes one resource or resource template.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "written out by hand")]
pub struct ResourceOverride {
    /// Its URI, or a URI template with the same expressions. [`UriMap`](super::UriMap) maps it to the server's,
    /// together with everything that a template covers.
    pub uri: Option<String>,
    /// Its name in the view.
    pub name: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its description, listed in full with every style.
    pub description: Option<String>,
    /// Its MIME type in the list. The contents that are read state their own, which may be that of another
    /// rendering.
    pub mime_type: Option<String>,
    /// Members of its `annotations` to set or replace.
    pub annotations: BTreeMap<String, Json<'static>>,
}

impl ResourceOverride {
    /// The resource of `definition` as the view lists it; `None` if that equals the server's definition.
    ///
    /// # Errors
    ///
    /// When `definition` is not a JSON object or repeats a key. List such a resource unchanged.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_vary_view::{Description, ResourceOverride, Style};
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
        let keys = ["uriTemplate", "uri"];
        let key = keys.into_iter().find(|key| members.contains(key));
        let mut changed = Changes::new(&mut members);
        if let Some(key) = key {
            changed.string(key, self.uri.as_deref());
        }
        changed.string("mimeType", self.mime_type.as_deref());
        changed.string("name", self.name.as_deref());
        changed.string("title", self.title.as_deref());
        changed.description(self.description.as_deref(), style.description)?;
        changed.annotations(&self.annotations)?;
        Ok(changed.is_changed.then(|| members.to_json()))
    }
}
