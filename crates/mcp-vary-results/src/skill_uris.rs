//! The URIs of the skills of several servers (SEP-2640), which name their server.
//!
//! Two servers may have skills with one URI. Clients see `skill://SERVER/SCHEME/REST` for `SCHEME://REST`, and
//! `skill://SERVER/SCHEME:/PATH` for `SCHEME:///PATH`: the last segments stay, so that relative references in a skill
//! lead to files of the same skill and server. Nothing else in an entry changes.

use std::borrow::Cow;

use mcp_vary::json::{self, edit, elements, elements_up_to};
use mcp_vary_view::check_uri;

/// A URI that names its server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SkillUri<'a> {
    /// The name of the server.
    pub server: &'a str,
    /// The server's URI.
    pub upstream_uri: String,
}

impl<'a> SkillUri<'a> {
    /// Reads a URI as clients see it; `None` for any other.
    pub fn read(uri: &'a str) -> Option<Self> {
        let (server, path) = uri.strip_prefix(PREFIX)?.split_once('/')?;
        let (scheme, after) = path.split_once('/')?;
        let upstream_uri = match scheme.strip_suffix(':') {
            Some(scheme) => format!("{scheme}:///{after}"),
            None => format!("{scheme}://{after}"),
        };
        Some(Self {
            server,
            upstream_uri,
        })
    }
}

/// The URI that clients see for `uri` of `server`.
///
/// `None` for one without `://`, and for one that a client may take for another, such as with a segment `..`.
pub fn shown_uri(server: &str, uri: &str) -> Option<String> {
    let (scheme, after) = uri.split_once("://")?;
    let is_scheme = scheme
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
    if !is_scheme || scheme.is_empty() || check_uri(uri).is_err() {
        return None;
    }
    Some(match after.strip_prefix('/') {
        Some(path) => format!("{PREFIX}{server}/{scheme}:/{path}"),
        None => format!("{PREFIX}{server}/{scheme}/{after}"),
    })
}

/// Whether a resource is a file of a skill by the scheme of its URI, which is never shaped: its digest would be wrong.
pub fn is_skill_uri(uri: &str) -> bool {
    let start = uri.get(..PREFIX.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}

/// The entry of a skill as clients see it.
///
/// # Errors
///
/// Why the entry cannot be shown: it has no URI, one that could lead elsewhere, or too many files.
pub fn shown_skill(server: &str, skill: &str) -> Result<String, String> {
    let shown = shown_item(server, skill)?;
    let Some(files) = edit::get(skill, "resources").filter(|files| files.starts_with('[')) else {
        return Ok(shown);
    };
    let too_many = |_| format!("it has more than {MAX_FILES} files");
    let files = elements_up_to(files, MAX_FILES).map_err(too_many)?;
    let files = files.iter().map(|file| shown_item(server, file));
    let files: Vec<String> = files.collect::<Result<_, _>>()?;
    Ok(edit::set(&shown, "resources", &array(&files)).into_owned())
}

/// A file or a directory as clients see it.
fn shown_item(server: &str, item: &str) -> Result<String, String> {
    let uri = edit::get(item, "uri").and_then(json::unquoted);
    let uri = uri.ok_or("it has no `uri`")?;
    let shown = shown_uri(server, &uri);
    let shown = shown.ok_or_else(|| format!("the URI `{uri}` cannot name its server"))?;
    Ok(edit::set(item, "uri", &json::string(&shown)).into_owned())
}

/// The result of `skills/get`, `resources/directory/read` or `resources/read` as clients see it. What cannot be shown
/// stays as it is.
pub fn rename_result<'a>(server: &str, result: &'a str) -> Cow<'a, str> {
    let mut renamed = Cow::Borrowed(result);
    if let Some(skill) = edit::get(result, "skill")
        && let Ok(shown) = shown_skill(server, skill)
    {
        renamed = Cow::Owned(edit::set(&renamed, "skill", &shown).into_owned());
    }
    for key in ["resources", "contents"] {
        let items = edit::get(result, key).and_then(|items| elements(items).ok());
        let Some(items) = items else { continue };
        let shown = items
            .iter()
            .map(|item| shown_item(server, item).unwrap_or_else(|_| (*item).to_owned()));
        let shown: Vec<String> = shown.collect();
        renamed = Cow::Owned(edit::set(&renamed, key, &array(&shown)).into_owned());
    }
    renamed
}

/// The JSON text of an array.
pub fn array(elements: &[String]) -> String {
    format!("[{}]", elements.join(","))
}

const PREFIX: &str = "skill://";

/// The most files of a skill that a merged list shows.
const MAX_FILES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_names_its_server_and_leads_back() {
        for (uri, shown) in [
            ("skill://pdf/SKILL.md", "skill://a/skill/pdf/SKILL.md"),
            (
                "skill://acme/pdf/SKILL.md",
                "skill://a/skill/acme/pdf/SKILL.md",
            ),
            ("skill:///pdf/SKILL.md", "skill://a/skill:/pdf/SKILL.md"),
            (
                "https://x.dev/pdf/SKILL.md",
                "skill://a/https/x.dev/pdf/SKILL.md",
            ),
            ("skill://b/skill/pdf/x", "skill://a/skill/b/skill/pdf/x"),
        ] {
            assert_eq!(shown_uri("a", uri).as_deref(), Some(shown));
            let read = SkillUri::read(shown).unwrap();
            assert_eq!((read.server, &*read.upstream_uri), ("a", uri));
        }
        for uri in ["pdf", "urn:pdf", "skill://pdf/../other/SKILL.md", "://x"] {
            assert_eq!(shown_uri("a", uri), None, "{uri}");
        }
        for uri in ["skill://a", "skill://a/pdf", "file:///a/skill/pdf"] {
            assert_eq!(SkillUri::read(uri), None, "{uri}");
        }
    }

    #[test]
    fn nothing_but_uris_changes() {
        let skill = r#"{"uri":"skill://p/SKILL.md", "frontmatter":{"name":"p","x":1.10}, "resources":[{"uri":"skill://p/SKILL.md","digest":"sha256:0","size":1.0}]}"#;
        let shown = skill.replace("skill://p", "skill://a/skill/p");
        assert_eq!(shown_skill("a", skill).unwrap(), shown);
        let result = format!(r#"{{"skill":{skill},"ttlMs":1}}"#);
        let expected = format!(r#"{{"skill":{shown},"ttlMs":1}}"#);
        assert_eq!(rename_result("a", &result), expected);
        let dynamic = r#"{"uri":"skill://p/SKILL.md","resources":"dynamic"}"#;
        assert!(
            shown_skill("a", dynamic)
                .unwrap()
                .ends_with(r#""dynamic"}"#)
        );
        let contents = r#"{"contents":[{"uri":"skill://p/a.json","text":"{ }"},{"uri":"urn:x"}]}"#;
        let expected =
            r#"{"contents":[{"uri":"skill://a/skill/p/a.json","text":"{ }"},{"uri":"urn:x"}]}"#;
        assert_eq!(rename_result("a", contents), expected);
    }

    /// EXT-8: what cannot be shown is left out alone.
    #[test]
    fn what_a_hostile_skill_has_is_named() {
        let file = r#"{"uri":"skill://p/a"}"#.to_owned();
        let with = |files: &[String]| {
            format!(
                r#"{{"uri":"skill://p/SKILL.md","resources":{}}}"#,
                array(files)
            )
        };
        let many = vec![file; MAX_FILES + 1];
        let refused = |skill: &str| shown_skill("a", skill).unwrap_err();
        assert_eq!(refused(&with(&many)), "it has more than 4096 files");
        assert!(shown_skill("a", &with(&many[1..])).is_ok());
        let climbing = r#"{"uri":"skill://p/../../etc/passwd"}"#.to_owned();
        assert_eq!(
            refused(&with(&[climbing])),
            "the URI `skill://p/../../etc/passwd` cannot name its server"
        );
        assert_eq!(refused("{}"), "it has no `uri`");
    }
}
