//! The tools and feature tags that were probably meant, for those that do not exist.

use mcp_vary::feature::{FeatureTag, Features, Format, REGISTERED, Verbosity, is_registered};
use mcp_vary::json::Members;

use crate::client::Client;
use crate::failure::Failure;
use crate::similar::nearest;
use crate::target_session::TargetSession;

/// What to write instead of the tool `name`, if `variant` does not list it and something is known that was meant.
///
/// # Errors
///
/// When the server does not list its tools.
pub(crate) async fn for_tool(
    front: &TargetSession,
    client: &Client,
    name: &str,
    variant: Option<&str>,
) -> Result<Option<String>, Failure> {
    let listed = names(&client.tools(variant).await?);
    if listed.iter().any(|known| known == name) {
        return Ok(None);
    }
    let mut served = front.summary.served.iter();
    let renamed = served.find(|item| {
        let is_here = listed.contains(&item.id);
        item.list == "tools/list" && item.upstream_name == name && is_here
    });
    if let Some(item) = renamed {
        return Ok(Some(format!("`{name}` is called `{}` here", item.id)));
    }
    for (other, tools) in front.tools_by_variant(client).await? {
        if names(&tools).iter().any(|known| known == name) {
            return Ok(Some(format!(
                "`{name}` exists in variant `{other}`; add --variant {other}"
            )));
        }
    }
    let meant = nearest(name, listed.iter().map(String::as_str));
    // A name without the prefix of its server.
    let ending = || {
        let mut ends = listed.iter().filter(|known| {
            let start = known.strip_suffix(name);
            start.is_some_and(|start| start.ends_with(['_', '-', '.', '/']))
        });
        ends.next().map(String::as_str)
    };
    let meant = meant.or_else(ending);
    Ok(meant.map(|meant| format!("there is no tool `{name}`; did you mean `{meant}`?")))
}

/// The names of tools, given as JSON texts.
fn names(tools: &[String]) -> Vec<String> {
    let name = |tool: &String| Members::parse(tool).ok()?.get_str("name");
    tools.iter().filter_map(name).collect()
}

/// A sentence for each tag that the registry does not define, if a similar one is defined.
pub(crate) fn for_features(features: &Features) -> Vec<String> {
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
    let formats = Format::ALL.map(|format| format!("format={}", format.as_str()));
    let verbosities = Verbosity::ALL.map(|verbosity| format!("verbosity={}", verbosity.as_str()));
    let with_values = formats.iter().chain(&verbosities).map(String::as_str);
    let text = tag.to_string();
    let (denial, text) = match text.strip_prefix('!') {
        Some(rest) => ("!", rest),
        None => ("", text.as_str()),
    };
    let meant = nearest(text, REGISTERED.into_iter().chain(with_values))?;
    Some(format!("{denial}{meant}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn says(tags: &[&str], expected: &[&str]) {
        let (features, _) = Features::from_tags(tags.iter().copied());
        assert_eq!(for_features(&features), expected, "{tags:?}");
    }

    #[test]
    fn a_feature_tag_with_a_slip_is_understood() {
        let meant = |tag: &str, meant: &str| {
            format!("`{tag}` is not a registered feature tag; did you mean `{meant}`?")
        };
        says(&["huma"], &[&meant("huma", "human")]);
        says(&["!interactiv"], &[&meant("!interactiv", "!interactive")]);
        says(
            &["agent", "format=jsn"],
            &[&meant("format=jsn", "format=json")],
        );
        says(&["x-acme", "agent", "format=json"], &[]);
    }
}
