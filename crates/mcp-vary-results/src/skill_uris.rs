//! The URIs of skills (SEP-2640) as clients see them.
//!
//! Two servers may have skills with one URI. Clients see `skill://SERVER/SCHEME/REST` for `SCHEME://REST`, and
//! `skill://SERVER/SCHEME:/PATH` for `SCHEME:///PATH`: the last segments stay, so that relative references in a skill
//! lead to files of the same skill and server. Nothing else in an entry changes.
//!
//! If no other server has skills, URIs with the scheme `skill` stay as they are. By any other scheme a file would not be
//! known as one of a skill, which is never shaped.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_vary::ignored::for_display;
use mcp_vary::json::{self, edit, elements, elements_up_to};
use mcp_vary_view::{check_uri, normal_uri};
use tracing::warn;

/// A server with skills.
#[derive(Clone, Debug)]
pub struct SkillServer {
    /// Its name.
    pub name: Arc<str>,
    /// Whether no other server has skills.
    pub is_only: bool,
}

impl SkillServer {
    /// The server's URI for `uri` of a client; `None` if that is no skill of the server.
    pub fn upstream_uri(&self, uri: &str) -> Option<String> {
        let is_its_own = self.is_only && is_skill_uri(uri);
        self.named_uri(uri)
            .or_else(|| is_its_own.then(|| uri.to_owned()))
    }

    /// The server's URI for one that names this server; `None` for any other.
    fn named_uri(&self, uri: &str) -> Option<String> {
        let path = uri.strip_prefix(PREFIX)?.strip_prefix(&*self.name)?;
        let (scheme, after) = path.strip_prefix('/')?.split_once('/')?;
        Some(match scheme.strip_suffix(':') {
            Some(of_path) => format!("{of_path}:///{after}"),
            None => format!("{scheme}://{after}"),
        })
    }

    /// The URI that clients see for `uri` of the server.
    ///
    /// `None` for one without `://`, and for one that a client may take for another, such as with a segment `..`.
    fn shown_uri(&self, uri: &str) -> Option<String> {
        let (scheme, after) = uri.split_once("://")?;
        let is_scheme = scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
        // Another spelling of a URI leads nowhere else.
        let is_ambiguous = check_uri(&normal_uri(uri)).is_err();
        if !is_scheme || scheme.is_empty() || is_ambiguous {
            return None;
        }
        let name = &self.name;
        if self.is_only && is_skill_uri(uri) && self.named_uri(uri).is_none() {
            return Some(uri.to_owned());
        }
        Some(match after.strip_prefix('/') {
            Some(path) => format!("{PREFIX}{name}/{scheme}:/{path}"),
            None => format!("{PREFIX}{name}/{scheme}/{after}"),
        })
    }

    /// The skills of a list that `shows` includes, by their URIs on the server. What cannot be shown is left out and logged.
    pub fn shown_skills(&self, skills: &[&str], shows: &dyn Fn(&str) -> bool) -> Vec<String> {
        let show = |skill: &&str| self.reported(self.shown_skill(skill, shows));
        skills.iter().filter_map(show).collect()
    }

    /// The result of a method of skills, or of `resources/read`, as clients see it: with what `shows` includes.
    ///
    /// Contents that cannot be shown stay as they are: the client has named them. A skill that cannot be shown is an error.
    ///
    /// # Errors
    ///
    /// Why the skill cannot be shown.
    pub fn rename_result<'a>(
        &self,
        result: &'a str,
        shows: &dyn Fn(&str) -> bool,
    ) -> Result<Cow<'a, str>, String> {
        let mut renamed = Cow::Borrowed(result);
        if let Some(skill) = edit::get(result, "skill") {
            let shown = self
                .shown_skill(skill, shows)?
                .ok_or("there is no such skill")?;
            renamed = Cow::Owned(edit::set(&renamed, "skill", &shown).into_owned());
        }
        for key in ["skills", "resources", "contents"] {
            let items = edit::get(result, key).and_then(|items| elements(items).ok());
            let Some(items) = items else { continue };
            let show = |item: &&str| match key {
                "skills" => self.reported(self.shown_skill(item, shows)),
                "resources" => self.reported(self.shown_item(item, shows)),
                _ => {
                    let shown = self.shown_item(item, &|_| true).ok().flatten();
                    shown.or_else(|| Some((*item).to_owned()))
                }
            };
            let shown: Vec<_> = items.iter().filter_map(show).collect();
            if shown != items {
                renamed = Cow::Owned(edit::set(&renamed, key, &array(&shown)).into_owned());
            }
        }
        Ok(renamed)
    }

    /// What can be shown. The reason is logged if it cannot.
    fn reported(&self, shown: Result<Option<String>, String>) -> Option<String> {
        shown.unwrap_or_else(|reason| {
            warn!(server = &*self.name, reason, "skill left out");
            None
        })
    }

    /// The entry of a skill as clients see it; `None` if `shows` does not include it.
    ///
    /// # Errors
    ///
    /// Why the entry cannot be shown: it has no URI, one that could lead elsewhere, too many files, or one with an
    /// impossible size.
    fn shown_skill(
        &self,
        skill: &str,
        shows: &dyn Fn(&str) -> bool,
    ) -> Result<Option<String>, String> {
        let Some(shown) = self.shown_item(skill, shows)? else {
            return Ok(None);
        };
        let Some(written) = edit::get(skill, "resources").filter(|it| it.starts_with('[')) else {
            return Ok(Some(shown));
        };
        let uri = edit::get(skill, "uri").and_then(json::unquoted);
        let uri = for_display(&uri.unwrap_or_default());
        let named = |why: String| format!("the skill `{uri}`: {why}");
        let too_many = |_| named(format!("it has more than {MAX_FILES} files"));
        let files = elements_up_to(written, MAX_FILES).map_err(too_many)?;
        let mut shown_files = Vec::new();
        for file in &files {
            if let Some(size) = edit::get(file, "size").filter(|size| !is_size(size)) {
                let why = format!("a file has the impossible size {}", for_display(size));
                return Err(named(why));
            }
            shown_files.extend(self.shown_item(file, shows).map_err(named)?);
        }
        Ok(Some(if shown_files == files {
            shown
        } else {
            edit::set(&shown, "resources", &array(&shown_files)).into_owned()
        }))
    }

    /// A skill, file or directory as clients see it; `None` if `shows` does not include it.
    fn shown_item(
        &self,
        item: &str,
        shows: &dyn Fn(&str) -> bool,
    ) -> Result<Option<String>, String> {
        let uri = edit::get(item, "uri").and_then(json::unquoted);
        let uri = uri.ok_or("it has no `uri`")?;
        let shown = self.shown_uri(&uri).ok_or_else(|| {
            let written = for_display(&uri);
            format!("the URI `{written}` could lead elsewhere")
        })?;
        Ok(shows(&uri).then(|| {
            if *shown == *uri {
                return item.to_owned();
            }
            edit::set(item, "uri", &json::string(&shown)).into_owned()
        }))
    }
}

/// Whether a resource is a file of a skill by the scheme of its URI.
pub fn is_skill_uri(uri: &str) -> bool {
    let start = uri.get(..PREFIX.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}

/// Whether JSON text is a number of bytes.
fn is_size(text: &str) -> bool {
    let size = text.parse::<f64>();
    size.is_ok_and(|size| size >= 0.0 && size.fract() == 0.0)
}

/// The JSON text of an array.
pub fn array(elements: &[String]) -> String {
    format!("[{}]", elements.join(","))
}

const PREFIX: &str = "skill://";

/// The most files of a skill.
const MAX_FILES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn server(is_only: bool) -> SkillServer {
        SkillServer {
            name: "a".into(),
            is_only,
        }
    }

    #[track_caller]
    fn leads_back(server: &SkillServer, uri: &str, shown: &str) {
        assert_eq!(server.shown_uri(uri).as_deref(), Some(shown));
        assert_eq!(server.upstream_uri(shown).as_deref(), Some(uri));
    }

    #[test]
    fn a_uri_names_its_server_and_leads_back() {
        let one_of_several = server(false);
        for (uri, shown) in [
            ("skill://pdf/SKILL.md", "skill://a/skill/pdf/SKILL.md"),
            ("skill://PDF/SKILL.md", "skill://a/skill/PDF/SKILL.md"),
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
            leads_back(&one_of_several, uri, shown);
        }
        for uri in ["pdf", "urn:pdf", "skill://pdf/../other/SKILL.md", "://x"] {
            assert_eq!(one_of_several.shown_uri(uri), None, "{uri}");
        }
        for uri in [
            "skill://a",
            "skill://a/pdf",
            "skill://b/skill/pdf",
            "file:///a/skill/pdf",
        ] {
            assert_eq!(one_of_several.upstream_uri(uri), None, "{uri}");
        }
    }

    #[test]
    fn the_only_server_keeps_its_uris_unless_no_reader_could_know_them() {
        let only = server(true);
        leads_back(&only, "skill://pdf/SKILL.md", "skill://pdf/SKILL.md");
        leads_back(&only, "https://x.dev/a", "skill://a/https/x.dev/a");
        leads_back(&only, "skill://a/https/x", "skill://a/skill/a/https/x");
        assert_eq!(only.upstream_uri("https://x.dev/a"), None);
    }

    fn renamed(server: &SkillServer, result: &str) -> String {
        server
            .rename_result(result, &|_| true)
            .unwrap()
            .into_owned()
    }

    #[test]
    fn nothing_but_uris_changes() {
        let skill = r#"{"uri":"skill://p/SKILL.md", "frontmatter":{"name":"p","x":1.10}, "resources":[ {"uri":"skill://p/SKILL.md","digest":"sha256:0","size":1.0}]}"#;
        let result = format!(r#"{{"skill":{skill},"ttlMs":1}}"#);
        assert_eq!(renamed(&server(true), &result), result);
        let shown = result.replace("skill://p", "skill://a/skill/p");
        let shown = shown.replace("[ {", "[{");
        assert_eq!(renamed(&server(false), &result), shown);
        let listed = format!(r#"{{"skills":[ {skill}]}}"#);
        assert_eq!(renamed(&server(true), &listed), listed);
        let dynamic = r#"{"skill":{"uri":"skill://p/SKILL.md","resources":"dynamic"}}"#;
        assert!(renamed(&server(false), dynamic).ends_with(r#""dynamic"}}"#));
        let contents = r#"{"contents":[{"uri":"skill://p/a.json","text":"{ }"},{"uri":"urn:x"}]}"#;
        let expected =
            r#"{"contents":[{"uri":"skill://a/skill/p/a.json","text":"{ }"},{"uri":"urn:x"}]}"#;
        assert_eq!(renamed(&server(false), contents), expected);
    }

    #[test]
    fn what_is_hidden_is_left_out() {
        let hides_x = |uri: &str| !uri.contains("/x");
        let listed = r#"{"resources":[{"uri":"skill://p/x"},{"uri":"skill://p/y"}]}"#;
        let shown = server(true).rename_result(listed, &hides_x).unwrap();
        assert_eq!(shown, r#"{"resources":[{"uri":"skill://p/y"}]}"#);
        let hidden = r#"{"skill":{"uri":"skill://p/x/SKILL.md"}}"#;
        let refused = server(true).rename_result(hidden, &hides_x).unwrap_err();
        assert_eq!(refused, "there is no such skill");
    }

    /// EXT-8: what cannot be shown is left out alone.
    #[test]
    fn what_a_hostile_skill_has_is_named() {
        let server = server(false);
        let with = |files: &[String]| {
            format!(
                r#"{{"uri":"skill://p/SKILL.md","resources":{}}}"#,
                array(files)
            )
        };
        let refused = |skill: &str| server.shown_skill(skill, &|_| true).unwrap_err();
        let file = r#"{"uri":"skill://p/a","size":7}"#.to_owned();
        let many = vec![file; 10_000];
        let named = "the skill `skill://p/SKILL.md`: ";
        assert_eq!(
            refused(&with(&many)),
            format!("{named}it has more than 4096 files")
        );
        assert!(server.shown_skill(&with(&many[..4096]), &|_| true).is_ok());
        let climbing = r#"{"uri":"skill://p/../../etc/passwd"}"#.to_owned();
        assert_eq!(
            refused(&with(&[climbing])),
            format!("{named}the URI `skill://p/../../etc/passwd` could lead elsewhere")
        );
        for size in ["-1", "1.5", r#""7""#, "null"] {
            let file = format!(r#"{{"uri":"skill://p/a","size":{size}}}"#);
            let why = refused(&with(&[file]));
            assert!(
                why.starts_with(&format!("{named}a file has the impossible size")),
                "{why}"
            );
        }
        assert_eq!(refused("{}"), "it has no `uri`");
    }
}
