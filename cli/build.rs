//! Tells the program its commit, and makes it small: without symbols and line tables, which are as large as its code, and with each
//! function once.
//!
//! Panic messages keep their file and line. To profile the program, build it with its symbols:
//! `GRIDFUSION_KEEP_SYMBOLS=1 cargo build --release`.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=GRIDFUSION_TARGET={}", env::var("TARGET").unwrap_or_default());
    if let Some(commit) = commit() {
        println!("cargo:rustc-env=GRIDFUSION_COMMIT={commit}");
    }
    strip();
}

/// Returns the commit that the sources are of: one that a package names, or that of the repository they are in.
fn commit() -> Option<String> {
    println!("cargo:rerun-if-env-changed=GRIDFUSION_COMMIT");
    if let Ok(given) = env::var("GRIDFUSION_COMMIT") {
        return Some(given);
    }
    // `cargo package` writes this file.
    if let Ok(packed) = fs::read_to_string(".cargo_vcs_info.json") {
        let (_, commit) = packed.split_once("\"sha1\": \"")?;
        return Some(commit.split_once('"')?.0.to_owned());
    }
    // The repository may be one that has a copy of these sources.
    if git(&["rev-parse", "--show-prefix"])? != "cli/" {
        return None;
    }
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo:rerun-if-changed={log}");
    }
    git(&["rev-parse", "HEAD"])
}

/// Runs Git, and returns what it prints; `None` if it is missing or fails.
fn git(words: &[&str]) -> Option<String> {
    let done = Command::new("git").args(words).output().ok().filter(|it| it.status.success())?;
    Some(String::from_utf8(done.stdout).ok()?.trim().to_owned())
}

/// Asks the linker for a small program.
fn strip() {
    println!("cargo:rerun-if-env-changed=GRIDFUSION_KEEP_SYMBOLS");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|it| it == value);
    let keeps = env::var_os("GRIDFUSION_KEEP_SYMBOLS").is_some();
    // Other systems keep symbols apart from the program, or have linkers with other options.
    if is("CARGO_CFG_TARGET_OS", "linux") && is("PROFILE", "release") && !keeps {
        println!("cargo:rustc-link-arg-bins=-s");
        // Generic functions of different types are often the same code. Rust links with LLD on this system, unless told otherwise.
        let has_own_linker = env::var("CARGO_ENCODED_RUSTFLAGS")
            .is_ok_and(|it| it.contains("link"))
            || env::var_os("RUSTC_LINKER").is_some();
        if is("TARGET", "x86_64-unknown-linux-gnu") && !has_own_linker {
            println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
            if is("HOST", "x86_64-unknown-linux-gnu") && c_library().is_some_and(|it| it >= (2, 36))
            {
                // Addresses that the loader adds up take 5 MB less. Older loaders cannot read this form, and refuse the program, as
                // they may refuse any program that is linked with a newer library than theirs.
                println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
            }
        }
    }
}

/// Returns the version of the GNU C library of this machine; `None` if there is another one.
fn c_library() -> Option<(u32, u32)> {
    let done = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(done.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
