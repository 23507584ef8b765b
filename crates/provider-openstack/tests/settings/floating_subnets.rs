//! Which subnets a pattern and a condition for tags mean.

use openstack_ccm_provider_openstack::load_balancer::settings::floating_subnet::{
    NamePattern, NoTag, PatternError, SubnetMatch, TagCondition,
};
use rstest::rstest;

/// Defect: 13, better: alternatives match whole names.
#[rstest]
#[case::exact("public", "public", true)]
#[case::exact_is_whole("public", "public-2", false)]
#[case::case_matters("public", "Public", false)]
#[case::star("pool-*", "pool-17", true)]
#[case::star_may_be_empty("pool-*", "pool-", true)]
#[case::star_stops_at_a_slash("pool-*", "pool-a/b", false)]
#[case::star_is_whole("pool-*", "my-pool-1", false)]
#[case::two_stars("*dmz*", "eu-dmz-1", true)]
#[case::one_character("pool-?", "pool-é", true)]
#[case::one_character_not_two("pool-?", "pool-10", false)]
#[case::class("pool-[ab]", "pool-b", true)]
#[case::class_range("pool-[0-9]", "pool-x", false)]
#[case::class_negated("pool-[^0-9]", "pool-x", true)]
#[case::class_with_bracket("pool-[]x]", "pool-]", true)]
#[case::class_by_name("pool-[[:digit:]x]", "pool-7", true)]
#[case::class_keeps_its_letters("pool-[&&a]", "pool-&", true)]
#[case::alternatives("{public,dmz}-1", "dmz-1", true)]
#[case::alternatives_only("{public,dmz}-1", "lan-1", false)]
#[case::alternatives_of_globs("{a*,b?}", "b1", true)]
#[case::brace("{{x", "{x", true)]
#[case::lone_closing_brace("x}", "x}", true)]
#[case::comma("a,b", "a,b", true)]
#[case::dot_is_a_dot("a.b", "axb", false)]
#[case::others_are_themselves("a+(b)|c^$=!\\", "a+(b)|c^$=!\\", true)]
#[case::directories_in_front("**/edge", "eu/de/edge", true)]
#[case::no_directories_in_front("**/edge", "edge", true)]
#[case::directories_between("eu/**/edge", "eu/a/b/edge", true)]
#[case::no_directories_between("eu/**/edge", "eu/edge", true)]
#[case::directories_behind("eu/**", "eu/a/b", true)]
#[case::expression("~pool-[0-9]+", "pool-42", true)]
#[case::expression_is_whole("~pool", "pool-42", false)]
#[case::expression_with_anchors("~^pool-.*$", "pool-42", true)]
#[case::alternative_that_is_longer("~a|ab", "ab", true)]
#[case::negated_name("!public", "dmz", true)]
#[case::negated_name_itself("!public", "public", false)]
#[case::negated_expression("!~pool-.*", "pool-1", false)]
#[case::no_name_is_not_any_name("pool-1", "", false)]
#[case::no_name_matches_what_may_be_empty("*", "", true)]
fn a_pattern_means_whole_names(#[case] pattern: &str, #[case] name: &str, #[case] matches: bool) {
    assert_eq!(NamePattern::parse(pattern).unwrap().matches(name), matches);
}

/// Defect: 11, better: a malformed pattern is an error of its Service, not the end of the process.
#[rstest]
#[case::class_not_closed("[abc", "the '[' is never closed")]
#[case::alternatives_not_closed("{a,b", "the '{' is never closed")]
#[case::class_only_opened("!pool-[^]", "the '[' is never closed")]
#[case::range_reversed("[z-a]", "the glob is malformed: ")]
#[case::expression_not_closed("~(a", "the regular expression is malformed: unclosed group")]
#[case::not_well_formed_by_its_anchors("~a)|(?:b", "the regular expression is malformed: unopened group")]
#[case::too_large("~(a{1000}){1000}", "the regular expression is malformed: ")]
fn a_malformed_pattern_is_an_error(#[case] pattern: &str, #[case] message: &str) {
    let error: PatternError = NamePattern::parse(pattern).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with(message), "{text}");
    assert!(!text.contains('\n'), "{text}");
}

/// Defect: 12, better: conditions are judged by their documented meaning.
#[rstest]
#[case::one_of("a,b", "a", true)]
#[case::one_of_none("a,b", "c", false)]
#[case::all("&a,b", "a b c", true)]
#[case::all_but_one("&a,b", "a", false)]
#[case::none("!a,b", "c", true)]
#[case::none_but_one("!a,b", "b c", false)]
#[case::not_all("!&a,b", "a", true)]
#[case::not_all_but_all("!&a,b", "a b", false)]
#[case::untagged_is_none("!a", "", true)]
#[case::blanks_separate("a  b\tc", "c", true)]
#[case::prefix_with_blank("& a, b", "a b", true)]
fn a_condition_for_tags_means_what_is_documented(
    #[case] condition: &str,
    #[case] tags: &str,
    #[case] matches: bool,
) {
    let tags: Vec<String> = tags.split_whitespace().map(str::to_owned).collect();
    assert_eq!(TagCondition::parse(condition).unwrap().matches(&tags), matches);
}

#[test]
fn a_condition_names_a_tag() {
    for text in ["", "!", "&", "!&", " , "] {
        assert_eq!(TagCondition::parse(text), Err(NoTag), "{text:?}");
    }
}

#[test]
fn name_and_tags_must_both_match() {
    let wanted =
        SubnetMatch { name: NamePattern::parse("pool-*").ok(), tags: TagCondition::parse("!retired").ok() };
    assert!(wanted.matches("pool-1", &[]));
    assert!(!wanted.matches("pool-1", &["retired".to_owned()]));
    assert!(!wanted.matches("lan", &[]));
}
