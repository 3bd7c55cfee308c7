//! What to write instead of a variant that a server refuses.

use serde_json::Value;

use crate::similar::nearest;

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

/// The same for the variant that was requested with the address.
pub(crate) fn refused_address(error: &str) -> Option<String> {
    let members: Value = serde_json::from_str(error).ok()?;
    unknown_variant(error, members["data"]["requestedVariant"].as_str()?)
}

/// The variants that an error names.
fn available_variants(error: &str) -> Vec<String> {
    let error: Value = serde_json::from_str(error).unwrap_or_default();
    let listed = error["data"]["availableVariants"].as_array();
    let ids = listed.into_iter().flatten().filter_map(Value::as_str);
    ids.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let of_address = error.replace("{\"avail", "{\"requestedVariant\":\"agnet\",\"avail");
        assert_eq!(refused_address(&of_address), for_variant(error, "agnet"));
        assert_eq!(refused_address("{}"), None);
    }
}
