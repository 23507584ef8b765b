//! Durations in the notation of Go flags: `15s`, `1m30s`, `500ms`, `1.5h`, `0`.

use std::time::Duration;

/// Reads a duration.
///
/// # Errors
/// A text that names the form when it is not one.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("{text:?} is not a duration; write a number with a unit, for example 15s, 1m30s or 500ms");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let number: f64 = rest[..number_end].parse().map_err(|_| wrong())?;
        let unit_end = rest[number_end..]
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .map_or(rest.len(), |index| number_end + index);
        let seconds = match &rest[number_end..unit_end] {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return Err(wrong()),
        };
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = &rest[unit_end..];
    }
    if text.is_empty() { Err(wrong()) } else { Ok(total) }
}

/// Writes a duration as Go does: `15s`, `5m0s`, `1h30m0s`, `500ms`.
pub fn format(duration: Duration) -> String {
    let (seconds, part) = (duration.as_secs(), duration.subsec_nanos());
    if seconds == 0 && part > 0 {
        let (unit, factor) = match part {
            1_000_000.. => ("ms", 1e6),
            1_000.. => ("µs", 1e3),
            _ => ("ns", 1.0),
        };
        return format!("{}{unit}", f64::from(part) / factor);
    }
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    // A fraction of less than ten digits after a whole number below 60 is exact enough for nanoseconds.
    let rest = Duration::new(seconds % 60, part).as_secs_f64();
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest}s"),
        _ => format!("{hours}h{minutes}m{rest}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_go_writes_them() {
        for text in ["0s", "15s", "5m0s", "1h30m0s", "500ms", "1.5s", "12h0m0s"] {
            assert_eq!(format(parse(text).unwrap()), text);
        }
    }

    #[test]
    fn notations_of_go_are_read() {
        for (text, milliseconds) in
            [("15s", 15_000), ("1m30s", 90_000), ("500ms", 500), ("1.5h", 5_400_000), ("0", 0)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_an_example() {
        for text in ["", "5", "s", "5x", "-5s", "5s3", "..s", "é"] {
            assert!(parse(text).is_err_and(|message| message.contains("15s")), "{text}");
        }
    }
}
