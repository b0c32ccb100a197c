//! Strips the program of symbols and line tables, which are as large as its code, and lets it have each function once.
//!
//! Panic messages keep their file and line. To profile the program, build it with its symbols:
//! `GRIDFUSION_KEEP_SYMBOLS=1 cargo build --release`.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
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
        }
    }
}
