//! All checks, as lists: those of servers, and those of clients.

use std::fmt::Write as _;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::check::{Check, Level, Test};
use crate::checks;
use crate::client_checks;
use crate::era::{BOTH, Era, LEGACY, MODERN};
use crate::scope::Scope;

/// The checks of some topics: their texts, which JSON files have, with their tests.
macro_rules! all_of {
    ($folder:ident: $($topic:ident)+) => {{
        let mut all = Vec::new();
        $(all.extend(read($folder::$topic::TEXTS, $folder::$topic::TESTS));)+
        all
    }};
}

/// All checks of servers, in the order in which they run.
///
/// ```
/// let ids: Vec<&str> = mcp_vary_conformance::registry::checks().map(|check| check.id).collect();
/// assert!(ids.contains(&"SV-1/unique-ids"));
/// ```
pub fn checks() -> impl Iterator<Item = &'static Check> {
    static CHECKS: LazyLock<Vec<Check>> = LazyLock::new(|| {
        all_of! {
            checks: framework features formats offers hints selection unknown_variants identifiers
            cursors results principals rate_limits
        }
    });
    CHECKS.iter()
}

/// All checks of clients, in the order in which they are reported.
///
/// ```
/// use mcp_vary_conformance::registry;
///
/// let ids: Vec<&str> = registry::client_checks().map(|check| check.id).collect();
/// assert!(ids.contains(&"SV-13/client-keeps-cursors-with-their-variant"));
/// ```
pub fn client_checks() -> impl Iterator<Item = &'static Check> {
    static CHECKS: LazyLock<Vec<Check>> =
        LazyLock::new(|| all_of! { client_checks: declarations selection reactions });
    CHECKS.iter()
}

/// What a file has about a check.
#[derive(Deserialize)]
struct Texts {
    id: &'static str,
    level: Level,
    source: &'static str,
    sentence: String,
    does: String,
    #[serde(default)]
    scope: Scope,
    /// The era in which alone the check makes sense, if there is one.
    only: Option<Era>,
}

/// The checks with these texts, each with the test that stands at the same place.
fn read(texts: &'static str, tests: &[(&str, Test)]) -> Vec<Check> {
    let texts: Vec<Texts> = serde_json::from_str(texts).expect("the file has checks");
    assert_eq!(texts.len(), tests.len(), "as many texts as tests");
    let checks = texts.into_iter().zip(tests).map(|(texts, (id, test))| {
        assert_eq!(texts.id, *id, "the test of these texts");
        Check {
            id: texts.id,
            level: texts.level,
            source: texts.source,
            sentence: texts.sentence.leak(),
            does: texts.does.leak(),
            scope: texts.scope,
            eras: match texts.only {
                None => BOTH,
                Some(Era::Legacy) => LEGACY,
                Some(Era::Modern) => MODERN,
            },
            test: *test,
        }
    });
    checks.collect()
}

/// The checks of a run of one kind.
pub(crate) fn of(is_for_clients: bool) -> Box<dyn Iterator<Item = &'static Check>> {
    if is_for_clients {
        Box::new(client_checks())
    } else {
        Box::new(checks())
    }
}

/// Checks as a table in markdown, with their sentences.
pub fn to_markdown(checks: impl Iterator<Item = &'static Check>) -> String {
    let mut table =
        "| check | level | the document | what the check does |\n|---|---|---|---|\n".to_owned();
    for check in checks {
        let eras = match check.eras {
            [era] => format!(" (only {era})"),
            _ => String::new(),
        };
        let cells = [
            format!("`{}`{eras}", check.id),
            check.level.to_string().replace('*', "\\*"),
            format!("{} *{}*", check.sentence, check.source),
            check.does.to_owned(),
        ];
        let escaped = cells.map(|cell| cell.replace('|', "\\|"));
        _ = writeln!(table, "| {} |", escaped.join(" | "));
    }
    table
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn identifiers_are_unique() {
        let ids: BTreeSet<_> = checks()
            .chain(client_checks())
            .map(|check| check.id)
            .collect();
        assert_eq!(ids.len(), checks().count() + client_checks().count());
    }

    #[test]
    fn an_identifier_is_a_requirement_and_a_name() {
        for check in checks().chain(client_checks()) {
            let (requirement, name) = check.id.split_once('/').unwrap();
            let (area, number) = requirement.split_once('-').unwrap();
            assert!(["EXT", "CN", "SV", "TR"].contains(&area), "{}", check.id);
            assert!(number.parse::<u8>().is_ok(), "{}", check.id);
            assert!(
                name.chars()
                    .all(|letter| letter.is_ascii_lowercase() || "-.".contains(letter)),
                "{name}"
            );
        }
    }

    #[test]
    fn a_requirement_selects_its_checks_and_no_others() {
        let selected = |selector| checks().filter(|check| check.matches(selector)).count();
        assert_eq!(selected("SV-1/unique-ids"), 1);
        assert!(selected("SV-1") > 1);
        assert_eq!(selected("SV"), 0);
        assert!(
            checks()
                .filter(|check| check.matches("SV-1"))
                .all(|check| check.id.starts_with("SV-1/"))
        );
    }
}
