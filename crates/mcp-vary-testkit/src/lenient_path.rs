//! The interpretation of a path by a lenient file server.

/// The path that a lenient file server reads: without query, fragment and parameters, decoded, without dot segments and
/// empty ones.
pub fn lenient_path(path: &str) -> String {
    let path = path.split(['?', '#', ';']).next().unwrap_or_default();
    let path = decoded(path).replace('\\', "/");
    let mut segments = Vec::new();
    for segment in path.split('\0').next().unwrap_or_default().split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            name => segments.push(name),
        }
    }
    segments.join("/")
}

/// `text` with every triplet decoded once.
pub fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut remaining = text.as_bytes();
    while let Some((first, after)) = remaining.split_first() {
        let hex = after.get(..2).filter(|_| *first == b'%');
        let hex = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(hex.unwrap_or(*first));
        remaining = if hex.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
