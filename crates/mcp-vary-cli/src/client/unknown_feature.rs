//! What to write instead of a feature tag that is not registered.

use mcp_vary::feature::{FeatureTag, Features, is_registered, registered_tags};

use crate::similar::nearest;

/// A sentence for each tag that the registry does not define, if a similar one is defined.
pub(crate) fn suggestions(features: &Features) -> Vec<String> {
    let unknown = features.tags().filter(|tag| !is_registered(tag));
    let sentences = unknown.filter_map(|tag| {
        let meant = registered_tag(tag)?;
        Some(format!(
            "`{tag}` is not a registered feature tag; did you mean `{meant}`?"
        ))
    });
    sentences.collect()
}

fn registered_tag(tag: &FeatureTag) -> Option<String> {
    let text = tag.to_string();
    let (denial, text) = match text.strip_prefix('!') {
        Some(denied) => ("!", denied),
        None => ("", text.as_str()),
    };
    // The value alone: `json` for `format=json`.
    let by_value = || {
        registered_tags().find(|tag| {
            let value = tag.split_once('=').map(|(_, value)| value);
            nearest(text, value).is_some()
        })
    };
    let meant = nearest(text, registered_tags()).or_else(by_value)?;
    Some(format!("{denial}{meant}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn suggests(tags: &[&str], expected: &[&str]) {
        let (features, _) = Features::from_tags(tags.iter().copied());
        assert_eq!(suggestions(&features), expected, "{tags:?}");
    }

    #[test]
    fn a_similar_feature_tag_is_suggested() {
        let meant = |tag: &str, meant: &str| {
            format!("`{tag}` is not a registered feature tag; did you mean `{meant}`?")
        };
        suggests(&["huma"], &[&meant("huma", "human")]);
        suggests(&["!interactiv"], &[&meant("!interactiv", "!interactive")]);
        suggests(
            &["agent", "format=jsn"],
            &[&meant("format=jsn", "format=json")],
        );
        suggests(&["jsn"], &[&meant("jsn", "format=json")]);
        suggests(&["x-acme", "agent", "format=json"], &[]);
    }
}
