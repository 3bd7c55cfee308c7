//! Distinct keys that other readers may treat as equal.
//!
//! A gateway that checks the member `name` and forwards `Name` beside it lets a server that ignores case act on the
//! other one. CVE-2026-27896 (`encoding/json` in Go) is of this kind; .NET's Web defaults and Java's
//! `equalsIgnoreCase` read the same way, and readers with C strings end a key at its first NUL.

/// Whether another reader may take `key` for the different key `known`.
///
/// # Properties
///
/// Equal keys are not look-alikes. Otherwise they are if both [fold](folded) to the same text.
///
/// # Examples
///
/// ```
/// use mcp_vary_json::is_lookalike;
///
/// assert!(is_lookalike("Name", "name") && is_lookalike("name\0", "name"));
/// assert!(is_lookalike("argument\u{17f}", "arguments"));
///
/// assert!(!is_lookalike("name", "name") && !is_lookalike("names", "name"));
/// ```
pub fn is_lookalike(key: &str, known: &str) -> bool {
    key != known && folded(key).eq(folded(known))
}

/// The characters of `key` as compared by a reader that ignores case and ends a text at its first NUL.
///
/// Two keys fold to the same if they are equal in upper case, which takes U+017F for `S` and U+FB06 for `ST`, or in lower
/// case, which takes U+212A for `k`. U+0130 and U+0131 are an `i`, as in Java's `equalsIgnoreCase`.
pub fn folded(key: &str) -> impl Iterator<Item = char> + '_ {
    key.chars().take_while(|c| *c != '\0').flat_map(fold)
}

fn fold(c: char) -> impl Iterator<Item = char> {
    let one = match c {
        _ if c.is_ascii() => Some(c.to_ascii_lowercase()),
        '\u{130}' | '\u{131}' => Some('i'),
        _ => None,
    };
    // Lower case first, for the capital sharp s, which is its own upper case.
    let mapped = one.is_none().then(|| {
        let upper = c.to_lowercase().flat_map(char::to_uppercase);
        upper.flat_map(char::to_lowercase)
    });
    one.into_iter().chain(mapped.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn imitates(key: &str, known: &str, expected: bool) {
        assert_eq!(is_lookalike(key, known), expected, "{key:?} of {known:?}");
    }

    #[test]
    fn a_lookalike_differs_in_case_or_behind_a_nul() {
        for key in ["Name", "NAME", "nAme", "name\0", "NAME\0\0", "name\0x"] {
            imitates(key, "name", true);
        }
        imitates("ta\u{17f}\u{212a}ID", "taskId", true);
        imitates("ur\u{131}", "uri", true);
        imitates("ur\u{130}", "uri", true);
        imitates("_META", "_meta", true);
        imitates("GRÖẞE", "größe", true);
        imitates("ΣΟΦΟΣ", "σοφος", true);
        imitates("reque\u{fb06}State", "requestState", true);
    }

    #[test]
    fn other_keys_are_no_lookalikes() {
        for key in ["name", "nam", "names", "name ", "n\u{430}me", "", "\0name"] {
            imitates(key, "name", false);
        }
        imitates("task_id", "taskId", false);
        imitates("meta", "_meta", false);
    }
}
