//! The query of an address.

use percent_encoding::percent_decode_str;

/// The value of a parameter; empty without one.
pub(crate) fn parameter(query: &str, name: &str) -> String {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(key, _)| *key == name);
    let value = values
        .next()
        .map_or("", |(_, value)| value)
        .replace('+', " ");
    percent_decode_str(&value).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_decoded() {
        for (query, expected) in [
            ("server=git&name=git_log", "git_log"),
            ("name=a%26b+c%2B", "a&b c+"),
            ("name=%ff", "\u{fffd}"),
            ("name", ""),
            ("", ""),
        ] {
            assert_eq!(parameter(query, "name"), expected, "{query}");
        }
    }
}
