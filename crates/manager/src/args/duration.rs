//! Durations in the notation of Go flags: `15s`, `1m30s`, `500ms`, `1.5h`, `0`.

use std::time::Duration;

use openstack_ccm_core::duration;

/// Reads a duration.
///
/// # Errors
/// A message that names the expected form.
pub fn parse(text: &str) -> Result<Duration, String> {
    duration::parse(text).map_err(|_| {
        format!("{text:?} is not a duration; write a number with a unit, for example 15s, 1m30s or 500ms")
    })
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
    fn anything_else_is_refused_with_an_example() {
        for text in ["", "5", "-5s", "5x"] {
            assert!(parse(text).is_err_and(|message| message.contains("15s")), "{text}");
        }
    }
}
