//! "Did you mean" for names that are not known.

/// The candidate that is nearest to the name, if one is near enough to be meant. Case and the difference between
/// `-` and `_` do not count.
pub(super) fn nearest<'name>(
    name: &str,
    candidates: impl IntoIterator<Item = &'name str>,
) -> Option<&'name str> {
    let plain = |text: &str| text.to_ascii_lowercase().replace('_', "-");
    let name = plain(name);
    // One mistake in three characters, and never so much that another word fits.
    let limit = (name.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&name, &plain(candidate)), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
