//! All checks, as lists: those of servers, and those of clients.

use std::fmt::Write as _;

use crate::check::Check;
use crate::checks;
use crate::client_checks;

/// All checks of servers, in the order in which they run.
///
/// ```
/// let ids: Vec<&str> = mcp_vary_conformance::registry::checks().map(|check| check.id()).collect();
/// assert!(ids.contains(&"SV-1/unique-ids"));
/// ```
pub fn checks() -> impl Iterator<Item = &'static Check> {
    let groups = [
        checks::framework::CHECKS,
        checks::features::CHECKS,
        checks::formats::CHECKS,
        checks::offers::CHECKS,
        checks::hints::CHECKS,
        checks::selection::CHECKS,
        checks::unknown_variants::CHECKS,
        checks::identifiers::CHECKS,
        checks::cursors::CHECKS,
        checks::results::CHECKS,
        checks::principals::CHECKS,
        checks::rate_limits::CHECKS,
    ];
    groups.into_iter().flatten()
}

/// All checks of clients, in the order in which they are reported.
///
/// ```
/// use mcp_vary_conformance::registry;
///
/// let ids: Vec<&str> = registry::client_checks().map(|check| check.id()).collect();
/// assert!(ids.contains(&"SV-13/client-keeps-cursors-with-their-variant"));
/// ```
pub fn client_checks() -> impl Iterator<Item = &'static Check> {
    let groups = [
        client_checks::declarations::CHECKS,
        client_checks::selection::CHECKS,
        client_checks::reactions::CHECKS,
    ];
    groups.into_iter().flatten()
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
#[must_use]
pub fn to_markdown(checks: impl Iterator<Item = &'static Check>) -> String {
    let mut table =
        "| check | level | the document | what the check does |\n|---|---|---|---|\n".to_owned();
    for check in checks {
        let eras = match check.eras() {
            [era] => format!(" (only {era})"),
            _ => String::new(),
        };
        let cells = [
            format!("`{}`{eras}", check.id()),
            check.level().to_string().replace('*', "\\*"),
            format!("{} *{}*", check.sentence(), check.source()),
            check.does().to_owned(),
        ];
        let cells = cells.map(|cell| cell.replace('|', "\\|"));
        _ = writeln!(table, "| {} |", cells.join(" | "));
    }
    table
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn identifiers_are_unique() {
        let ids: BTreeSet<_> = checks().chain(client_checks()).map(Check::id).collect();
        assert_eq!(ids.len(), checks().count() + client_checks().count());
    }

    #[test]
    fn an_identifier_is_a_requirement_and_a_name() {
        for check in checks().chain(client_checks()) {
            let (requirement, name) = check.id().split_once('/').unwrap();
            let (area, number) = requirement.split_once('-').unwrap();
            assert!(["EXT", "CN", "SV", "TR"].contains(&area), "{}", check.id());
            assert!(number.parse::<u8>().is_ok(), "{}", check.id());
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
                .all(|check| check.id().starts_with("SV-1/"))
        );
    }
}
