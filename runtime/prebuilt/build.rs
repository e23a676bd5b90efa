//! Passes the platform of the build to the program.

fn main() -> Result<(), std::env::VarError> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=PTC_TARGET={}", std::env::var("TARGET")?);
    Ok(())
}
