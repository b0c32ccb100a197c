//! Strips the program of symbols and line tables, which are as large as its code.
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
    }
}
