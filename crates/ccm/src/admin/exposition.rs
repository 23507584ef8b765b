//! The page of metrics in the format that the scraper asks for: OpenMetrics, or Prometheus' own text format, which
//! everybody reads and which is served when nothing is asked for.

use std::sync::Mutex;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use openstack_ccm_runtime::lock::lock;
use prometheus_client::registry::Registry;

/// The answer to a scraper that sent these headers.
pub(crate) fn page(registry: &Mutex<Registry>, headers: &HeaderMap) -> Response {
    let mut text = String::new();
    if let Err(error) = prometheus_client::encoding::text::encode(&mut text, &lock(registry)) {
        return (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response();
    }
    let (content_type, text) = match Format::preferred(headers) {
        Format::Prometheus => ("text/plain; version=0.0.4; charset=utf-8", prometheus(&text)),
        Format::OpenMetrics => ("application/openmetrics-text; version=1.0.0; charset=utf-8", text),
    };
    ([(header::CONTENT_TYPE, content_type)], text).into_response()
}

/// A text format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>
    Prometheus,
    /// <https://prometheus.io/docs/specs/om/open_metrics_spec/>
    OpenMetrics,
}

impl Format {
    /// The format that a request prefers; of two that it likes as much OpenMetrics, as Prometheus' own libraries choose.
    fn preferred(headers: &HeaderMap) -> Self {
        let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let ranges: Vec<MediaRange> =
            accepted.flat_map(|value| value.split(',')).map(MediaRange::parse).collect();
        let quality = |format: Self| {
            let matching = ranges.iter().filter_map(|range| range.quality_of(format));
            matching.fold(0.0, f32::max)
        };
        if quality(Self::OpenMetrics) > 0.0 && quality(Self::OpenMetrics) >= quality(Self::Prometheus) {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }
}

/// One entry of an `Accept` header.
struct MediaRange<'a> {
    media_type: &'a str,
    version: Option<&'a str>,
    quality: f32,
}

impl<'a> MediaRange<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let mut range = Self { media_type: parts.next().unwrap_or_default(), version: None, quality: 1.0 };
        for (name, value) in parts.filter_map(|parameter| parameter.split_once('=')) {
            match name.trim() {
                "version" => range.version = Some(value.trim().trim_matches('"')),
                "q" => range.quality = value.trim().parse().unwrap_or(0.0),
                _ => {}
            }
        }
        range
    }

    /// How much a format is liked; absent when the entry says nothing of it. A wildcard stands for the format that every
    /// reader knows.
    fn quality_of(&self, format: Format) -> Option<f32> {
        let (types, versions): (&[&str], &[&str]) = match format {
            Format::Prometheus => (&["text/plain", "text/*", "*/*"], &["0.0.4"]),
            // 0.0.1 is the draft, which has the same content.
            Format::OpenMetrics => (&["application/openmetrics-text"], &["1.0.0", "0.0.1"]),
        };
        let matches = types.iter().any(|known| self.media_type.eq_ignore_ascii_case(known))
            && self.version.is_none_or(|version| versions.contains(&version));
        matches.then_some(self.quality)
    }
}

/// The same metrics in Prometheus' text format: there the name of a counter's family ends in `_total` as its samples do,
/// and there are no units, no exemplars and no mark at the end.
fn prometheus(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help: Option<(&str, &str)> = None;
    for line in open_metrics.lines() {
        if line == "# EOF" || line.starts_with("# UNIT ") {
            continue;
        }
        if let Some(described) = line.strip_prefix("# HELP ") {
            help = described.split_once(' ');
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "stateset" => ("", "gauge"),
                "unknown" => ("", "untyped"),
                other => ("", other),
            };
            if let Some((_, help)) = help.take().filter(|(described, _)| *described == name) {
                text.push_str(&format!("# HELP {name}{suffix} {help}\n"));
            }
            text.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
        } else {
            // An exemplar follows the value.
            text.push_str(line.split_once(" # {").map_or(line, |(sample, _)| sample));
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing(None, Format::Prometheus)]
    #[case::curl(Some("*/*"), Format::Prometheus)]
    #[case::classic(Some("text/plain;version=0.0.4"), Format::Prometheus)]
    #[case::open_metrics(Some("application/openmetrics-text; version=1.0.0"), Format::OpenMetrics)]
    #[case::without_version(Some("application/openmetrics-text"), Format::OpenMetrics)]
    // Prometheus 2 and 3, with and without native histograms.
    #[case::prometheus_2(
        Some(
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;\
        q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
        ),
        Format::OpenMetrics
    )]
    #[case::prometheus_3(
        Some(
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;\
        q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=1.0.0;q=0.4,\
        text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
        ),
        Format::OpenMetrics
    )]
    #[case::prefers_classic(
        Some("application/openmetrics-text;q=0.3, text/plain;version=0.0.4"),
        Format::Prometheus
    )]
    #[case::refuses_open_metrics(Some("application/openmetrics-text;q=0, */*"), Format::Prometheus)]
    #[case::unknown_version(Some("application/openmetrics-text;version=7.0.0"), Format::Prometheus)]
    fn the_format_is_the_one_that_is_asked_for(
        #[case] accept: Option<&'static str>,
        #[case] expected: Format,
    ) {
        let mut headers = HeaderMap::new();
        headers.extend(accept.map(|accept| (header::ACCEPT, HeaderValue::from_static(accept))));
        assert_eq!(Format::preferred(&headers), expected);
    }

    #[test]
    fn the_classic_format_names_counters_in_full_and_leaves_out_what_it_does_not_know() {
        let open_metrics = "# HELP calls Calls.\n# TYPE calls counter\ncalls_total{a=\"b\"} 1 # {trace=\"x\"} 1.0\n\
                            # HELP wait_seconds Wait.\n# TYPE wait_seconds gauge\n# UNIT wait_seconds seconds\n\
                            wait_seconds 2.5\n# HELP build Build.\n# TYPE build info\nbuild_info{version=\"1\"} 1\n# EOF\n";
        assert_eq!(
            prometheus(open_metrics),
            "# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total{a=\"b\"} 1\n# HELP wait_seconds Wait.\n\
             # TYPE wait_seconds gauge\nwait_seconds 2.5\n# HELP build_info Build.\n# TYPE build_info gauge\n\
             build_info{version=\"1\"} 1\n"
        );
    }
}
