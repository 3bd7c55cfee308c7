//! Checks the files for those who run Vary on servers as their users do: Helm and the schemas of Kubernetes read the chart,
//! systemd the units, and Prometheus the alerts and the queries of the dashboard.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::LIMIT;
use crate::outcome::{Outcome, no_findings};
use crate::workspace::Workspace;
use crate::{cargo, debian, process, python};

/// The environment with Helm, the schemas and hadolint.
const ENVIRONMENT: &str = "packaging";

/// Where the page has a row for each alert.
const ALERTS_PAGE: &str = "docs/how-to/alerts.md";

/// The highest exposure of the unit that `systemd-analyze security` may find, in tenths: 0 is none, 100 all.
const EXPOSURE: &str = "20";

/// What the chart refuses, and what it says.
const REFUSED: [(&str, &str); 9] = [
    ("config=null", "set config.servers: "),
    ("config.listen=8800", "remove config.listen and "),
    ("secret.name=", "set secret.name, or "),
    (
        "ingress.enabled=true,ingress.host=other.example.com",
        "set ingress.host to ",
    ),
    ("config.auth=null", "set config.auth: "),
    ("tls.secretName=", "set tls.secretName, or "),
    ("config.public-url=null", "set config.public-url: "),
    ("config.behind-proxy=true", "set config.trusted-proxies: "),
    ("config.keys=null", "set config.keys: "),
];

/// Unpacks the chart and the archive among `names` of `out`, checks what is in them, and removes it.
pub(super) fn check(workspace: &Workspace, out: &Path, names: &[String], vary: &Path) -> Outcome {
    let prepare = || {
        debian::install(workspace)?;
        python::install_into(workspace, ENVIRONMENT, "tests/packaging/requirements.txt")?;
        Files::unpack(workspace, out, names, vary)
    };
    let files = match prepare() {
        Ok(files) => files,
        Err(error) => return Outcome::failure(format!("files for servers: {error}")),
    };
    // It waits for Prometheus for most of its time.
    let mut outcome = thread::scope(|scope| {
        let dashboard = scope.spawn(|| files.dashboard());
        let mut checks = vec![
            ("image with Node and uv", files.recipe()),
            ("units of systemd", files.units()),
            ("alerts", files.alerts()),
            ("chart", files.chart()),
        ];
        let dashboard = dashboard.join();
        let dashboard = dashboard.unwrap_or_else(|_| Err("it panicked, see above".to_owned()));
        checks.push(("dashboard", dashboard));
        Outcome::of_all(&checks)
    });
    if let Err(error) = fs::remove_dir_all(&files.place) {
        outcome.fail(format!("cannot remove {}: {error}", files.place.display()));
    }
    outcome
}

/// The unpacked files.
struct Files<'a> {
    workspace: &'a Workspace,
    /// The program that they are for.
    vary: &'a Path,
    /// The directory of the chart, of the archive, and of what the checks write.
    place: PathBuf,
    /// The number of commands that were started.
    commands: AtomicUsize,
}

impl<'a> Files<'a> {
    fn unpack(
        workspace: &'a Workspace,
        out: &Path,
        names: &[String],
        vary: &'a Path,
    ) -> Result<Self, String> {
        let place = workspace.scratch("packaging-files")?;
        super::empty(&place)?;
        // Each has a directory: `vary` of the chart, and that of the archive, which becomes the place itself.
        for (ending, into, options) in [
            ("tgz", "chart", &[][..]),
            ("tar.gz", ".", &["--strip-components=1"]),
        ] {
            let is_it = |name: &&String| name.starts_with("vary-") && name.ends_with(ending);
            let name = names.iter().find(is_it).ok_or("no such file was packed")?;
            let into = place.join(into);
            fs::create_dir_all(&into).map_err(|error| format!("{}: {error}", into.display()))?;
            let mut tar = process::command("tar");
            tar.arg("-xzf").arg(out.join(name)).args(options);
            process::run(tar.arg("-C").arg(into), &place.join("tar.log"), LIMIT)?;
        }
        Ok(Self {
            workspace,
            vary,
            place,
            commands: AtomicUsize::new(0),
        })
    }

    /// Runs a command to its end, and returns what it printed.
    fn run(&self, command: &mut Command) -> Result<String, String> {
        // Commands run at once, and each needs a log of its own.
        let number = self.commands.fetch_add(1, Ordering::Relaxed);
        let log = self.place.join(format!("command-{number}.log"));
        process::run(command, &log, LIMIT)?;
        fs::read_to_string(&log).map_err(|error| format!("{}: {error}", log.display()))
    }

    /// A program of the environment.
    fn tool(&self, name: &str) -> Result<Command, String> {
        Ok(process::command(python::program(
            self.workspace,
            ENVIRONMENT,
            name,
        )?))
    }

    fn read(&self, path: &str) -> Result<String, String> {
        let path = self.place.join(path);
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn write(&self, path: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.place.join(path);
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        let written = folder.and_then(|()| fs::write(&path, text));
        written.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }
}

/// The checks.
impl Files<'_> {
    fn recipe(&self) -> Result<(), String> {
        let file = self.place.join("container/Dockerfile");
        self.run(self.tool("hadolint")?.arg(file)).map(drop)
    }

    /// systemd reads the units without a warning, and finds the service closed enough.
    fn units(&self) -> Result<(), String> {
        let text = self.read("systemd/vary.service")?;
        let text = text.replace("/usr/bin/vary", &self.vary.display().to_string());
        let service = self.write("units/vary.service", &text)?;
        let socket = self.write("units/vary.socket", &self.read("systemd/vary.socket")?)?;
        let verify = || {
            let mut verify = process::command("systemd-analyze");
            self.run(verify.arg("verify").args([&service, &socket]))
        };
        let warnings = verify()?;
        if !warnings.is_empty() {
            return Err(warnings);
        }
        let mut security = process::command("systemd-analyze");
        security.args(["security", "--offline=true", "--threshold", EXPOSURE]);
        self.run(security.arg(&service))?;
        let drop_in = self.read("systemd/notify-reload.conf")?;
        self.write("units/vary.service.d/notify-reload.conf", &drop_in)?;
        let warnings = verify()?;
        // Versions before 253 say this, and nothing else.
        let unknown = "Failed to parse service type, ignoring: notify-reload";
        let warning = warnings.lines().find(|line| !line.ends_with(unknown));
        warning.map_or(Ok(()), |warning| Err(warning.to_owned()))
    }

    /// The rules are rules, each fires and is quiet in a test, and the page says of each what to do.
    fn alerts(&self) -> Result<(), String> {
        let rules = self.place.join("prometheus/alerts.yaml");
        let tests = self
            .workspace
            .read("packaging/prometheus/alerts_test.yaml")?;
        let test = self.write("prometheus/alerts_test.yaml", &tests)?;
        let promtool = |verb, file| {
            let mut promtool = process::command("promtool");
            self.run(promtool.args([verb, "rules"]).arg(file)).map(drop)
        };
        promtool("check", &rules)?;
        promtool("test", &test)?;
        let (rules, page) = (
            self.read("prometheus/alerts.yaml")?,
            self.workspace.read(ALERTS_PAGE)?,
        );
        no_findings(&unnamed(&rules, &tests, &page))
    }

    /// Each file of values gives objects that Kubernetes knows and a configuration that Vary accepts; what cannot work is refused.
    fn chart(&self) -> Result<(), String> {
        let chart = self.place.join("chart/vary");
        self.write("secrets/vary/seal-key", &"k".repeat(32))?;
        self.write("secrets/vary/search-token", "token")?;
        self.write("secrets/vary/redis-password", "password")?;
        self.certificate()?;
        let helm = |verb: &[&str]| {
            let mut helm = self.tool("helm")?;
            helm.args(verb).arg(&chart);
            Ok::<_, String>(helm)
        };
        for file in self.workspace.files("packaging/chart/ci")? {
            let name = file.rsplit('/').next().unwrap_or_default();
            let values = chart.join("ci").join(name);
            self.run(helm(&["lint", "--strict"])?.arg("--values").arg(&values))?;
            let rendered = self.place.join("rendered").join(name);
            let mut template = helm(&["template", "--namespace", "mcp", "vary"])?;
            template.arg("--values").arg(&values);
            self.run(template.arg("--output-dir").arg(&rendered))?;
            self.objects(&rendered.join("vary/templates"))?;
        }
        for (setting, says) in REFUSED {
            let mut template = helm(&["template", "vary"])?;
            let values = chart.join("ci/replicas-values.yaml");
            template
                .arg("--values")
                .arg(values)
                .args(["--set", setting]);
            match self.run(&mut template) {
                Err(error) if error.contains(says) => {}
                answer => return Err(format!("{setting}: {answer:?}, and not: {says}")),
            }
        }
        Ok(())
    }

    /// A certificate, which the configurations name.
    fn certificate(&self) -> Result<(), String> {
        let key = self.write("secrets/vary-tls/tls.key", "")?;
        let mut openssl = process::command("openssl");
        openssl.args(["req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt"]);
        openssl.args(["ec_paramgen_curve:P-256", "-subj", "/CN=vary", "-out"]);
        openssl.arg(key.with_file_name("tls.crt"));
        self.run(openssl.arg("-keyout").arg(key)).map(drop)
    }

    /// The rendered objects of one file of values.
    fn objects(&self, directory: &Path) -> Result<(), String> {
        let listed = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let listed = listed.map_err(|error| format!("{}: {error}", directory.display()))?;
        let mut validate = self.tool("kubernetes-validate")?;
        validate.args(["--strict", "--quiet"]);
        validate.args(listed.iter().map(fs::DirEntry::path));
        // Kubernetes itself does not know the objects of the Prometheus operator.
        let printed = self.run(&mut validate)?;
        let unknown = printed.lines().find(|line| !line.contains(OPERATOR));
        if let Some(line) = unknown {
            return Err(line.to_owned());
        }
        let failed = |error| format!("{}: {error}", directory.display());
        let text = fs::read_to_string(directory.join("configuration.yaml"));
        let text = text.map_err(|error| failed(error.to_string()))?;
        let map = text
            .split("---\n")
            .find(|part| part.contains("kind: ConfigMap"));
        let map: Value = serde_saphyr::from_str(map.unwrap_or_default())
            .map_err(|error| failed(error.to_string()))?;
        let configuration = map["data"]["vary.yaml"].as_str().unwrap_or_default();
        let secrets = self.place.join("secrets").display().to_string();
        let file = self.write(
            "vary.yaml",
            &configuration.replace("/run/secrets", &secrets),
        )?;
        let mut check = process::command(self.vary);
        self.run(check.args(["config", "check", "--offline"]).arg(file))
            .map(drop)
            .map_err(failed)
    }

    /// Prometheus scrapes `vary serve` under some load, and answers every query.
    fn dashboard(&self) -> Result<(), String> {
        let place = self.write("load/empty", "")?;
        let argument = json!({
            "vary": self.vary,
            "weather": cargo::binary(self.workspace, "weather")?,
            "prometheus": "prometheus",
            "dashboard": self.place.join("grafana/vary.json"),
            "alerts": self.place.join("prometheus/alerts.yaml"),
            "directory": place.parent(),
        });
        let mut script = process::command("python3");
        script.arg(self.workspace.path("tests/packaging/dashboard.py"));
        self.run(script.arg(argument.to_string())).map(drop)
    }
}

const OPERATOR: &str = "monitoring.coreos.com";

/// The alerts without a test in which they fire, or without a row of the page; and rows without an alert.
fn unnamed(rules: &str, tests: &str, page: &str) -> Vec<String> {
    let names = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    let names: Vec<&str> = names.collect();
    let mut findings = Vec::new();
    for name in &names {
        if !tests.contains(&format!("alertname: {name}\n        exp_alerts:\n")) {
            findings.push(format!("{name} fires in no test"));
        }
        if !page.contains(&format!("\n| `{name}` |")) {
            findings.push(format!("{name} has no row in {ALERTS_PAGE}"));
        }
    }
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let unknown = rows.filter(|(name, _)| !names.contains(name));
    findings.extend(unknown.map(|(name, _)| format!("{ALERTS_PAGE}: there is no alert {name}")));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_needs_a_test_and_a_row() {
        let rules = "  - alert: VaryDown\n  - alert: VarySlow\n";
        let tests = "{alertname: VarySlow, exp_alerts: []}\n        alertname: VaryDown\n        exp_alerts:\n";
        let page = "# Alerts\n| `VaryDown` | a |\n| `VaryGone` | b |\n";
        let expected = [
            "VarySlow fires in no test",
            "VarySlow has no row in docs/how-to/alerts.md",
            "docs/how-to/alerts.md: there is no alert VaryGone",
        ];
        assert_eq!(unnamed(rules, tests, page), expected);
    }
}
