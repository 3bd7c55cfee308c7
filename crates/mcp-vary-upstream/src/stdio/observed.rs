//! What a process did, for an error.

use super::Shared;
use super::process::windows_line_ends;
use crate::config::Target;
use crate::error::STDERR_LINES;

impl Shared {
    /// Whether the process has written anything.
    pub(super) fn has_output(&self) -> bool {
        self.liveness.has_received() || !self.output_summary().is_empty()
    }

    /// The output of the process that is not a message; empty if there is none.
    pub(super) fn output_summary(&self) -> String {
        let skipped = self.last_skipped_line.lock().clone();
        let stderr = self.stderr_tail.text();
        let advice = self.stray_text_advice();
        match (skipped.as_str(), stderr.as_str()) {
            ("", "") => String::new(),
            ("", stderr) => format!("{STDERR_LINES}{stderr}"),
            (skipped, "") => {
                format!("it wrote `{skipped}`, which is not a message: {advice}")
            }
            (skipped, stderr) => format!(
                "it wrote `{skipped}`, which is not a message: {advice}; {STDERR_LINES}{stderr}"
            ),
        }
    }

    /// What to do about a server that writes other text than messages.
    pub(super) const fn stray_text_advice(&self) -> &'static str {
        match self.target {
            Target::InProcess(_) => "its pipe is for messages only",
            Target::Command { .. } | Target::Http { .. } => STDOUT_ADVICE,
        }
    }

    /// The same of a process that has ended, or what to do if there is none.
    pub(super) fn last_output(&self) -> String {
        let output = self.output_summary();
        let line_ends = match &self.target {
            Target::Command { program, cwd, .. } => {
                windows_line_ends(&cwd.clone().unwrap_or_default().join(program))
            }
            Target::Http { .. } | Target::InProcess(_) => None,
        };
        match line_ends {
            Some(line_ends) if output.is_empty() => return line_ends,
            Some(line_ends) => return format!("{output}; {line_ends}"),
            None if !output.is_empty() => {
                return runner_advice(&self.target, &output) + &output;
            }
            None => {}
        }
        if matches!(self.target, Target::InProcess(_)) {
            return "it runs in this process, whose log says more".to_owned();
        }
        let written = if self.liveness.has_received() {
            "it wrote nothing to standard error"
        } else {
            "it wrote nothing"
        };
        match &self.command_line {
            Some(command) => format!("{written}; to see why, run it in a terminal: {command}"),
            None => format!("{written}; run its command in a terminal to see why"),
        }
    }

    /// How far a process came that was not ready in time, and its last output.
    pub(super) fn how_far(&self) -> String {
        let output = self.last_output();
        match self.progress.summary() {
            Some(progress) => format!("it {progress}; {output}"),
            None if self.liveness.has_received() => {
                format!("it sent messages, but answered no request; {output}")
            }
            None if output.starts_with(STDERR_LINES) => format!("it sent no message; {output}"),
            None => output,
        }
    }
}

/// What an error of npm or Docker means in the `output` of a server that it downloads; empty if there is none.
fn runner_advice(target: &Target, output: &str) -> String {
    let Some(runner) = target.package_runner() else {
        return String::new();
    };
    if output.contains(DOCKER_IS_DOWN) {
        return "Docker is not running: start it, as with `sudo systemctl start docker`; "
            .to_owned();
    }
    let has_code = |code: &str| output.contains(&format!("npm error code {code}"));
    if has_code("E404") {
        return "npm has no such package (E404): check its name, or log in to npm if it is private; ".to_owned();
    }
    match NETWORK_CODES.into_iter().find(|code| has_code(code)) {
        Some(code) => format!(
            "`{runner}` cannot reach the registry ({code}): check the network and `npm config get registry`, or install the package \
             beforehand; "
        ),
        None => String::new(),
    }
}

/// How Docker says that its service does not run.
const DOCKER_IS_DOWN: &str = "Cannot connect to the Docker daemon";

/// What npm calls a registry that cannot be reached.
const NETWORK_CODES: [&str; 5] = [
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "ENOTFOUND",
    "ETIMEDOUT",
];

/// What to do about a process that prints other text.
const STDOUT_ADVICE: &str =
    "standard output is for messages only, so make the server write its logs to standard error";
