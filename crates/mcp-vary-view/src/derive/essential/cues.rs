//! Words and phrases by which [`rules`](super::rules) recognise a sentence. Each list is a text file beside this one.

use crate::word_list::word_list;

/// A constant for each list, and all of them for the tests.
macro_rules! lists {
    ($($(#[$about:meta])+ $name:ident = $file:literal,)*) => {
        $(
            $(#[$about])+
            pub(super) const $name: &[&str] = word_list!($file);
        )*
        #[cfg(test)]
        const ALL: &[(&str, &[&str])] = &[$(($file, $name)),*];
    };
}

lists! {
    /// Something is dangerous, or not to be trusted.
    WARNINGS = "cues/warnings.txt",
    /// What something is not for.
    LIMITS = "cues/limits.txt",
    /// From where something is counted or measured.
    POSITIONS = "cues/positions.txt",
    /// What must hold for a call.
    CONDITIONS = "cues/conditions.txt",
    /// What must hold for a call, in the description of a tool.
    ITEM_CONDITIONS = "cues/item_conditions.txt",
    /// What must hold for a value, in the description of an argument.
    SCHEMA_CONDITIONS = "cues/schema_conditions.txt",
    /// What a condition says that a caller cannot leave out.
    STRICT_CONDITIONS = "cues/strict_conditions.txt",
    /// Phrases with the words of conditions that set none.
    NO_CONDITIONS = "cues/no_conditions.txt",
    /// How a sentence begins that says what to do, in the description of a tool.
    ADVICE = "cues/advice.txt",
    /// How a sentence begins that says what `true` means.
    SWITCHES = "cues/switches.txt",
    /// What `true` may remove.
    REMOVALS = "cues/removals.txt",
    /// How a sentence begins that only gives an example.
    EXAMPLES = "cues/examples.txt",
    /// From where a value is.
    ORIGINS = "cues/origins.txt",
    /// How a sentence begins that cannot be understood without the one before it.
    BACKWARD = "cues/backward.txt",
    /// Units.
    UNITS = "cues/units.txt",
    /// Formats of texts.
    FORMATS = "cues/formats.txt",
    /// How a sentence begins that only says the default.
    DEFAULTS = "cues/defaults.txt",
    /// How a sentence begins that recommends a tool.
    PRAISE = "cues/praise.txt",
    /// How a sentence begins that says what the result looks like.
    RESULTS = "cues/results.txt",
    /// Words that only English has.
    ENGLISH = "cues/english.txt",
    /// Frequent words of other languages that English lacks.
    FOREIGN = "cues/foreign.txt",
    /// Words that say nothing of what is meant.
    EMPTY = "cues/empty.txt",
    /// What a result makes a caller do.
    RESULT_CONDITIONS = "cues/result_conditions.txt",
    /// A sentence with a link is only about the link.
    REFERENCES = "cues/references.txt",
    /// The labels of sections that callers do not need.
    LEFT_OUT_LABELS = "cues/left_out_labels.txt",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_phrases_in_lowercase() {
        for (file, list) in ALL {
            assert!(list.is_sorted_by(|one, next| one < next), "{file}");
            for phrase in *list {
                let terms: Vec<&str> = phrase.split_whitespace().collect();
                assert!(!terms.is_empty(), "{file} has an empty line");
                assert_eq!(terms.join(" ").to_lowercase(), *phrase, "{file}");
            }
        }
    }
}
