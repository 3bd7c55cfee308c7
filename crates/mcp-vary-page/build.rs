//! Compresses the files of the page into one: as they are they would be a hundredth of the program.
//!
//! Writes `assets.deflate`, the files one after another, and `assets.rs`, the path of each and where it ends.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs, io};

use miniz_oxide::deflate::compress_to_vec;

/// The folders whose files a browser may ask for, and how the paths of these begin.
const FOLDERS: [(&str, &str); 2] = [("assets", "/page/"), ("assets/vendor", "/page/vendor/")];

/// The greatest level of the compression.
const SMALLEST: u8 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=assets");
    let mut all = Vec::new();
    let mut index = String::new();
    for (folder, start) in FOLDERS {
        for name in names(folder)? {
            let text = fs::read_to_string(format!("{folder}/{name}"))?;
            // The comments of other authors have their licences.
            let is_comment = |line: &&str| folder == "assets" && is_comment(line.trim());
            let lines = text.split_inclusive('\n');
            all.extend(lines.filter(|line| !is_comment(line)).flat_map(str::bytes));
            let path = match &*name {
                "index.html" => "/".to_owned(),
                name => format!("{start}{name}"),
            };
            index += &format!("({path:?}, {}),\n", all.len());
        }
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("there is no OUT_DIR")?);
    let compressed = compress_to_vec(&all, SMALLEST);
    fs::write(out.join("assets.deflate"), compressed)?;
    fs::write(out.join("assets.rs"), format!("&[{index}]"))?;
    Ok(())
}

/// The names of the files that a browser may ask for, sorted: a build gives the same bytes everywhere.
fn names(folder: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for file in fs::read_dir(folder)? {
        let name = file?.file_name().to_string_lossy().into_owned();
        if [".html", ".js", ".css"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn is_comment(line: &str) -> bool {
    line.starts_with("//") || (line.starts_with("/*") && line.ends_with("*/"))
}
