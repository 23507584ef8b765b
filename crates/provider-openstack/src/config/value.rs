//! Parses the value types of the dialect.

/// Parses a bool: `true`, `yes`, `on`, `1` and `false`, `no`, `off`, `0` in any case.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// Parses an integer: decimal with any number of leading zeros, or hexadecimal after `0x`; with an optional sign and surrounding
/// blanks.
pub fn parse_integer(text: &str) -> Option<i64> {
    let text = text.trim();
    let (negative, magnitude) = match text.as_bytes().first()? {
        b'-' => (true, parse_digits(&text[1..])?),
        // The dialect accepts a plus sign before decimal digits only.
        b'+' => (false, parse_decimal(&text[1..])?),
        _ => (false, parse_digits(text)?),
    };
    if negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Parses like [`parse_integer`], without a sign.
pub fn parse_unsigned(text: &str) -> Option<u64> {
    parse_digits(text.trim())
}

fn parse_digits(digits: &str) -> Option<u64> {
    let Some(hexadecimal) = digits.strip_prefix("0x") else { return parse_decimal(digits) };
    // The dialect allows underscores between hexadecimal digits only.
    let separated_well = hexadecimal.split('_').skip(1).all(|part| !part.is_empty());
    let plain = hexadecimal.replace('_', "");
    let all_digits = plain.bytes().all(|byte| byte.is_ascii_hexdigit());
    if separated_well && all_digits { u64::from_str_radix(&plain, 16).ok() } else { None }
}

fn parse_decimal(digits: &str) -> Option<u64> {
    // The standard parser would accept another sign.
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}
