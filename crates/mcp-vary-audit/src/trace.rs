//! The trace that a request belongs to.

/// The trace id in a value of `traceparent`; `None` if the value is malformed or the id is zero.
///
/// Source: W3C Trace Context, section 3.2.2 (`version-traceid-parentid-flags`). Later versions may have further parts.
///
/// # Examples
///
/// ```
/// use mcp_vary_audit::trace_id;
///
/// let id = trace_id("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01");
/// assert_eq!(id.map(|id| id[0]), Some(0x0a));
/// // Zero is the value of programs without a trace.
/// assert_eq!(trace_id("00-00000000000000000000000000000000-00f067aa0ba902b7-01"), None);
/// ```
pub fn trace_id(traceparent: &str) -> Option<[u8; 16]> {
    let mut parts = traceparent.split('-');
    let version = parts.next()?;
    let id = parts.next()?;
    let is_hex = |text: &str| {
        text.bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_readable = version.len() == 2 && version != "ff" && is_hex(version);
    if !is_readable || id.len() != 32 || !is_hex(id) {
        return None;
    }
    let id = u128::from_str_radix(id, 16).ok().filter(|id| *id != 0)?;
    Some(id.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_id_is_the_second_part_of_traceparent() {
        let id = "0af7651916cd43dd8448eb211c80319c";
        let expected = u128::from_str_radix(id, 16).ok().map(u128::to_be_bytes);
        for good in [
            format!("00-{id}-00f067aa0ba902b7-01"),
            format!("01-{id}-00f067aa0ba902b7-01-more"),
        ] {
            assert_eq!(trace_id(&good), expected, "{good}");
        }
        for bad in [
            String::new(),
            id.to_owned(),
            format!("ff-{id}-00f067aa0ba902b7-01"),
            format!("00-{}-00f067aa0ba902b7-01", id.to_uppercase()),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-+{}-00f067aa0ba902b7-01", &id[1..]),
            format!("00-{id}0-00f067aa0ba902b7-01"),
        ] {
            assert_eq!(trace_id(&bad), None, "{bad}");
        }
    }
}
