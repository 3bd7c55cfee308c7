//! What a terminal can show, by the conventions of <https://no-color.org> and `TERM`.

use std::ffi::OsString;
use std::io::IsTerminal;

/// Whether `stream` shows colours: it is a terminal, `NO_COLOR` is not set, and `TERM` is not `dumb`.
pub(crate) fn has_color(stream: &impl IsTerminal) -> bool {
    shows_color(stream.is_terminal(), variable)
}

/// Whether lines on `stream` can be replaced: it is a terminal, `TERM` is not `dumb`, and the lines are not JSON.
pub(crate) fn has_cursor(stream: &impl IsTerminal) -> bool {
    !super::is_json() && moves_cursor(stream.is_terminal(), variable)
}

fn shows_color(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    // An empty value counts as not set.
    let is_unwanted = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    moves_cursor(is_terminal, variable) && !is_unwanted
}

fn moves_cursor(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    is_terminal && variable("TERM").is_none_or(|term| term != "dumb")
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn shows(is_terminal: bool, set: &[(&str, &str)], color: bool, cursor: bool) {
        let variable = |name: &str| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let shown = (
            shows_color(is_terminal, variable),
            moves_cursor(is_terminal, variable),
        );
        assert_eq!(shown, (color, cursor), "{set:?}");
    }

    #[test]
    fn colors_are_for_terminals_that_want_them() {
        shows(true, &[("TERM", "xterm")], true, true);
        shows(true, &[], true, true);
        shows(true, &[("NO_COLOR", "1")], false, true);
        shows(true, &[("NO_COLOR", "")], true, true);
        shows(true, &[("TERM", "dumb")], false, false);
        shows(false, &[("TERM", "xterm")], false, false);
    }
}
