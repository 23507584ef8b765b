//! The language in which kinds are described.
//!
//! Fields are separated by white space. A field is `name`, a mark, a release, and a type:
//!
//! - mark: none = left out when empty, `*` = left out only when null, `!` = always shown;
//! - release: `@29` = known since 1.29;
//! - type: none = text; `:int`, `:flag`, `:time`, `:microtime`, `:intstr`, `:map`, `:any`; `{...}` = object,
//!   `={...}` = object that is one value in managed fields;
//!   `[]` atomic list, `[=]` set, `[a,b=X]` list keyed by `a` and `b` (`X` where it is
//!   absent), each followed by `{...}` for objects.

use super::{Field, ListKey, Presence, Scalar, Schema, Topology};

/// Reads the fields of an object.
///
/// # Errors
/// The text from which on it could not be understood.
pub(crate) fn parse(text: &str) -> Result<Schema, String> {
    let mut parser = Parser { rest: text };
    let fields = parser.fields()?;
    if parser.rest.is_empty() { Ok(Schema::Object(fields)) } else { Err(parser.rest.to_owned()) }
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, mark: char) -> bool {
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn word(&mut self) -> Result<String, String> {
        let end =
            self.rest.find(|character: char| !character.is_ascii_alphanumeric()).unwrap_or(self.rest.len());
        if end == 0 {
            return Err(self.rest.to_owned());
        }
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(word.to_owned())
    }

    fn fields(&mut self) -> Result<Vec<Field>, String> {
        let mut fields = Vec::new();
        self.skip_space();
        while !self.rest.is_empty() && !self.rest.starts_with('}') {
            fields.push(self.field()?);
            self.skip_space();
        }
        Ok(fields)
    }

    fn field(&mut self) -> Result<Field, String> {
        let name = self.word()?;
        let presence = if self.take('*') {
            Presence::Pointer
        } else if self.take('!') {
            Presence::Always
        } else {
            Presence::Optional
        };
        let since =
            if self.take('@') { self.word()?.parse().map_err(|_| format!("release of {name}"))? } else { 0 };
        Ok(Field { schema: self.schema()?, name, presence, since })
    }

    fn schema(&mut self) -> Result<Schema, String> {
        if self.take(':') {
            return Ok(match self.word()?.as_str() {
                "int" => Schema::Scalar(Scalar::Integer),
                "flag" => Schema::Scalar(Scalar::Flag),
                "time" => Schema::Scalar(Scalar::Time),
                "microtime" => Schema::Scalar(Scalar::MicroTime),
                "intstr" => Schema::Scalar(Scalar::IntegerOrText),
                "map" => Schema::Map,
                "any" => Schema::Anything,
                unknown => return Err(unknown.to_owned()),
            });
        }
        if self.take('[') {
            let topology = self.topology()?;
            let item = if self.rest.starts_with('{') { self.object()? } else { Schema::Scalar(Scalar::Text) };
            return Ok(Schema::List(Box::new(item), topology));
        }
        if self.take('=') {
            return Ok(match self.object()? {
                Schema::Object(fields) => Schema::AtomicObject(fields),
                other => other,
            });
        }
        if self.rest.starts_with('{') { self.object() } else { Ok(Schema::Scalar(Scalar::Text)) }
    }

    fn topology(&mut self) -> Result<Topology, String> {
        if self.take(']') {
            return Ok(Topology::Atomic);
        }
        if self.take('=') {
            return if self.take(']') { Ok(Topology::Set) } else { Err(self.rest.to_owned()) };
        }
        let mut keys = vec![self.list_key()?];
        while self.take(',') {
            keys.push(self.list_key()?);
        }
        if self.take(']') { Ok(Topology::Keyed(keys)) } else { Err(self.rest.to_owned()) }
    }

    fn list_key(&mut self) -> Result<ListKey, String> {
        let name = self.word()?;
        let default = if self.take('=') { Some(self.word()?) } else { None };
        Ok(ListKey { name, default })
    }

    fn object(&mut self) -> Result<Schema, String> {
        if !self.take('{') {
            return Err(self.rest.to_owned());
        }
        let fields = self.fields()?;
        if self.take('}') { Ok(Schema::Object(fields)) } else { Err(self.rest.to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_releases_and_lists_are_understood() {
        let schema =
            parse("ref={name} spec!{ports[port,protocol=TCP]{port!:int mode*@29} names[=] all[]}").unwrap();
        assert!(matches!(schema.field("ref").unwrap().schema, Schema::AtomicObject(_)));
        let spec = schema.field("spec").unwrap();
        assert_eq!(spec.presence, Presence::Always);
        let Schema::List(item, topology) = &spec.schema.field("ports").unwrap().schema else {
            panic!("a list")
        };
        let key = |name: &str, default: Option<&str>| ListKey {
            name: name.to_owned(),
            default: default.map(str::to_owned),
        };
        assert_eq!(*topology, Topology::Keyed(vec![key("port", None), key("protocol", Some("TCP"))]));
        let mode = item.field("mode").unwrap();
        assert_eq!((mode.presence, mode.since), (Presence::Pointer, 29));
        assert_eq!(
            spec.schema.field("names").unwrap().schema,
            Schema::List(Box::new(Schema::Scalar(Scalar::Text)), Topology::Set)
        );
    }

    #[test]
    fn a_description_that_is_wrong_names_the_place() {
        assert_eq!(parse("a{b:unknown}").unwrap_err(), "unknown");
        assert_eq!(parse("a{b").unwrap_err(), "");
    }
}
