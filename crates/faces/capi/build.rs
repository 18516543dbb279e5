//! The soname: its number changes with the interface.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liblinerate.so.0");
}
