//! How servers read paths.

/// Where a server reads a `file:` URI that decodes it and resolves its path.
pub(super) fn resolved(uri: &str) -> String {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, path)| path);
    let mut bytes = Vec::new();
    let mut remaining = path.as_bytes();
    while let Some((byte, after)) = remaining.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let decoded = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match decoded.filter(|_| *byte == b'%') {
            Some(decoded) => {
                bytes.push(decoded);
                remaining = &after[2..];
            }
            None => {
                bytes.push(*byte);
                remaining = after;
            }
        }
    }
    let path = String::from_utf8_lossy(&bytes).replace('\\', "/");
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}/", segments.join("/"))
}
