//! `cargo xtask dist`: the files by which Vary is installed, from one binary for each platform.

mod archive;
mod chart;
mod deb;
mod install;
mod npm;
mod oci;
mod platform;
mod release;
mod sbom;
mod servers;
mod six_commands;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use self::archive::{Compression, Entry, gzip, hex_digest, tar};
use self::platform::Platform;
use self::release::{Binary, Release};
use crate::outcome::Outcome;
use crate::workspace::Workspace;
use crate::{cargo, process, release_build};

/// Pack Vary for each way to install it: archive, npm, PyPI, Debian, container, Helm
///
/// Writes to target/packages: an archive with man pages and completions, an npm package, a wheel, a Debian package, an
/// OCI image layout, a Helm chart, a bill of materials (CycloneDX) and SHA256SUMS. Unless a binary is given, it builds one as
/// releases have it, which takes most of an hour on two cores. The image is packed only for the platform of this machine, whose C library it gets.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    cargo xtask dist\n  \
    cargo xtask dist --binary x86_64-unknown-linux-gnu=a/vary --binary aarch64-apple-darwin=b/vary")]
pub(crate) struct Dist {
    /// A binary that is built already; may be repeated for several platforms
    #[arg(long = "binary", value_name = "TRIPLE=FILE")]
    binaries: Vec<String>,
    /// The directory of the files
    #[arg(long, value_name = "DIR", default_value = "target/packages")]
    out: PathBuf,
    /// Install each file into an empty place below target/xtask, and run it there
    #[arg(long)]
    install: bool,
}

/// Packs the binaries that the options name, or one that is built for this machine.
///
/// # Errors
///
/// If something does not compile, or a file cannot be written.
pub(crate) fn dist(workspace: &Workspace, options: &Dist) -> Result<(), String> {
    let mut binaries = Vec::new();
    for named in &options.binaries {
        let (triple, path) = named
            .split_once('=')
            .ok_or_else(|| format!("--binary `{named}`: write it as TRIPLE=FILE"))?;
        binaries.push(Binary::read(Platform::of(triple)?, Path::new(path))?);
    }
    if binaries.is_empty() {
        let built = release_build::vary(workspace, &workspace.path("target/dist-build"))?;
        binaries.push(Binary::read(Platform::current()?, &built)?);
    }
    if options.install && binaries.len() > 1 {
        return Err("--install takes the binary of this machine alone".to_owned());
    }
    for binary in &binaries {
        let is_measured = binary.platform.triple == MEASURED;
        let largest = if is_measured {
            LARGEST_BINARY
        } else {
            LARGEST_ELSEWHERE
        };
        is_small(&binary.path, largest)?;
    }
    let out = workspace.path("").join(&options.out);
    let names = pack(workspace, &binaries, &out, Compression::best())?;
    for name in &names {
        println!("{}", out.join(name).display());
    }
    let image = names.iter().find(|name| name.ends_with(".tar"));
    image.map_or(Ok(()), |name| is_small(&out.join(name), LARGEST_IMAGE))?;
    if !options.install {
        return Ok(());
    }
    let installed = install::all(workspace, &out, &names);
    println!("{}", installed.report());
    match installed.failed() {
        0 => Ok(()),
        failed => Err(format!("{failed} of the files do not work")),
    }
}

/// Refuses a file that takes long to load.
fn is_small(path: &Path, largest: u64) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", path.display());
    let size = fs::metadata(path).map_err(failed)?.len();
    if size > largest {
        return Err(format!(
            "{} has {size} bytes, and at most {largest} are allowed; find what has grown",
            path.display()
        ));
    }
    Ok(())
}

/// The phase of `cargo xtask test`: what is packed of the binary that the tests use can be installed into an empty
/// place, and runs there; the tutorial works with the npm package and with the wheel. Their files are removed again.
pub(crate) fn phase(workspace: &Workspace) -> Outcome {
    let scratch = || {
        let built = cargo::binary(workspace, "vary")?;
        let directory = workspace.scratch("dist")?;
        empty(&directory)?;
        Ok::<_, String>((built, directory))
    };
    let (built, directory) = match scratch() {
        Ok(found) => found,
        Err(error) => return Outcome::failure(error),
    };
    let mut outcome = check(workspace, &built, &directory).unwrap_or_else(Outcome::failure);
    if let Err(error) = fs::remove_dir_all(&directory) {
        let left = format!("cannot remove {}: {error}", directory.display());
        outcome.fail(left);
    }
    outcome
}

/// Packs `built` below `directory`, and installs each file.
fn check(workspace: &Workspace, built: &Path, directory: &Path) -> Result<Outcome, String> {
    let program = directory.join("vary");
    // The symbols of a binary without optimisation are a third of it.
    let mut strip = process::command("strip");
    strip.arg("-o").arg(&program).arg(built);
    process::run(&mut strip, &workspace.scratch("dist.log")?, LIMIT)?;
    let binary = Binary::read(Platform::current()?, &program)?;
    let out = directory.join("files");
    let names = pack(
        workspace,
        std::slice::from_ref(&binary),
        &out,
        Compression::fast(),
    )?;
    // All mostly wait for programs that start.
    thread::scope(|scope| {
        let tutorials = scope.spawn(|| six_commands::check(workspace, &out, &names));
        let servers = scope.spawn(|| servers::check(workspace, &out, &names, &program));
        let mut outcome = install::all(workspace, &out, &names);
        for part in [tutorials, servers] {
            outcome.add(part.join().map_err(|_| "a part panicked, see above")?);
        }
        Ok(outcome)
    })
}

/// Makes an empty directory below target/xtask, whatever it had.
fn empty(directory: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot empty {}: {error}", directory.display());
    if directory.exists() {
        fs::remove_dir_all(directory).map_err(failed)?;
    }
    fs::create_dir_all(directory).map_err(failed)
}

/// Writes all files, and returns their names.
fn pack(
    workspace: &Workspace,
    binaries: &[Binary],
    out: &Path,
    compression: Compression,
) -> Result<Vec<String>, String> {
    let runs_here = binaries.iter().find(|binary| binary.is_for_this_machine());
    let runs_here =
        runs_here.ok_or("no binary runs on this machine, which has to write the man pages")?;
    let release = Release::read(workspace, &runs_here.path, compression)?;
    let mut files = Vec::new();
    for binary in binaries {
        files.push(archive(&release, binary)?);
        files.push(wheel::package(&release, binary)?);
        files.extend(deb::package(&release, binary)?);
        files.extend(oci::package(&release, binary)?);
        let bill = sbom::bill(workspace, binary.platform.triple)?;
        files.push((
            format!("vary-{}-{}.cdx.json", release.version, binary.platform),
            bill.into_bytes(),
        ));
    }
    let npm = npm::package(&release, binaries)?;
    files.push((format!("mcp-vary-cli-{}.tgz", release.version), npm));
    files.push(chart::package(workspace, &release)?);
    let sums = files
        .iter()
        .map(|(name, data)| format!("{}  {name}\n", hex_digest(data)));
    let sums: String = sums.collect();
    files.push((SUMS.to_owned(), sums.into_bytes()));
    clear(out)?;
    for (name, data) in &files {
        let path = out.join(name);
        fs::write(&path, data)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(files.into_iter().map(|(name, _)| name).collect())
}

/// Makes an empty directory of `out`: removes the files of an earlier release, and refuses any other.
fn clear(out: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot use {}: {error}", out.display());
    fs::create_dir_all(out).map_err(failed)?;
    let sums = fs::read_to_string(out.join(SUMS)).unwrap_or_default();
    let known: Vec<&str> = sums
        .lines()
        .filter_map(|line| line.split("  ").nth(1))
        .collect();
    let mut paths = Vec::new();
    for file in fs::read_dir(out).map_err(failed)? {
        let file = file.map_err(failed)?;
        let name = file.file_name();
        let is_known = name
            .to_str()
            .is_some_and(|name| name == SUMS || known.contains(&name));
        if !is_known {
            return Err(format!(
                "{} has other files, such as {}; choose another --out",
                out.display(),
                name.display()
            ));
        }
        paths.push(file.path());
    }
    paths.iter().try_for_each(fs::remove_file).map_err(failed)
}

/// The archive for those who install by hand.
fn archive(release: &Release, binary: &Binary) -> Result<(String, Vec<u8>), String> {
    let name = format!("vary-{}-{}", release.version, binary.platform);
    let mut entries = vec![Entry::program("vary", binary.data.clone())];
    entries.extend(release.texts.iter().cloned());
    entries.extend(release.for_servers.iter().cloned());
    entries.extend(release.pages.iter().map(|page| page.below("man/man1")));
    let scripts = release.completions.iter();
    entries
        .extend(scripts.map(|(shell, script)| {
            Entry::new(format!("completions/vary.{shell}"), script.clone())
        }));
    let entries: Vec<Entry> = entries.iter().map(|entry| entry.below(&name)).collect();
    Ok((
        format!("{name}.tar.gz"),
        gzip(&tar(&entries)?, release.compression)?,
    ))
}

/// In bytes. `nm --size-sort --demangle` shows what is in the program of `cargo build --profile dist`, which has symbols.
const LARGEST_BINARY: u64 = 32_000_000;
/// The platform whose binary was weighed.
const MEASURED: &str = "x86_64-unknown-linux-gnu";
/// Others are linked by other tools, and macOS has no profile.
const LARGEST_ELSEWHERE: u64 = 38_000_000;

/// In bytes, compressed.
const LARGEST_IMAGE: u64 = 20_000_000;

const SUMS: &str = "SHA256SUMS";

/// Enough for npm, pip and `strip` on a slow machine.
const LIMIT: Duration = Duration::from_secs(120);
