//! Texts for messages: printable forms of untrusted values, since a name, an annotation or an answer of the cloud must not control a
//! terminal; and shortened lists of names.

use std::fmt::Write as _;

/// Returns the text with control and invisible characters escaped as in JSON, `\u001b`, so that JSON in the text stays
/// valid.
pub fn printable(text: &str) -> String {
    shown(text, |_| false)
}

/// Like [`printable`], but keeps line feeds.
pub fn printable_lines(text: &str) -> String {
    shown(text, |character| character == '\n')
}

/// Joins at most `most` names, and counts the others.
pub fn some_of<T: AsRef<str>>(names: &[T], most: usize) -> String {
    let named: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(most) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

fn shown(text: &str, is_allowed: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_treacherous(character) && !is_allowed(character) {
            // Writing to a String cannot fail.
            let _ = write!(shown, "\\u{:04x}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Whether a character is a control character, or reverses, hides or joins its neighbours.
fn is_treacherous(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_spelled_out() {
        assert_eq!(printable("a\u{1b}[31mb\nc\u{202e}d é"), "a\\u001b[31mb\\u000ac\\u202ed é");
        assert_eq!(printable_lines("a\u{1b}[31mb\nc\r"), "a\\u001b[31mb\nc\\u000d");
    }

    #[test]
    fn long_lists_are_counted() {
        assert_eq!(some_of(&["a", "b", "c"], 2), "a, b and 1 more");
        assert_eq!(some_of(&["a", "b"], 2), "a, b");
    }
}
