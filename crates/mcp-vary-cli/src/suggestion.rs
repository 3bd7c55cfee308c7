//! The names that were probably meant, for names that do not exist.

use mcp_vary::feature::{FeatureTag, Features, Format, REGISTERED, Verbosity, is_registered};
use mcp_vary::json::Members;
use serde_json::Value;

use crate::client::Client;
use crate::failure::Failure;
use crate::target_session::TargetSession;

/// The name in `known` that is most similar to `written`, if one is similar.
pub(crate) fn nearest<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    if written.len() > LONGEST {
        return None;
    }
    let wanted = plain(written);
    let allowed = (wanted.chars().count() / 3).min(3);
    let distances = known
        .into_iter()
        .take(MOST_COMPARED)
        .filter(|known| known.len() <= LONGEST)
        .map(|known| (strsim::osa_distance(&wanted, &plain(known)), known));
    let (distance, known) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= allowed).then_some(known)
}

/// A name in lower case, without separators.
fn plain(name: &str) -> String {
    let letters = name
        .chars()
        .filter(|c| !matches!(c, '-' | '_' | '.' | ' ' | '/'));
    letters.flat_map(char::to_lowercase).collect()
}

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

/// The problem with the variant `wanted`, which the JSON-RPC error `error` refuses, and what to write instead if another
/// was probably meant.
pub(crate) fn for_variant(error: &str, wanted: &str) -> Option<String> {
    let available = available_variants(error);
    if available.iter().any(|id| id == wanted) {
        return Some(format!(
            "the server offers the variant `{wanted}`, but refuses it"
        ));
    }
    let meant = nearest(wanted, available.iter().map(String::as_str))?;
    Some(format!(
        "there is no variant `{wanted}`; did you mean `{meant}`?"
    ))
}

/// The same for a message that stands alone: without a similar variant, it names all that there are.
pub(crate) fn unknown_variant(error: &str, wanted: &str) -> Option<String> {
    let named = || {
        let available = available_variants(error);
        let ids = available.join("`, `");
        (!available.is_empty())
            .then(|| format!("there is no variant `{wanted}`; choose one of `{ids}`"))
    };
    for_variant(error, wanted).or_else(named)
}

/// The same for the text of a connection that failed, in which the server's error is quoted.
pub(crate) fn refused_variant(failure: &str, wanted: &str) -> Option<String> {
    unknown_variant(quoted_error(failure)?, wanted)
}

/// The same for the variant that was requested with the address.
pub(crate) fn refused_address(failure: &str) -> Option<String> {
    let error = quoted_error(failure)?;
    let members: Value = serde_json::from_str(error).ok()?;
    unknown_variant(error, members["data"]["requestedVariant"].as_str()?)
}

fn quoted_error(failure: &str) -> Option<&str> {
    failure.get(failure.find('{')?..=failure.rfind('}')?)
}

/// The variants that an error names.
fn available_variants(error: &str) -> Vec<String> {
    let error: Value = serde_json::from_str(error).unwrap_or_default();
    let ids = error["data"]["availableVariants"].as_array();
    let ids = ids.into_iter().flatten().filter_map(Value::as_str);
    ids.map(str::to_owned).collect()
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

/// Longer names are not compared, since the cost grows with the length.
const LONGEST: usize = 128;
/// The most names that are compared.
const MOST_COMPARED: usize = 2000;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn means(written: &str, expected: Option<&str>) {
        let known = ["git_git_diff", "git_git_status", "get_weather", "fs_list"];
        assert_eq!(nearest(written, known), expected, "{written}");
    }

    #[test]
    fn a_name_with_few_other_letters_is_understood() {
        means("git_git_dif", Some("git_git_diff"));
        means("getWeather", Some("get_weather"));
        means("get-waether", Some("get_weather"));
        means("fslist", Some("fs_list"));
    }

    #[test]
    fn a_name_that_is_like_no_other_is_not_guessed() {
        means("nothing", None);
        means("", None);
        means(&"git_git_diff".repeat(20), None);
    }

    #[test]
    fn a_variant_is_suggested_of_those_that_the_error_names() {
        let error = r#"{"code":-32602,"message":"Invalid server variant","data":{"availableVariants":["standard","agent"]}}"#;
        assert_eq!(
            for_variant(error, "agnet").unwrap(),
            "there is no variant `agnet`; did you mean `agent`?"
        );
        assert_eq!(for_variant(error, "reviewer"), None);
        assert_eq!(
            for_variant(error, "agent").unwrap(),
            "the server offers the variant `agent`, but refuses it"
        );
        assert_eq!(
            unknown_variant(error, "reviewer").unwrap(),
            "there is no variant `reviewer`; choose one of `standard`, `agent`"
        );
        assert_eq!(unknown_variant(error, "agnet"), for_variant(error, "agnet"));
        assert_eq!(unknown_variant("{}", "agnet"), None);
        let failure = format!("it refused `initialize` with `{error}`");
        assert_eq!(
            refused_variant(&failure, "agnet"),
            for_variant(error, "agnet")
        );
        for other in ["connection refused", "} and {", "it sent `{\"code\":1}`"] {
            assert_eq!(refused_variant(other, "agnet"), None, "{other}");
        }
    }

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
