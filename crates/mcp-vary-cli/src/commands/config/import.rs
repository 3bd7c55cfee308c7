//! `vary config import`: other programs' servers as one configuration.

use mcp_vary_config::{ImportSource, VaryEntries, import};

use super::args::Import;
use crate::failure::{Failure, Verdict};
use crate::file;
use crate::print::{self, sanitize_line};

/// Reads the files, prints the configuration on standard output, and reports notes on standard error.
pub(crate) fn run(args: &Import) -> Result<Verdict, Failure> {
    let mut read = Vec::new();
    for path in &args.files {
        let name = path.display().to_string();
        let text = file::text(path)?;
        let vary_names = file::names_written_by_connect(&name);
        read.push((name, text, vary_names));
    }
    let sources = read.iter().map(|(name, text, vary_names)| {
        let file = ImportSource::new(name, text).with_vary_entries(VaryEntries {
            names: vary_names,
            port: None,
        });
        args.format.map_or(file, |format| file.with_format(format))
    });
    let files: Vec<_> = sources.collect();
    let imported = import(&files).map_err(|mistakes| Failure::command(mistakes.to_string()))?;
    print::data(&imported.yaml)?;
    for note in &imported.notes {
        print::notice(&sanitize_line(&format!("note: {note}")));
    }
    for name in &imported.left_out {
        print::notice(&sanitize_line(&format!("`{name}` is left out")));
    }
    Ok(Verdict::fine_if(imported.left_out.is_empty()))
}
