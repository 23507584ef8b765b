//! Labels of where a server runs.

use openstack_ccm_core::instance::label::MAX_VALUE_LENGTH;

/// The hypervisor of a server, as OCCM names it.
pub(super) const HOST_LABEL: &str = "topology.openstack.org/host-id";

/// Returns an availability zone as a label value: every sequence of invalid characters becomes one `-`; `None` if nothing is left.
pub(super) fn zone(text: &str) -> Option<String> {
    let mut clean = String::new();
    for character in text.chars() {
        if character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.') {
            clean.push(character);
        } else if !clean.ends_with('\u{0}') {
            clean.push('\u{0}');
        }
    }
    let clean = clean.replace('\u{0}', "-");
    let edge = |character: char| matches!(character, '-' | '_' | '.');
    let mut clean = clean.trim_matches(edge).to_owned();
    clean.truncate(MAX_VALUE_LENGTH);
    // Truncation may leave such a character at the end, which labels do not allow.
    let clean = clean.trim_end_matches(edge);
    (!clean.is_empty()).then(|| clean.to_owned())
}

#[cfg(test)]
mod tests {
    use openstack_ccm_core::instance::label::is_value;
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    /// An availability zone becomes a label even where its name has other characters than labels may have.
    ///
    /// Contract: N15, same.
    /// Defect: 50, better: a long zone never ends in a character that a label may not end in.
    #[rstest]
    #[case::plain("nova", Some("nova"))]
    #[case::other_characters("nova zone #1", Some("nova-zone-1"))]
    #[case::empty("", None)]
    #[case::nothing_left("***", None)]
    #[case::edges("_nova.", Some("nova"))]
    #[case::own_dash_and_another("a- b", Some("a--b"))]
    fn n15_the_zone_is_a_label(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(zone(text).as_deref(), expected);
        let long = format!("{}-b", "a".repeat(62));
        assert_eq!(zone(&long), Some("a".repeat(62)));
    }

    proptest! {
        #[test]
        fn whatever_the_cloud_says_can_be_a_label(text in any::<String>()) {
            prop_assert!(zone(&text).is_none_or(|value| is_value(&value) && !value.is_empty()));
        }
    }
}
