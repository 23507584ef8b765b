//! Lists of names, made short.

/// At most so many names, and how many more there are.
pub fn some_of<T: AsRef<str>>(names: &[T], most: usize) -> String {
    let named: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(most) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_counted() {
        assert_eq!(some_of(&["a", "b", "c"], 2), "a, b and 1 more");
        assert_eq!(some_of(&["a", "b"], 2), "a, b");
    }
}
