//! Words put together.

use std::fmt::Display;

/// Words with a separator between them; empty without words.
pub fn joined<T: Display>(words: impl IntoIterator<Item = T>, separator: &str) -> String {
    let mut text = String::new();
    for (place, word) in words.into_iter().enumerate() {
        if place > 0 {
            text.push_str(separator);
        }
        text.push_str(&word.to_string());
    }
    text
}
