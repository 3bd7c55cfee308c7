//! Writes what is made from the checks: the lists in `docs/reference/check.md` and `check-clients.md`, and the files in `spec/traceability`.

use std::{fs, io, path::Path};

use mcp_vary_conformance::{registry, traceability};

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let lists = [
        ("check.md", registry::to_markdown(registry::checks())),
        (
            "check-clients.md",
            registry::to_markdown(registry::client_checks()),
        ),
    ];
    for (page, list) in lists {
        let page = root.join("docs/reference").join(page);
        let text = fs::read_to_string(&page)?;
        let (before, rest) = text.split_once(BEGIN).ok_or(io::ErrorKind::InvalidData)?;
        let (_, after) = rest.split_once(END).ok_or(io::ErrorKind::InvalidData)?;
        fs::write(page, format!("{before}{BEGIN}\n\n{list}\n{END}{after}"))?;
    }
    let directory = root.join("spec/traceability");
    fs::create_dir_all(&directory)?;
    for document in traceability::documents() {
        fs::write(directory.join(document.file()), document.to_yaml())?;
    }
    Ok(())
}

const BEGIN: &str = "<!-- checks -->";
const END: &str = "<!-- end of checks -->";
