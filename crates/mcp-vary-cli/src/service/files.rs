//! The files by which systemd and launchd know the service.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::{Manager, ServiceFile, ServiceSpec};

/// The unit of systemd.
pub(super) const UNIT: &str = "vary.service";
/// The name of the agent of launchd.
pub(super) const LABEL: &str = "vary";
/// The agent, below the home directory.
pub(super) const AGENT: &str = "Library/LaunchAgents/vary.plist";

/// A unit in the directory for configurations, and a file with its variables that only the user can read.
pub(super) fn of_systemd(
    spec: &ServiceSpec,
    variables: &BTreeMap<String, String>,
    directory: &Path,
) -> Vec<ServiceFile> {
    let variables_path = spec.configuration.with_file_name("service.env");
    let literal = |path: &Path| path.display().to_string().replace('%', "%%");
    let unit = format!(
        "# Written by `vary up`; `vary down` removes it.\n\
         [Unit]\n\
         Description=Vary, a gateway for MCP\n\
         StartLimitIntervalSec=600\n\
         StartLimitBurst=10\n\n\
         [Service]\n\
         Type=notify\n\
         WatchdogSec=60\n\
         EnvironmentFile={}\n\
         ExecStart={} serve --service {} {}\n\
         StandardError=append:{}\n\
         Restart=on-failure\n\
         RestartSec=10\n\
         TimeoutStopSec=40\n\n\
         [Install]\n\
         WantedBy=default.target\n",
        literal(&variables_path),
        // Of the program alone, systemd does not replace variables.
        systemd_word(&spec.program),
        Manager::Systemd.name(),
        systemd_word(&spec.configuration).replace('$', "$$"),
        literal(&spec.log),
    );
    let mut assignments = String::new();
    for (name, value) in variables {
        let _ = writeln!(assignments, "{name}=\"{}\"", escaped(value, "\"\\$`"));
    }
    vec![
        ServiceFile {
            path: directory.join("systemd/user").join(UNIT),
            text: unit,
            mode: 0o644,
        },
        ServiceFile {
            path: variables_path,
            text: assignments,
            mode: 0o600,
        },
    ]
}

/// A word of a command in a unit.
fn systemd_word(path: &Path) -> String {
    let text = path.display().to_string().replace('%', "%%");
    format!("\"{}\"", escaped(&text, "\"\\").replace('\n', "\\n"))
}

/// `text` with a backslash before each of the `special` characters.
fn escaped(text: &str, special: &str) -> String {
    let mut out = String::new();
    for char in text.chars() {
        if special.contains(char) {
            out.push('\\');
        }
        out.push(char);
    }
    out
}

/// An agent that only the user can read, since it has the variables.
pub(super) fn of_launchd(
    spec: &ServiceSpec,
    variables: &BTreeMap<String, String>,
    home: &Path,
) -> ServiceFile {
    let string = |text: &str| format!("<string>{}</string>", xml(text));
    let path = |path: &Path| string(&path.display().to_string());
    let mut entries = String::new();
    for (name, value) in variables {
        let _ = write!(entries, "\n    <key>{}</key>{}", xml(name), string(value));
    }
    let agent = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!-- Written by `vary up`; `vary down` removes it. -->\n\
         <plist version=\"1.0\"><dict>\n  \
         <key>Label</key>{}\n  \
         <key>ProgramArguments</key><array>{}{}{}{}{}</array>\n  \
         <key>EnvironmentVariables</key><dict>{entries}\n  </dict>\n  \
         <key>WorkingDirectory</key>{}\n  \
         <key>StandardErrorPath</key>{}\n  \
         <key>RunAtLoad</key><true/>\n  \
         <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n  \
         <key>ExitTimeOut</key><integer>40</integer>\n\
         </dict></plist>\n",
        string(LABEL),
        path(&spec.program),
        string("serve"),
        string("--service"),
        string(Manager::Launchd.name()),
        path(&spec.configuration),
        path(home),
        path(&spec.log),
    );
    ServiceFile {
        path: home.join(AGENT),
        text: agent,
        mode: 0o600,
    }
}

/// `text` as the content of an element.
fn xml(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
    escaped.replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A service whose paths and values have all that the forms treat specially.
    fn spec() -> (ServiceSpec, BTreeMap<String, String>) {
        let spec = ServiceSpec {
            program: "/opt/a $b/vary".into(),
            configuration: "/srv/50% <ann>/$x/vary.yaml".into(),
            address: "127.0.0.1:8800".to_owned(),
            variables: BTreeMap::new(),
            log: "/srv/50% <ann>/service.log".into(),
        };
        let token = ("TOKEN".to_owned(), "a \"b\" \\ $c `d` %e & <f>".to_owned());
        (spec, BTreeMap::from([token]))
    }

    #[test]
    fn a_unit_of_systemd_quotes_what_systemd_would_replace() {
        let (spec, variables) = spec();
        let files = of_systemd(&spec, &variables, Path::new("/srv/ann/.config"));
        let [unit, values] = &files[..] else {
            panic!("{files:?}");
        };
        assert_eq!(
            unit.path,
            Path::new("/srv/ann/.config/systemd/user/vary.service")
        );
        assert_eq!(unit.mode, 0o644);
        insta::assert_snapshot!(unit.text, @r#"
        # Written by `vary up`; `vary down` removes it.
        [Unit]
        Description=Vary, a gateway for MCP
        StartLimitIntervalSec=600
        StartLimitBurst=10

        [Service]
        Type=notify
        WatchdogSec=60
        EnvironmentFile=/srv/50%% <ann>/$x/service.env
        ExecStart="/opt/a $b/vary" serve --service systemd "/srv/50%% <ann>/$$x/vary.yaml"
        StandardError=append:/srv/50%% <ann>/service.log
        Restart=on-failure
        RestartSec=10
        TimeoutStopSec=40

        [Install]
        WantedBy=default.target
        "#);
        assert_eq!(values.path, Path::new("/srv/50% <ann>/$x/service.env"));
        assert_eq!(values.mode, 0o600);
        assert_eq!(
            values.text,
            "TOKEN=\"a \\\"b\\\" \\\\ \\$c \\`d\\` %e & <f>\"\n"
        );
    }

    #[test]
    fn an_agent_of_launchd_is_xml_that_only_the_user_reads() {
        let (spec, variables) = spec();
        let agent = of_launchd(&spec, &variables, Path::new("/srv/ann"));
        assert_eq!(
            agent.path,
            Path::new("/srv/ann/Library/LaunchAgents/vary.plist")
        );
        assert_eq!(agent.mode, 0o600);
        insta::assert_snapshot!(agent.text, @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <!-- Written by `vary up`; `vary down` removes it. -->
        <plist version="1.0"><dict>
          <key>Label</key><string>vary</string>
          <key>ProgramArguments</key><array><string>/opt/a $b/vary</string><string>serve</string><string>--service</string><string>launchd</string><string>/srv/50% &lt;ann&gt;/$x/vary.yaml</string></array>
          <key>EnvironmentVariables</key><dict>
            <key>TOKEN</key><string>a "b" \ $c `d` %e &amp; &lt;f&gt;</string>
          </dict>
          <key>WorkingDirectory</key><string>/srv/ann</string>
          <key>StandardErrorPath</key><string>/srv/50% &lt;ann&gt;/service.log</string>
          <key>RunAtLoad</key><true/>
          <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
          <key>ExitTimeOut</key><integer>40</integer>
        </dict></plist>
        "#);
    }

    #[test]
    fn programs_are_not_looked_for_in_the_current_directory() {
        let (mut spec, _) = spec();
        let path = "bin:/usr/bin::/opt/bin:.".to_owned();
        spec.variables.insert("PATH".to_owned(), path);
        assert_eq!(spec.variables()["PATH"], "/usr/bin:/opt/bin");
    }
}
