//! The name that programs look for at run time: that of the interface, whatever the file is called.

fn main() {
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libfairpace_fsocket.so.{major}");
    println!("cargo::rerun-if-changed=build.rs");
}
