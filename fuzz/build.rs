//! Sets `--cfg fuzzing` for this crate, as cargo-fuzz does: plain cargo builds the targets too.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(fuzzing)");
    println!("cargo::rustc-cfg=fuzzing");
}
