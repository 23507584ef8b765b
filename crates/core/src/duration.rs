//! Durations as written in flags and configuration files.

use std::time::Duration;

/// Why a text is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// A number without a unit.
    #[error("the value has no unit")]
    MissingUnit,
    /// Below zero.
    #[error("it is negative")]
    Negative,
    /// More than 2^63-1 nanoseconds, about 292 years.
    #[error("it is too long")]
    TooLong,
    /// Anything else.
    #[error("the value is not a duration")]
    Malformed,
}

/// Parses a duration in Go's form: numbers with units, such as `5s`, `1m30s`, `1.5h`, `500ms`, in any order; `0` alone
/// needs no unit. Units are `ns`, `us` (or `µs`), `ms`, `s`, `m` and `h`.
///
/// # Errors
/// What is wrong with the text. A negative duration is an error too, as no setting takes one.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        Some(_) | None => (false, text),
    };
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(DurationError::Malformed);
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (nanoseconds, behind) = duration_part(rest)?;
        total = total
            .checked_add(nanoseconds)
            .filter(|sum| i64::try_from(*sum).is_ok())
            .ok_or(DurationError::TooLong)?;
        rest = behind;
    }
    if negative && total > 0 { Err(DurationError::Negative) } else { Ok(Duration::from_nanos(total)) }
}

/// Parses one number with its unit; returns the nanoseconds and the rest of the text.
fn duration_part(text: &str) -> Result<(u64, &str), DurationError> {
    let (whole, behind) = split_digits(text);
    let (fraction, behind) = match behind.strip_prefix('.') {
        Some(behind) => split_digits(behind),
        None => ("", behind),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(DurationError::Malformed);
    }
    let unit_length = behind.find(|next: char| next == '.' || next.is_ascii_digit()).unwrap_or(behind.len());
    let (unit, behind) = behind.split_at(unit_length);
    let nanoseconds_per_unit: u64 = match unit {
        "" => return Err(DurationError::MissingUnit),
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(DurationError::Malformed),
    };
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| DurationError::TooLong)? };
    let fraction = fraction_of(fraction, nanoseconds_per_unit);
    let nanoseconds = whole.checked_mul(nanoseconds_per_unit).and_then(|whole| whole.checked_add(fraction));
    Ok((nanoseconds.ok_or(DurationError::TooLong)?, behind))
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|next: char| !next.is_ascii_digit()).unwrap_or(text.len()))
}

/// Converts the digits after the decimal point to nanoseconds, rounded down.
fn fraction_of(digits: &str, nanoseconds_per_unit: u64) -> u64 {
    // The 18th digit is below one nanosecond even for hours.
    let (numerator, denominator) =
        digits.bytes().take(18).fold((0_u128, 1_u128), |(numerator, denominator), digit| {
            (numerator * 10 + u128::from(digit - b'0'), denominator * 10)
        });
    u64::try_from(u128::from(nanoseconds_per_unit) * numerator / denominator).unwrap_or(u64::MAX)
}
