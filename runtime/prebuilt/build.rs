//! Tells the program for which platform it is built.

fn main() -> Result<(), std::env::VarError> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=PTC_TARGET={}", std::env::var("TARGET")?);
    Ok(())
}
