//! Forms: the bodies of token requests, and the queries of authorization requests and their answers.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What RFC 3986, section 2.3 calls unreserved is not escaped.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// `text` as a name or value of a form.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// The parameters as a form (`application/x-www-form-urlencoded`).
pub(crate) fn form<'a>(parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let given = parameters.into_iter();
    let pairs = given.map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// The value of the parameter `name`; `None` if it is missing, occurs twice, or is not UTF-8.
pub(crate) fn parameter(form: &str, name: &str) -> Option<String> {
    let pairs = form.split('&').filter_map(|pair| pair.split_once('='));
    let mut values = pairs
        .filter(|(key, _)| *key == name)
        .map(|(_, value)| value);
    let value = values.next()?.replace('+', " ");
    if values.next().is_some() {
        return None;
    }
    let decoded = percent_decode_str(&value).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_survives_a_form() {
        let value = "a b&c=d+e%2F/é:~";
        let form = form([("x", "1"), ("value", value)]);
        assert_eq!(form, "x=1&value=a%20b%26c%3Dd%2Be%252F%2F%C3%A9%3A~");
        assert_eq!(parameter(&form, "value").as_deref(), Some(value));
    }

    #[test]
    fn a_parameter_that_is_missing_repeated_or_malformed_has_no_value() {
        assert_eq!(parameter("a=1&b=x+y", "b").as_deref(), Some("x y"));
        for form in ["", "code", "a=1", "code=1&code=2", "code=%FF"] {
            assert_eq!(parameter(form, "code"), None, "{form}");
        }
    }
}
