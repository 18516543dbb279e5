//! The soname, and the functions with a variable number of arguments, which Rust cannot define.

fn main() {
    // Programs that link to libiperf.so.0 of the original find this library by its name (ld.so(8)).
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libiperf.so.0");
    println!("cargo::rerun-if-changed=src/variadic.c");
    cc::Build::new()
        .file("src/variadic.c")
        .warnings(true)
        .compile("linerate_libiperf_variadic");
}
