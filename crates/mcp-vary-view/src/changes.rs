//! Changes to the members of a tool, prompt or resource.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcp_vary::json::{Json, JsonError, Members, string};

use super::arguments::Arguments;
use super::derive;
use super::dialect::ArgumentDecoder;
use super::on_demand::{keeps_schema, open_schema, typed};
use super::style::{Description, ListedArguments, SchemaStyle, Style};

/// Changes the members of an item, and tracks whether any changed.
pub(super) struct Changes<'m, 't> {
    members: &'m mut Members<'t>,
    pub(super) is_changed: bool,
}

impl<'m, 't> Changes<'m, 't> {
    pub(super) fn new(members: &'m mut Members<'t>) -> Self {
        Self {
            members,
            is_changed: false,
        }
    }

    pub(super) fn set(&mut self, key: &'static str, json: String) {
        if self.members.get(key) != Some(&json) {
            self.members.set(key, json);
            self.is_changed = true;
        }
    }

    pub(super) fn string(&mut self, key: &'static str, text: Option<&str>) {
        if let Some(text) = text
            && self.members.get_str(key).as_deref() != Some(text)
        {
            self.set(key, string(text));
        }
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.is_changed |= self.members.remove(key).is_some();
    }

    pub(super) fn description(
        &mut self,
        description: Option<&str>,
        style: Description,
    ) -> Result<(), JsonError> {
        match (description, style, self.members.get("description")) {
            (Some(description), _, _) => self.string("description", Some(description)),
            (None, Description::FirstSentence, Some(written)) => {
                let shortened = derive::shorten(written)?;
                self.set("description", shortened);
            }
            (None, _, _) => {}
        }
        Ok(())
    }

    pub(super) fn annotations(
        &mut self,
        annotations: &BTreeMap<String, Json<'static>>,
    ) -> Result<(), JsonError> {
        if annotations.is_empty() {
            return Ok(());
        }
        let written = self.members.get("annotations").unwrap_or("{}").to_owned();
        let mut there = Members::parse(&written)?;
        for (key, value) in annotations {
            there.set(key.clone(), value.to_json());
        }
        self.set("annotations", there.to_json());
        Ok(())
    }

    /// Adds a sentence with these names of arguments to the description.
    fn append_arguments(&mut self, names: &[String]) {
        if names.is_empty() {
            return;
        }
        let mut description = self.members.get_str("description").unwrap_or_default();
        if !description.is_empty() {
            description.push(' ');
        }
        description.push_str(&format!("Arguments: {}.", names.join(", ")));
        self.set("description", string(&description));
    }

    pub(super) fn schema(
        &mut self,
        written: &str,
        arguments: &Arguments,
        style: Style,
    ) -> Result<Option<ArgumentDecoder>, JsonError> {
        let mut schema = arguments.schema(written)?;
        match style.schema {
            SchemaStyle::Full => {}
            SchemaStyle::OnDemand | SchemaStyle::OnDemandBare if !keeps_schema(self.members) => {
                let is_bare = style.schema == SchemaStyle::OnDemandBare;
                let listed = if is_bare {
                    ListedArguments::None
                } else {
                    style.arguments
                };
                let open = open_schema(&schema, listed)?;
                if is_bare {
                    self.append_arguments(&open.names);
                }
                schema = Cow::Owned(open.json);
            }
            SchemaStyle::Compact | SchemaStyle::OnDemand | SchemaStyle::OnDemandBare => {
                let known = derive::known_words(self.members);
                let prose = match style.schema {
                    SchemaStyle::Compact => derive::Prose::Essential(&known),
                    _ => derive::Prose::None,
                };
                let compact = derive::schema::compact(&schema, prose)?;
                if compact.len() < schema.len() {
                    schema = Cow::Owned(compact);
                }
            }
        }
        let mut back = None;
        if let Some(dialect) = style.dialect {
            let rewritten = dialect.rewritten(&schema)?;
            back = Some(
                rewritten
                    .decoder
                    .renamed_upstream(|name| arguments.upstream_name(name).map(str::to_owned)),
            );
            schema = rewritten.schema.map_or(schema, Cow::Owned);
        } else if style.schema.is_on_demand() {
            schema = Cow::Owned(typed(&schema)?);
        }
        if schema != written {
            self.set("inputSchema", schema.into_owned());
        }
        Ok(back)
    }
}
