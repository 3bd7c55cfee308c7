//! The files of the page. They are the same for every gateway, so they need no token.

use std::sync::LazyLock;

use bytes::Bytes;
use miniz_oxide::inflate::decompress_to_vec;

/// A file of the page.
#[derive(Debug)]
pub(crate) struct Asset {
    pub(crate) media_type: &'static str,
    pub(crate) text: Bytes,
}

/// The file at a path.
pub(crate) fn find(path: &str) -> Option<Asset> {
    let index = ENDS.iter().position(|(of, _)| *of == path)?;
    let start = index.checked_sub(1).map_or(0, |before| ENDS[before].1);
    let media_type = match path.rsplit_once('.') {
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        _ => "text/html; charset=utf-8",
    };
    Some(Asset {
        media_type,
        text: ALL.slice(start..ENDS[index].1),
    })
}

/// The path of each file, and where it ends in [`ALL`].
const ENDS: &[(&str, usize)] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The files, one after another, read when a browser asks for the first.
static ALL: LazyLock<Bytes> = LazyLock::new(|| {
    let compressed = include_bytes!(concat!(env!("OUT_DIR"), "/assets.deflate"));
    let all = decompress_to_vec(compressed);
    all.expect("the file is a constant").into()
});

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The file at a path, as text.
    fn text(path: &str) -> String {
        let asset = find(path).unwrap_or_else(|| panic!("nothing is at {path}"));
        String::from_utf8(asset.text.to_vec()).unwrap()
    }

    /// The paths that a browser may ask for, and the source of each.
    fn sources(folder: &str) -> Vec<(String, String)> {
        let assets = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");
        let entries = fs::read_dir(format!("{assets}{folder}")).unwrap();
        let found = entries.map(Result::unwrap).flat_map(|file| {
            let path = format!("{folder}/{}", file.file_name().into_string().unwrap());
            if file.file_type().unwrap().is_dir() {
                return sources(&path);
            }
            let source = fs::read(file.path()).unwrap();
            vec![(path, String::from_utf8(source).unwrap())]
        });
        let is_served = |(path, _): &(String, _)| {
            [".html", ".js", ".css"]
                .iter()
                .any(|end| path.ends_with(end))
        };
        found.filter(is_served).collect()
    }

    #[test]
    fn each_file_is_served_without_its_comments_but_those_of_other_authors() {
        let sources = sources("");
        for (path, source) in &sources {
            let served = match &**path {
                "/index.html" => text("/"),
                path => text(&format!("/page{path}")),
            };
            let is_code = |line: &&str| {
                let line = line.trim();
                let is_block = line.starts_with("/*") && line.ends_with("*/");
                !(is_block || line.starts_with("//"))
            };
            let code: Vec<_> = source.lines().filter(is_code).collect();
            if path.starts_with("/vendor/") {
                assert_eq!(served, *source, "{path}");
            } else {
                assert_eq!(served.lines().collect::<Vec<_>>(), code, "{path}");
            }
        }
        assert_eq!(ENDS.len(), sources.len());
        assert!(text("/page/app.js").starts_with("\nimport { codeIn"));
    }

    #[test]
    fn a_file_has_the_type_of_its_name() {
        for (path, media_type) in [
            ("/", "text/html; charset=utf-8"),
            ("/page/vendor/htm.js", "text/javascript; charset=utf-8"),
            ("/page/style.css", "text/css; charset=utf-8"),
        ] {
            assert_eq!(find(path).unwrap().media_type, media_type);
        }
        assert!(find("/page/vendor/htm.LICENSE").is_none());
    }

    #[test]
    fn what_the_page_loads_is_served() {
        let page = text("/");
        for attribute in ["src=\"", "href=\""] {
            for after in page.split(attribute).skip(1) {
                let path = after.split('"').next().unwrap();
                let is_served =
                    path.starts_with('#') || path.starts_with("data:") || find(path).is_some();
                assert!(is_served, "{path}");
            }
        }
    }
}
