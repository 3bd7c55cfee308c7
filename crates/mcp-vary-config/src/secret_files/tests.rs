use std::fs;

use super::*;

/// A directory for one test, and the secret files of a configuration in it.
fn directory(name: &str) -> (PathBuf, SecretFiles) {
    let process = std::process::id();
    let directory = std::env::temp_dir().join(format!("vary-secrets-{process}-{name}"));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    let secrets = SecretFiles::new(&directory);
    (directory, secrets)
}

fn sentence(read: Result<String, Fault>) -> String {
    let (what, fix) = read.unwrap_err();
    format!("{what}; {fix}")
}

#[test]
fn a_value_is_the_content_without_one_line_break() {
    let (directory, secrets) = directory("content");
    for (name, content, value) in [
        ("plain", "s3cret", "s3cret"),
        ("unix", "s3cret\n", "s3cret"),
        ("windows", "s3cret\r\n", "s3cret"),
        ("two", "s3cret\n\n", "s3cret\n"),
        ("return", "s3cret\r", "s3cret\r"),
        ("empty", "", ""),
        ("unicode", "schlüssel\n", "schlüssel"),
    ] {
        fs::write(directory.join(name), content).unwrap();
        assert_eq!(secrets.file(name).as_deref(), Ok(value), "{name}");
    }
    let absolute = directory.join("unix");
    assert_eq!(
        secrets.file(absolute.to_str().unwrap()).as_deref(),
        Ok("s3cret")
    );
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_the_fix_and_without_its_content() {
    let (directory, secrets) = directory("faults");
    fs::write(directory.join("long"), "TOPSECRET".repeat(8000)).unwrap();
    fs::write(directory.join("binary"), b"TOPSECRET\xff").unwrap();
    fs::write(directory.join("nul"), "TOPSECRET\0").unwrap();
    let shown = directory.display();
    for (name, expected) in [
        (
            "none",
            format!("needs `none`, which does not exist; write the secret to {shown}/none"),
        ),
        (
            ".",
            "needs `.`, which is not a regular file; name a file with the secret".to_owned(),
        ),
        (
            "long",
            "needs `long`, which has more than 64 KiB; write only the secret into the file"
                .to_owned(),
        ),
        (
            "binary",
            "needs `binary`, which is not UTF-8 text; write it as text, base64 for example"
                .to_owned(),
        ),
        (
            "nul",
            "needs `nul`, which is not UTF-8 text; write it as text, base64 for example".to_owned(),
        ),
        (
            "",
            "has `${file:}`, which names no file; write `${file:PATH}`".to_owned(),
        ),
    ] {
        assert_eq!(sentence(secrets.file(name)), expected);
    }
    let exact = "x".repeat(MAX_SECRET_FILE);
    fs::write(directory.join("exact"), &exact).unwrap();
    assert_eq!(secrets.file("exact"), Ok(exact));
    assert_eq!(format!("{secrets:?}"), "SecretFiles(6)");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_credential_is_a_file_in_the_directory_of_credentials() {
    let (directory, secrets) = directory("credentials");
    fs::write(directory.join("api-key"), "s3cret\n").unwrap();
    let given = directory.to_str().unwrap().to_owned();
    let set = |name: &str| (name == "CREDENTIALS_DIRECTORY").then(|| given.clone());
    assert_eq!(secrets.credential("api-key", &set).as_deref(), Ok("s3cret"));
    assert_eq!(
        sentence(secrets.credential("api-key", &|_| None)),
        "needs the credential `api-key`, but `CREDENTIALS_DIRECTORY` is not set; add `LoadCredential=api-key:PATH` to \
         the systemd unit, or write `${file:PATH}`"
    );
    assert_eq!(
        sentence(secrets.credential("other", &set)),
        format!(
            "needs the credential `other`, which does not exist; write the secret to {}/other",
            directory.display()
        )
    );
    for name in [
        "",
        "../api-key",
        "a/b",
        "/etc/passwd",
        "..",
        ".hidden",
        "a b",
        "a\\b",
    ] {
        assert_eq!(
            sentence(secrets.credential(name, &set)),
            "has `${credential:...}` with a name that no credential can have; write the name of `LoadCredential=`, \
             without a path; for a path write `${file:PATH}`",
            "{name}"
        );
    }
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn the_number_of_files_and_their_total_are_bounded() {
    let (directory, secrets) = directory("bounds");
    fs::write(directory.join("large"), "x".repeat(MAX_SECRET_FILE)).unwrap();
    for _ in 0..MAX_TOTAL / MAX_SECRET_FILE {
        assert!(secrets.file("large").is_ok());
    }
    assert_eq!(
        sentence(secrets.file("large")),
        "brings the values of all files to more than 8 MiB; name large files less often"
    );
    let many = SecretFiles::new(&directory);
    for number in 0..MAX_SECRET_FILES {
        assert!(sentence(many.file(&number.to_string())).contains("does not exist"));
    }
    assert!(sentence(many.file("256")).contains("one more file than the 256"));
    // One that was named before is not another one.
    assert!(sentence(many.file("255")).contains("does not exist"));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_file_is_read_once_and_its_changes_are_noticed_by_digest() {
    let (directory, secrets) = directory("versions");
    let path = directory.join("token");
    fs::write(&path, "one").unwrap();
    assert_eq!(secrets.file("token").as_deref(), Ok("one"));
    let versions = secrets.versions();
    assert_eq!(versions.now(), versions);
    fs::write(&path, "two").unwrap();
    assert_eq!(
        secrets.file("token").as_deref(),
        Ok("one"),
        "one value for one reading"
    );
    assert_ne!(versions.now(), versions);
    assert!(!versions.now().lacks_one_of(&versions));
    fs::remove_file(&path).unwrap();
    assert!(versions.now().lacks_one_of(&versions));
    assert!(!versions.lacks_one_of(&versions.now()));
    assert!(!format!("{versions:?}").contains("Ok("));
    fs::remove_dir_all(directory).unwrap();
}
