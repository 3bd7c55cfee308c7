//! Writes what is made from the checks: the lists in `docs/internals/checks.md`, and the files in `spec/traceability`.

use std::{fs, io, path::Path};

use mcp_vary_conformance::{registry, traceability};

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = root.join("docs/internals/checks.md");
    let mut text = fs::read_to_string(&page)?;
    for (of, list) in [
        ("servers", registry::to_markdown(registry::checks())),
        ("clients", registry::to_markdown(registry::client_checks())),
    ] {
        let (begin, end) = (
            format!("<!-- checks of {of} -->"),
            format!("<!-- end of checks of {of} -->"),
        );
        let (before, remaining) = text.split_once(&begin).ok_or(io::ErrorKind::InvalidData)?;
        let (_, after) = remaining
            .split_once(&end)
            .ok_or(io::ErrorKind::InvalidData)?;
        text = format!("{before}{begin}\n\n{list}\n{end}{after}");
    }
    fs::write(page, text)?;
    for (file, source) in traceability::FILES {
        let path = root.join("spec/traceability").join(file);
        let yaml = traceability::updated(&fs::read_to_string(&path)?, source);
        fs::write(path, yaml.ok_or(io::ErrorKind::InvalidData)?)?;
    }
    Ok(())
}
