//! How a running gateway was started, and what is newer on disk than what runs.

use std::path::Path;

use mcp_vary_config::SecretFiles;
use serde::Deserialize as _;
use serde_json::Value;

use super::document::StatusDocument;
use crate::file;
use crate::service::{Manager, program_file};

/// A line about how the gateway runs that is described by `about`, and one for each thing that is newer.
pub(super) fn process_lines(about: &Value, status: &StatusDocument) -> String {
    let Some(path) = about["program"]["path"].as_str() else {
        // An older Vary did not write it.
        return String::new();
    };
    let manager = Manager::deserialize(&about["manager"]).ok();
    let place = match manager {
        Some(manager) => manager.description(),
        None if about["isTerminal"] == true => "at a terminal",
        None => "not as a service",
    };
    let mut lines = format!("{path}, {place}\n");
    let file = about["file"].as_str().unwrap_or_default();
    let text = mcp_vary_config::text(Path::new(file));
    let digest = text.ok().map(|text| mcp_vary_config::digest(&text));
    if digest.is_some() && status.config.is_some() && digest != status.config {
        lines.push_str(&format!(
            "{file} was changed and not read since; `vary reload` reads it, or says why it cannot\n"
        ));
    }
    if manager.is_some()
        && about
            .get("listen")
            .is_some_and(|then| is_changed(file, then))
    {
        lines.push_str(&format!(
            "`listen` was changed in {file}, but Vary still listens at the old address; to restart it and change the \
             clients' files: vary up\n"
        ));
    }
    match program_file(Path::new(path)) {
        None => {
            let next = manager.map_or("start Vary again", |_| "type `vary up` with it");
            lines.push_str(&format!(
                "{path} was removed since Vary started; to run another program: {next}\n"
            ));
        }
        Some(program) if program != about["program"] => {
            let command = manager.map_or("start Vary again", |_| "vary up");
            lines.push_str(&format!(
                "{path} was replaced since Vary started; to run the new program: {command}\n"
            ));
        }
        Some(_) => {}
    }
    lines
}

/// Whether the configuration at `path` has another `listen` than the one `then`, with which Vary was started.
fn is_changed(path: &str, then: &Value) -> bool {
    let text = mcp_vary_config::text(Path::new(path)).unwrap_or_default();
    let secrets = SecretFiles::beside(Path::new(path));
    let parsed = file::parse_with_variables(path, &text, &secrets);
    parsed.is_ok_and(|read| read.file.program.listen.as_deref() != then.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_newer_than_what_runs_is_reported() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let text = mcp_vary_config::text(Path::new(path)).unwrap();
        let mut about =
            json!({"file": path, "manager": "systemd", "program": program_file(Path::new(path))});
        let mut status = StatusDocument {
            config: Some(mcp_vary_config::digest(&text)),
            ..StatusDocument::default()
        };
        let current = format!("{path}, as a systemd user service\n");
        assert_eq!(process_lines(&about, &status), current);
        about["program"]["length"] = json!(1);
        status.config = Some("sha256:0".to_owned());
        let reads = "was changed and not read since; `vary reload` reads it, or says why it cannot";
        let replaced = "was replaced since Vary started; to run the new program: vary up";
        assert_eq!(
            process_lines(&about, &status),
            format!("{current}{path} {reads}\n{path} {replaced}\n")
        );
    }

    #[test]
    fn what_takes_a_restart_or_another_program_is_reported() {
        let directory = std::env::temp_dir().join(format!("vary-listen-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("vary.yaml").display().to_string();
        std::fs::write(
            &path,
            "listen: 127.0.0.1:8802\nservers: {a: {command: x}}\n",
        )
        .unwrap();
        let gone = directory.join("vary").display().to_string();
        let lines = |listen: &str| {
            let about = json!({"file": path, "manager": "background", "listen": listen, "program": {"path": gone}});
            process_lines(&about, &StatusDocument::default())
        };
        let removed = format!(
            "{gone}, in the background\n{gone} was removed since Vary started; to run another program: type `vary up` \
             with it\n"
        );
        assert_eq!(lines("127.0.0.1:8802"), removed);
        let changed = format!("`listen` was changed in {path}, but Vary still listens ");
        assert!(lines("127.0.0.1:8801").contains(&changed));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn without_a_service_the_place_is_what_started_vary() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let program = program_file(Path::new(path));
        let place = |is_terminal: bool| {
            let about = json!({"program": program, "isTerminal": is_terminal});
            process_lines(&about, &StatusDocument::default())
        };
        assert_eq!(place(true), format!("{path}, at a terminal\n"));
        assert_eq!(place(false), format!("{path}, not as a service\n"));
        let older = process_lines(&json!({"url": "u"}), &StatusDocument::default());
        assert_eq!(older, "", "an older Vary did not describe its program");
    }
}
