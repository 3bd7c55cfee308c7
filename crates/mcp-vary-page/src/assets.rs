//! The files of the page. They are the same for every gateway, so they need no token.

/// A file of the page.
#[derive(Debug)]
pub(crate) struct Asset {
    path: &'static str,
    pub(crate) media_type: &'static str,
    text: &'static [u8],
}

impl Asset {
    /// What a browser gets: all but the lines that are only a comment, a seventh of the compressed bytes. Those of other authors
    /// have their licences.
    pub(crate) fn served(&self) -> Vec<u8> {
        let is_own = !self.path.starts_with("/page/vendor/");
        let lines = self.text.split_inclusive(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !is_own || !is_comment(line.trim_ascii()));
        lines.flatten().copied().collect()
    }
}

fn is_comment(line: &[u8]) -> bool {
    line.starts_with(b"//") || (line.starts_with(b"/*") && line.ends_with(b"*/"))
}

/// The file at a path.
pub(crate) fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

macro_rules! assets {
    ($($path:literal $file:literal $media_type:expr;)*) => {
        &[$(Asset {
            path: $path,
            media_type: $media_type,
            text: include_bytes!(concat!("../assets/", $file)),
        }),*]
    };
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

const ASSETS: &[Asset] = assets! {
    "/" "index.html" HTML;
    "/page/api.js" "api.js" SCRIPT;
    "/page/app.js" "app.js" SCRIPT;
    "/page/call-list.js" "call-list.js" SCRIPT;
    "/page/calls.js" "calls.js" SCRIPT;
    "/page/chart.js" "chart.js" SCRIPT;
    "/page/chooser.js" "chooser.js" SCRIPT;
    "/page/client.js" "client.js" SCRIPT;
    "/page/compare.js" "compare.js" SCRIPT;
    "/page/diff.js" "diff.js" SCRIPT;
    "/page/dom.js" "dom.js" SCRIPT;
    "/page/draft-file.js" "draft-file.js" SCRIPT;
    "/page/draft-tool.js" "draft-tool.js" SCRIPT;
    "/page/draft-tools.js" "draft-tools.js" SCRIPT;
    "/page/draft-value.js" "draft-value.js" SCRIPT;
    "/page/draft.js" "draft.js" SCRIPT;
    "/page/experiments.js" "experiments.js" SCRIPT;
    "/page/form.js" "form.js" SCRIPT;
    "/page/format.js" "format.js" SCRIPT;
    "/page/grid.js" "grid.js" SCRIPT;
    "/page/history.js" "history.js" SCRIPT;
    "/page/now.js" "now.js" SCRIPT;
    "/page/parts.js" "parts.js" SCRIPT;
    "/page/results.js" "results.js" SCRIPT;
    "/page/review.js" "review.js" SCRIPT;
    "/page/route.js" "route.js" SCRIPT;
    "/page/rule.js" "rule.js" SCRIPT;
    "/page/servers.js" "servers.js" SCRIPT;
    "/page/style.css" "style.css" STYLE;
    "/page/text.js" "text.js" SCRIPT;
    "/page/tool.js" "tool.js" SCRIPT;
    "/page/variants.js" "variants.js" SCRIPT;
    "/page/who.js" "who.js" SCRIPT;
    "/page/vendor/htm.js" "vendor/htm.js" SCRIPT;
    "/page/vendor/preact.js" "vendor/preact.js" SCRIPT;
};

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The files that a browser may ask for, below a folder of `assets`.
    fn files(folder: &str) -> Vec<String> {
        let assets = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");
        let entries = fs::read_dir(format!("{assets}{folder}")).unwrap();
        let found = entries.map(Result::unwrap).flat_map(|file| {
            let path = format!("{folder}/{}", file.file_name().into_string().unwrap());
            let is_folder = file.file_type().unwrap().is_dir();
            if is_folder { files(&path) } else { vec![path] }
        });
        let is_served = |path: &String| {
            [".html", ".js", ".css"]
                .iter()
                .any(|end| path.ends_with(end))
        };
        found.filter(is_served).collect()
    }

    #[test]
    fn each_file_is_served() {
        let files = files("");
        for file in &files {
            let path = match &**file {
                "/index.html" => "/".to_owned(),
                file => format!("/page{file}"),
            };
            assert!(find(&path).is_some(), "add {path} to the table");
        }
        assert_eq!(files.len(), ASSETS.len());
    }

    #[test]
    fn comments_stay_in_the_sources_but_those_of_other_authors() {
        for asset in ASSETS {
            let served = String::from_utf8(asset.served()).unwrap();
            let text = std::str::from_utf8(asset.text).unwrap();
            let is_code = |line: &&str| {
                let line = line.trim();
                let is_block = line.starts_with("/*") && line.ends_with("*/");
                !(is_block || line.starts_with("//"))
            };
            let code: Vec<_> = text.lines().filter(is_code).collect();
            if asset.path.starts_with("/page/vendor/") {
                assert_eq!(served, text, "{}", asset.path);
            } else {
                assert_eq!(served.lines().collect::<Vec<_>>(), code, "{}", asset.path);
            }
        }
        let served = find("/page/app.js").unwrap().served();
        assert!(served.starts_with(b"\nimport { codeIn"));
    }

    #[test]
    fn what_the_page_loads_is_served() {
        let page = String::from_utf8(find("/").unwrap().served()).unwrap();
        for attribute in ["src=\"", "href=\""] {
            for rest in page.split(attribute).skip(1) {
                let path = rest.split('"').next().unwrap();
                let is_served =
                    path.starts_with('#') || path.starts_with("data:") || find(path).is_some();
                assert!(is_served, "{path}");
            }
        }
    }
}
