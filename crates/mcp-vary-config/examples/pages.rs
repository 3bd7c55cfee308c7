//! Writes what is made from the keys of a configuration: `docs/vary.schema.json`, and the tables in
//! `docs/reference/configuration`.

use std::path::Path;
use std::{fs, io};

use mcp_vary_config::{reference, schema};

fn main() -> io::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    fs::write(docs.join("vary.schema.json"), schema())?;
    for entry in fs::read_dir(docs.join("reference/configuration"))? {
        let page = entry?.path();
        fs::write(&page, reference(&fs::read_to_string(&page)?))?;
    }
    Ok(())
}
