//! Sets `--cfg fuzzing` for this crate, as cargo-fuzz does, so that plain cargo can build it.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(fuzzing)");
    println!("cargo::rustc-cfg=fuzzing");
}
