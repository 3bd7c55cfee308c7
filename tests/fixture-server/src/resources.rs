//! The resources and the template that the suite reads.

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

/// The resources as listed.
pub(crate) fn all() -> Vec<Resource> {
    serde_json::from_str(include_str!("resources.json")).expect("the file is a list of resources")
}

/// The resource templates as listed.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    serde_json::from_str(include_str!("templates.json")).expect("the file is a list of templates")
}

/// The contents of the resource `uri`, listed or made from a template.
///
/// # Errors
///
/// Any other URI is not found; the error's data repeats it.
pub(crate) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    contents(uri)
        .map(|contents| ReadResourceResult::new(vec![contents]))
        .ok_or_else(|| {
            ErrorData::resource_not_found(
                format!("resource not found: {uri}"),
                Some(json!({ "uri": uri })),
            )
        })
}

fn contents(uri: &str) -> Option<ResourceContents> {
    let text = |text: &str| ResourceContents::text(text, uri).with_mime_type("text/plain");
    match uri {
        TEXT => Some(text("This is the content of the static text resource.")),
        WATCHED => Some(text("This is watched.")),
        BINARY => Some(ResourceContents::blob(PIXEL_PNG, uri).with_mime_type("image/png")),
        _ => template_data(uri).or_else(|| {
            let name = uri.strip_prefix("test://note/")?;
            is_one_segment(name).then(|| text(&format!("A note called {name}.")))
        }),
    }
}

fn template_data(uri: &str) -> Option<ResourceContents> {
    let id = uri
        .strip_prefix("test://template/")?
        .strip_suffix("/data")?;
    let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
    is_one_segment(id)
        .then(|| ResourceContents::text(data.to_string(), uri).with_mime_type("application/json"))
}

fn is_one_segment(value: &str) -> bool {
    !value.is_empty() && !value.contains('/')
}

/// A red pixel.
pub(crate) const PIXEL_PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

/// A WAV file without a sample.
pub(crate) const SILENCE_WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";
const WATCHED: &str = "test://watched-resource";
