//! A configuration file that changes, in all the ways in which files do.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcp_vary_config::{SecretFiles, Source, Watch};

/// A directory for one test.
fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("watch-{name}"));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// What the file says next; a text that reports a failure is one, too.
async fn next(watch: &mut Watch) -> String {
    let limit = Duration::from_secs(60);
    let changed = tokio::time::timeout(limit, watch.changed()).await;
    changed
        .expect("no change is seen")
        .unwrap_or_else(|error| error.kind().to_string())
}

/// After each step the file says what is expected next, whatever came before.
async fn is_seen(name: &str, change: impl FnOnce(&Path), expected: &[&str]) {
    let directory = directory(name);
    let file = directory.join("vary.yaml");
    fs::write(&file, "before").unwrap();
    let mut watch = Watch::new(&file, "before".to_owned());
    // Begun before the change, as in a program that serves.
    let seeing = async {
        let mut seen = Vec::new();
        while seen.len() < expected.len() {
            seen.push(next(&mut watch).await);
        }
        assert_eq!(seen, expected, "{name}");
        // And what follows.
        fs::write(&file, "then").unwrap();
        assert_eq!(next(&mut watch).await, "then", "{name}");
    };
    let changing = async {
        tokio::task::yield_now().await;
        change(&directory);
    };
    tokio::join!(seeing, changing);
}

#[tokio::test]
async fn every_way_to_change_a_file_is_seen() {
    is_seen(
        "written",
        |at| fs::write(at.join("vary.yaml"), "now").unwrap(),
        &["now"],
    )
    .await;
    let renamed = |at: &Path| {
        fs::write(at.join("other"), "now").unwrap();
        fs::rename(at.join("other"), at.join("vary.yaml")).unwrap();
    };
    is_seen("renamed", renamed, &["now"]).await;
    let moved_away = |at: &Path| {
        fs::rename(at.join("vary.yaml"), at.join("vary.yaml~")).unwrap();
        fs::write(at.join("vary.yaml"), "now").unwrap();
    };
    is_seen("moved-away", moved_away, &["now"]).await;
    let gone = |at: &Path| fs::remove_file(at.join("vary.yaml")).unwrap();
    is_seen("gone", gone, &["entity not found"]).await;
    let directory_replaced = |at: &Path| {
        fs::rename(at, at.with_extension("old")).unwrap();
        fs::create_dir(at).unwrap();
        fs::write(at.join("vary.yaml"), "now").unwrap();
        fs::remove_dir_all(at.with_extension("old")).unwrap();
    };
    is_seen("directory", directory_replaced, &["now"]).await;
}

/// What a script writes in pieces is read when it is done.
#[tokio::test]
async fn pieces_are_read_together() {
    use std::io::Write as _;
    let pieces = |at: &Path| {
        let mut file = fs::File::create(at.join("vary.yaml")).unwrap();
        for piece in ["n", "o", "w"] {
            file.write_all(piece.as_bytes()).unwrap();
            file.flush().unwrap();
        }
    };
    is_seen("pieces", pieces, &["now"]).await;
}

#[tokio::test]
async fn the_same_text_is_no_change() {
    let same = |at: &Path| {
        fs::write(at.join("vary.yaml"), "before").unwrap();
        fs::write(at.join("another"), "file").unwrap();
        fs::read(at.join("vary.yaml")).unwrap();
        fs::remove_file(at.join("vary.yaml")).unwrap();
        fs::write(at.join("vary.yaml"), "before").unwrap();
    };
    is_seen("same", same, &[]).await;
}

/// The file, the directory that it is in, or one further up may be a link that is set to another place.
#[cfg(unix)]
#[tokio::test]
async fn links_are_followed_to_where_they_lead_now() {
    use std::os::unix::fs::symlink;
    let at = directory("links");
    let swap = |name: &str, to: &str| {
        symlink(to, at.join("new")).unwrap();
        fs::rename(at.join("new"), at.join(name)).unwrap();
    };
    for (release, text) in [("1", "one"), ("2", "two"), ("3", "three")] {
        fs::create_dir_all(at.join(release).join("etc")).unwrap();
        fs::write(at.join(release).join("etc/real.yaml"), text).unwrap();
        symlink("etc/real.yaml", at.join(release).join("vary.yaml")).unwrap();
    }
    swap("current", "1");
    let file = at.join("current/../current/vary.yaml");
    let mut watch = Watch::new(&file, "one".to_owned());
    swap("current", "2");
    assert_eq!(next(&mut watch).await, "two");
    swap("current", "3");
    let (seen, ()) = tokio::join!(next(&mut watch), async {
        fs::remove_dir_all(at.join("2")).unwrap();
    });
    assert_eq!(seen, "three");
    let (seen, ()) = tokio::join!(next(&mut watch), async {
        tokio::task::yield_now().await;
        fs::write(at.join("3/etc/real.yaml"), "there").unwrap();
    });
    assert_eq!(seen, "there");
    let (seen, ()) = tokio::join!(next(&mut watch), async {
        tokio::task::yield_now().await;
        fs::write(at.join("3/etc/other.yaml"), "beside").unwrap();
        fs::remove_file(at.join("3/vary.yaml")).unwrap();
        symlink("etc/other.yaml", at.join("3/vary.yaml")).unwrap();
    });
    assert_eq!(seen, "beside");
}

/// A file that leads to itself is one that cannot be read.
#[cfg(unix)]
#[tokio::test]
async fn links_in_a_circle_end() {
    use std::os::unix::fs::symlink;
    let circle = |at: &Path| {
        fs::remove_file(at.join("vary.yaml")).unwrap();
        symlink("vary.yaml", at.join("vary.yaml")).unwrap();
    };
    let at = directory("circle");
    fs::write(at.join("vary.yaml"), "before").unwrap();
    let mut watch = Watch::new(&at.join("vary.yaml"), "before".to_owned());
    circle(&at);
    let said = next(&mut watch).await;
    assert!(said != "before" && said != "entity not found", "{said}");
    fs::remove_file(at.join("vary.yaml")).unwrap();
    fs::write(at.join("vary.yaml"), "now").unwrap();
    assert_eq!(next(&mut watch).await, "now");
}

/// A reader that is asked for what there is has seen it.
#[tokio::test]
async fn what_was_asked_for_is_not_told_again() {
    let at = directory("asked");
    let file = at.join("vary.yaml");
    fs::write(&file, "one").unwrap();
    let mut watch = Watch::new(&file, "before".to_owned());
    assert_eq!(watch.now().unwrap(), "one");
    fs::write(&file, "two").unwrap();
    assert_eq!(next(&mut watch).await, "two");
}

/// A configuration that names the secret file `key`, watched since it was read.
fn with_secret(at: &Path) -> Watch {
    let text = "servers: {a: {command: x, env: {KEY: '${file:key}'}}}";
    let file = at.join("vary.yaml");
    fs::write(&file, text).unwrap();
    let secrets = SecretFiles::beside(&file);
    // A missing secret is an error of the configuration, and watched all the same.
    let _ = Source::new("vary.yaml", text)
        .with_secret_files(&secrets)
        .read(&|_| None);
    let mut watch = Watch::new(&file, text.to_owned());
    watch.follow_secrets(secrets.versions());
    watch
}

#[tokio::test]
async fn a_secret_file_is_watched_as_the_configuration_is() {
    let at = directory("secret");
    let key = at.join("key");
    for step in ["appears", "is written", "is replaced"] {
        let mut watch = with_secret(&at);
        let change = async {
            tokio::task::yield_now().await;
            match step {
                "is replaced" => {
                    fs::write(at.join("new"), step).unwrap();
                    fs::rename(at.join("new"), &key).unwrap();
                }
                _ => fs::write(&key, step).unwrap(),
            }
        };
        let (seen, ()) = tokio::join!(next(&mut watch), change);
        assert!(seen.contains("${file:key}"), "{step}: {seen}");
    }
    // Written again with the same content, it is no change; then it is gone.
    let mut watch = with_secret(&at);
    let change = async {
        tokio::task::yield_now().await;
        fs::write(&key, "is replaced").unwrap();
        fs::remove_file(&key).unwrap();
    };
    let (seen, ()) = tokio::join!(next(&mut watch), change);
    assert!(seen.contains("${file:key}"), "{seen}");
    // A change between reading and watching is not missed.
    let mut watch = with_secret(&at);
    fs::write(&key, "back").unwrap();
    assert!(next(&mut watch).await.contains("${file:key}"));
}

/// Windows PowerShell 5 writes UTF-16 at `vary config import FILE > vary.yaml`.
#[test]
fn utf_16_is_read_as_utf_8_is() {
    let directory = directory("encodings");
    let file = directory.join("vary.yaml");
    let text = "servers: {a: {command: \"ä😀\"}}\r\n";
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let read = |parts: &[&[u8]]| {
        fs::write(&file, parts.concat()).unwrap();
        mcp_vary_config::text(&file).map_err(|error| error.kind())
    };
    assert_eq!(read(&[text.as_bytes()]).unwrap(), text);
    assert_eq!(read(&[b"\xff\xfe", &little]).unwrap(), text);
    assert_eq!(read(&[b"\xfe\xff", &big]).unwrap(), text);
    assert_eq!(read(&[b"\xff\xfe"]).unwrap(), "");
    let invalid = Err(std::io::ErrorKind::InvalidData);
    assert_eq!(read(&[b"\xff\xfe", &little, b"x"]), invalid);
    assert_eq!(read(&[b"\xff\xfe\x00\xd8"]), invalid);
    assert_eq!(read(&[b"a\xff"]), invalid);
}
