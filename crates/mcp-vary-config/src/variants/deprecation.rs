//! `deprecation` of a variant: why it will be removed, when, and what replaces it.

use mcp_vary::variant::{DeprecationInfo, VariantId};

use crate::document::Value;
use crate::key_spec::ValueKind::{Other, Scalar};
use crate::key_spec::{KeySpec, keys, value};
use crate::reader::{Located, Reader};
use crate::schema_builder::SchemaBuilder;

/// `deprecation` while it is read.
#[derive(Default)]
pub(super) struct Deprecation {
    message: Option<String>,
    replacement: Option<VariantId>,
    removal_date: Option<String>,
}

impl Deprecation {
    pub(super) fn finish(
        self,
        reader: &mut Reader<'_>,
        field: &Located<'_>,
    ) -> Option<DeprecationInfo> {
        if !matches!(field.node.value, Value::Table(_)) {
            return None;
        }
        if self.message.is_none() {
            reader.report(field, "has no `message`", "add `message: ...`");
        }
        let mut info = DeprecationInfo::new(self.message.unwrap_or_default());
        info.replacement = self.replacement;
        info.removal_date = self.removal_date;
        Some(info)
    }
}

pub(super) const DEPRECATION: &[KeySpec<Deprecation>] = keys![
    /// why, and how to migrate; required
    "message" => Scalar(|info| &mut info.message),
    /// the variant to use instead
    "replacement" => Other(SchemaBuilder::variant_id, |reader, field, info| {
        let word = reader.word(field).unwrap_or_default();
        match word.parse() {
            Ok(id) => info.replacement = Some(id),
            Err(_) => reader.report(field, "is not a variant id", "name another variant"),
        }
    }),
    /// when you will take it out of the file, as `2027-01-31`
    "removal-date" => value!(SchemaBuilder::date, Reader::word, |info| info.removal_date),
];
