//! Booleans in the notation of Go flags.

/// Reads a boolean.
pub(super) fn parse(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("{text:?} is not a boolean; write true or false")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_go_are_read_and_others_are_not() {
        assert_eq!((parse("T"), parse("0")), (Ok(true), Ok(false)));
        assert!(parse("yes").unwrap_err().contains("true or false"));
    }
}
