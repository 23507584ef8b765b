//! Commands for people to paste into a shell. Words may come from untrusted sources (a name, an argument of a pod, an answer of
//! the cloud), so each word is quoted and a shell expands none of them.

/// Joins the words, each quoted, to one command line.
pub fn command<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| quoted(word.as_ref())).collect();
    words.join(" ")
}

/// Quotes a word where a shell needs that.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@,+=".contains(letter);
    // zsh reads `=name` as the path of a program.
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_obeys_nothing_in_a_word() {
        let words = ["kubectl", "--namespace=shop", "a b", "$(id)", "it's `id`", "=ls", ""];
        assert_eq!(command(words), r"kubectl --namespace=shop 'a b' '$(id)' 'it'\''s `id`' '=ls' ''");
    }
}
