//! `deprecation` of a variant: why it goes, when, and what to use instead.

use mcp_vary::variant::{DeprecationInfo, VariantId};

use crate::document::Value;
use crate::key_spec::{Setting, Takes};
use crate::reader::{Field, Reader};
use crate::schema::Schema;

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
        field: &Field<'_>,
    ) -> Option<DeprecationInfo> {
        if !matches!(field.node.value, Value::Table(_)) {
            return None;
        }
        if self.message.is_none() {
            reader.wrong(field, "says nothing to clients", "add `message: ...`");
        }
        let mut info = DeprecationInfo::new(self.message.unwrap_or_default());
        info.replacement = self.replacement;
        info.removal_date = self.removal_date;
        Some(info)
    }
}

pub(super) const DEPRECATION: &[Setting<Deprecation>] = &[
    Setting {
        key: "message",
        about: "why, and how to migrate; required",
        default: "",
        takes: Takes::Word(|info| &mut info.message),
    },
    Setting {
        key: "replacement",
        about: "the variant to use instead",
        default: "",
        takes: Takes::Other(Schema::variant_id, |reader, field, info| {
            let word = reader.word(field).unwrap_or_default();
            match word.parse() {
                Ok(id) => info.replacement = Some(id),
                Err(_) => reader.wrong(field, "is no id of a variant", "name another variant"),
            }
        }),
    },
    Setting {
        key: "removal-date",
        about: "when it goes, as `2027-01-31`; it is served until it is taken out of the file",
        default: "",
        takes: Takes::Other(Schema::date, |reader, field, info| {
            info.removal_date = reader.word(field)
        }),
    },
];
