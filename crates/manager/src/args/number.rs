//! Numbers, with an error that names the valid ones.

/// Reads a port.
pub(super) fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "use a port from 0 to 65535".to_owned())
}

/// Reads a verbosity. klog takes any number; nothing is said beyond 10.
pub(super) fn verbosity(text: &str) -> Result<u8, String> {
    text.parse().map_err(|_| "use a number from 0 to 10".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_of_the_kind_is_refused_with_the_range() {
        assert_eq!((port("10258"), verbosity("4")), (Ok(10258), Ok(4)));
        assert!(port("99999").unwrap_err().contains("65535") && port("http").is_err());
        assert!(verbosity("-1").unwrap_err().contains("0 to 10"));
    }
}
