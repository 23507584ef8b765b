//! Texts as Go writes them: quoted strings, printed maps, complaints about broken JSON. Clients show them to users.

use std::fmt::Write as _;

use serde_json::Value;

/// A string as Go's `%q` writes it.
pub(crate) fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// A value as Go's `%v` prints decoded JSON: `map[a:1 b:[x y]]`, keys sorted.
pub(crate) fn print(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(print).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let mut fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{key}:{}", print(value))).collect();
            fields.sort();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// A list of strings as Go's `%#v` prints it: `[]string{"a", "b"}`.
pub(crate) fn string_list(items: &[&str]) -> String {
    let items: Vec<String> = items.iter().map(|item| quote(item)).collect();
    format!("[]string{{{}}}", items.join(", "))
}

/// What Go's JSON scanner says about a text that is no JSON; `None` for valid JSON.
pub(crate) fn json_complaint(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner { rest: text, position: 0 };
    let outcome = scanner.value().and_then(|()| {
        scanner.skip_space();
        scanner.peek().map_or(Ok(()), |byte| Err(complaint(byte, "after top-level value")))
    });
    outcome.err()
}

fn complaint(byte: u8, context: &str) -> String {
    let mut shown = String::new();
    let character = char::from(byte);
    match character {
        '\'' => shown.push_str(r"\'"),
        '"' => shown.push('"'),
        '\u{7f}'..='\u{a0}' => {
            let _ = write!(shown, "\\u{:04x}", u32::from(byte));
        }
        _ => {
            let _ = write!(shown, "{}", character.escape_default());
        }
    }
    format!("invalid character '{shown}' {context}")
}

struct Scanner<'a> {
    rest: &'a [u8],
    position: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.rest.get(self.position).copied()
    }

    fn next(&mut self) -> Result<u8, String> {
        let byte = self.peek().ok_or_else(|| "unexpected end of JSON input".to_owned())?;
        self.position += 1;
        Ok(byte)
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.position += 1;
        }
    }

    fn value(&mut self) -> Result<(), String> {
        self.skip_space();
        match self.next()? {
            b'{' => self.object(),
            b'[' => self.array(),
            b'"' => self.string(),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            b'-' => match self.next()? {
                b'0'..=b'9' => self.number(),
                byte => Err(complaint(byte, "in numeric literal")),
            },
            b'0'..=b'9' => self.number(),
            byte => Err(complaint(byte, "looking for beginning of value")),
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for expected in word.bytes().skip(1) {
            let byte = self.next()?;
            if byte != expected {
                let context = format!("in literal {word} (expecting '{}')", char::from(expected));
                return Err(complaint(byte, &context));
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), String> {
        while matches!(self.peek(), Some(b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
            self.position += 1;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), String> {
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => {
                    self.next()?;
                }
                byte if byte < 0x20 => return Err(complaint(byte, "in string literal")),
                _ => {}
            }
        }
    }

    fn object(&mut self) -> Result<(), String> {
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.position += 1;
            return Ok(());
        }
        loop {
            self.skip_space();
            match self.next()? {
                b'"' => self.string()?,
                byte => return Err(complaint(byte, "looking for beginning of object key string")),
            }
            self.skip_space();
            match self.next()? {
                b':' => self.value()?,
                byte => return Err(complaint(byte, "after object key")),
            }
            self.skip_space();
            match self.next()? {
                b',' => {}
                b'}' => return Ok(()),
                byte => return Err(complaint(byte, "after object key:value pair")),
            }
        }
    }

    fn array(&mut self) -> Result<(), String> {
        self.skip_space();
        if self.peek() == Some(b']') {
            self.position += 1;
            return Ok(());
        }
        loop {
            self.value()?;
            self.skip_space();
            match self.next()? {
                b',' => {}
                b']' => return Ok(()),
                byte => return Err(complaint(byte, "after array element")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("{not json", Some("invalid character 'n' looking for beginning of object key string"))]
    #[case("not a token", Some("invalid character 'o' in literal null (expecting 'u')"))]
    #[case("{\"a\":", Some("unexpected end of JSON input"))]
    #[case("[1 2]", Some("invalid character '2' after array element"))]
    #[case("{} x", Some("invalid character 'x' after top-level value"))]
    #[case(r#"{"a": [1.5e3, "x\"y", null, true, {}]}"#, None)]
    fn broken_json_is_described_as_go_does(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(json_complaint(text.as_bytes()).as_deref(), expected);
    }

    #[test]
    fn values_are_printed_as_go_does() {
        let value = json!({"b": [{"ip": "10.0.0.1", "n": 1}], "a": null});
        assert_eq!(print(&value), "map[a:<nil> b:[map[ip:10.0.0.1 n:1]]]");
        assert_eq!(string_list(&["x", "y"]), r#"[]string{"x", "y"}"#);
    }
}
