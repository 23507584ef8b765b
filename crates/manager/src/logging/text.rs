//! Records as text: time, level, module and message, then `key=value` for all other fields of a record and its spans.
//! Values with spaces or signs are quoted, so that parsers of logfmt read them.

use std::fmt::{self, Write as _};

use jiff::Timestamp;
use openstack_ccm_core::text::printable;
use serde_json::{Map, Value};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::fields;

/// Writes each record as one line.
pub(super) struct Text {
    pub(super) names_modules: bool,
}

impl<S, N> FormatEvent<S, N> for Text
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let (message, fields) = fields::of(context, event);
        write!(writer, "{:.6} ", Timestamp::now())?;
        level(&mut writer, *metadata.level())?;
        if self.names_modules {
            write!(writer, " {}:", metadata.target())?;
        }
        write!(writer, " {}", printable(&format!("{message}{}", pairs(&fields))))?;
        writer.write_char('\n')
    }
}

fn level(writer: &mut Writer<'_>, level: Level) -> fmt::Result {
    let colour = match level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        Level::DEBUG => 34,
        Level::TRACE => 35,
    };
    if writer.has_ansi_escapes() {
        write!(writer, "\u{1b}[{colour}m{level:>5}\u{1b}[0m")
    } else {
        write!(writer, "{level:>5}")
    }
}

/// ` key=value key="another value"`
fn pairs(fields: &Map<String, Value>) -> String {
    let mut text = String::new();
    for (key, value) in fields {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        // Writing to a String cannot fail.
        let _ = if is_plain(&value) {
            write!(text, " {key}={value}")
        } else {
            write!(text, " {key}={}", Value::from(value))
        };
    }
    text
}

/// Whether logfmt reads a value as one without quotes.
fn is_plain(value: &str) -> bool {
    let plain = |letter: char| !letter.is_whitespace() && !letter.is_control() && !"\"=\\".contains(letter);
    !value.is_empty() && value.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_a_parser_of_logfmt_would_split_are_quoted() {
        let fields = json!({"a": "default/web", "b": "2 settings are invalid: x=\"y\"", "c": 3, "d": "", "e": "two\nlines"});
        let text = pairs(fields.as_object().unwrap());
        assert_eq!(text, r#" a=default/web b="2 settings are invalid: x=\"y\"" c=3 d="" e="two\nlines""#);
    }
}
