//! The service of `vary up`: under recorded managers, and as a real process in the background.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::connect::Home;
use crate::program::{Run, VARY, sky};
use crate::text::{assert_contains, assert_ends, assert_lacks};
use crate::up::with_free_port;

/// What a recorded manager does first: it writes down its arguments.
const RECORD: &str = "#!/bin/sh\necho \"$*\" >> \"$HOME/calls\"\n";

/// A systemd that starts the unit of the user with its variables, and ends it.
const SYSTEMD: &str = r#"
unit="$XDG_CONFIG_HOME/systemd/user/vary.service"
case "$*" in
  *restart*)
    . "$(sed -n 's/^EnvironmentFile=//p' "$unit")"
    eval "$(sed -n 's/^ExecStart=//p' "$unit") < /dev/null > /dev/null 2>&1 &" ;;
  *disable*) vary drain > /dev/null ;;
esac
"#;

/// A launchd that starts what the agent of the user names, and ends it.
const LAUNCHD: &str = r#"
case "$1" in
  bootstrap) grep -q '<string>launchd</string>' "$3" || exit 1
    vary serve --service launchd "$XDG_CONFIG_HOME/vary/vary.yaml" < /dev/null > /dev/null 2>&1 & ;;
  bootout) vary drain > /dev/null 2>&1 ;;
esac
"#;

/// A systemd that cannot start the unit.
const FAILING: &str = r#"
case "$*" in
  *restart*)
    echo 'error: the port is in use' > "$XDG_STATE_HOME/vary/service.log"
    echo 'Job for vary.service failed.' >&2
    exit 1 ;;
esac
"#;

/// A user with Cursor, at a machine with these managers.
struct Machine(Home);

impl Machine {
    fn new(name: &str, systemctl: &str, launchctl: &str) -> Self {
        let home = Home::new(name);
        with_free_port(&home);
        let servers = json!({"mcpServers": {"sky": {"command": VARY, "args": ["weather"]}}});
        home.write(".cursor/mcp.json", &servers.to_string());
        for (program, script) in [("systemctl", systemctl), ("launchctl", launchctl)] {
            let path = home.write(&format!("bin/{program}"), &format!("{RECORD}{script}"));
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self(home)
    }

    /// Runs `vary` as this user.
    fn run(&self, args: &[&str]) -> Run {
        let programs = Path::new(VARY).parent().unwrap();
        let bin = self.0.path("bin");
        let path = format!("{}:{}:/usr/bin:/bin", bin.display(), programs.display());
        let mut command = self.0.command_of(args);
        command.env("PATH", path);
        Run::of(command.env("XDG_STATE_HOME", self.0.path("state")))
    }

    /// How Vary runs, as `vary status` shows it.
    #[track_caller]
    fn runs(&self, expected: &str) {
        let shown = self.run(&["status"]).exited(0).stdout;
        assert_contains(&shown, &[&format!("{VARY}, {expected}\n")]);
    }

    /// What the managers were called with.
    fn calls(&self) -> String {
        self.0.read("calls")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.run(&["drain"]);
    }
}

const ABSENT: &str = "exit 1\n";

#[test]
fn without_a_manager_vary_runs_in_the_background() {
    let machine = Machine::new("service-background", ABSENT, ABSENT);
    machine.run(&["up", "--yes"]).exited(0);
    machine.runs("in the background");
    assert_contains(
        &machine.0.read("state/vary/service.log"),
        &["serving at http://"],
    );
    machine.run(&["down"]).exited(0);
    machine.run(&["status"]).exited(2);
}

/// A `vary up` that is killed leaves it so.
#[test]
fn a_process_that_has_no_socket_yet_is_ended_too() {
    let machine = Machine::new("service-starting", ABSENT, ABSENT);
    let journal = json!({"manager": "background"}).to_string();
    machine.0.write("state/vary/up.json", &journal);
    let configuration = machine
        .0
        .write(".config/vary/vary.yaml", &sky("listen: 0\n"));
    let path = machine.0.path("state/vary/service.lock");
    let lock = fs::File::create(&path).unwrap();
    lock.lock().unwrap();
    let script = "sleep 1; exec \"$0\" serve --service background \"$1\"";
    let mut starting = Command::new("sh")
        .args(["-c", script, VARY])
        .arg(configuration)
        .env("XDG_STATE_HOME", machine.0.path("state"))
        .stdin(lock)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    machine.run(&["down"]).exited(0);
    let ended = fs::File::open(&path).unwrap().try_lock();
    assert!(ended.is_ok(), "{ended:?}");
    starting.wait().unwrap();
}

#[test]
fn systemd_starts_a_unit_with_the_variables_of_the_service() {
    let machine = Machine::new("service-systemd", SYSTEMD, ABSENT);
    machine.run(&["up", "--yes"]).exited(0);
    machine.runs("as a systemd user service");
    let started = "--user daemon-reload\n--user enable vary.service\n--user reset-failed vary.service\n\
                   --user restart vary.service\n";
    assert_ends(&machine.calls(), started);
    let unit = machine.0.path(".config/systemd/user/vary.service");
    let mut verify = Command::new("systemd-analyze");
    verify.args(["--user", "verify"]).arg(&unit);
    // Where there is no systemd, nothing reads the unit.
    if let Ok(verified) = verify.env("XDG_RUNTIME_DIR", &machine.0.0).output() {
        assert_eq!(String::from_utf8(verified.stderr).unwrap(), "");
        assert!(verified.status.success());
    }
    let variables = machine.0.path(".config/vary/service.env");
    let mode = fs::metadata(&variables).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    machine.run(&["down"]).exited(0);
    assert_ends(
        &machine.calls(),
        "--user disable --now vary.service\n--user daemon-reload\n",
    );
    assert!(!variables.exists());
    assert!(!unit.exists());
}

#[test]
fn a_dry_run_names_the_files_of_the_service_without_their_content() {
    let machine = Machine::new("service-dry", SYSTEMD, ABSENT);
    let shown = machine.run(&["up", "--dry-run"]).exited(0).stdout;
    assert_contains(
        &shown,
        &[
            "/vary.service (for the service)\n",
            "/service.env (for the service)\n",
        ],
    );
    assert_lacks(&shown, &["ExecStart", "PATH="]);
}

#[test]
fn launchd_starts_an_agent() {
    let machine = Machine::new("service-launchd", ABSENT, LAUNCHD);
    machine.run(&["up", "--yes"]).exited(0);
    machine.runs("as a launchd agent");
    let agent = machine.0.path("Library/LaunchAgents/vary.plist");
    let started = format!(" {}\n", agent.display());
    assert_ends(&machine.calls(), &started);
    machine.run(&["down"]).exited(0);
    assert_ends(&machine.calls(), "/vary\n");
    assert!(!agent.exists());
}

#[test]
fn a_service_that_does_not_start_is_reported_with_the_last_line_of_its_log() {
    let machine = Machine::new("service-failing", FAILING, ABSENT);
    let failed = machine.run(&["up", "--yes"]).exited(2);
    let why = "`systemctl --user restart vary.service` failed: Job for vary.service failed: ";
    assert_contains(&failed.stderr, &[why, "error: the port is in use ("]);
}
