//! The form of a scrape, by the header `Accept`.

/// A form in which Prometheus reads metrics.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// OpenMetrics 1.0.0.
    OpenMetrics,
    /// Prometheus' text form 0.0.4.
    Text,
}

impl Form {
    /// The form that `accept` prefers, by its weights (RFC 9110, section 12.5.1). It is OpenMetrics only if that is
    /// named; between equal weights, too, since a client that names it can read it.
    pub fn preferred(accept: &str) -> Self {
        let weight = |media: &str| {
            let ranges = accept.split(',');
            let weights = ranges.filter_map(|range| weight_of(range, media));
            weights.fold(0.0, f32::max)
        };
        let open_metrics = weight("application/openmetrics-text");
        if open_metrics > 0.0 && open_metrics >= weight("text/plain") {
            Self::OpenMetrics
        } else {
            Self::Text
        }
    }

    /// The media type of the form.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The weight of `range` if it is `media`.
fn weight_of(range: &str, media: &str) -> Option<f32> {
    let mut parts = range.split(';').map(str::trim);
    let named = parts.next()?;
    let is_named = named.eq_ignore_ascii_case(media);
    let written = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
    let weight = written.and_then(|weight| weight.trim().parse::<f32>().ok());
    is_named.then(|| weight.unwrap_or(1.0).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_decide() {
        use Form::{OpenMetrics, Text};
        let of_prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;\
             q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for (accept, form) in [
            ("", Text),
            ("*/*", Text),
            ("text/html, text/plain", Text),
            (of_prometheus, OpenMetrics),
            ("Application/OpenMetrics-Text", OpenMetrics),
            ("text/plain, application/openmetrics-text; q=0.5", Text),
            ("application/openmetrics-text; q=0", Text),
            ("text/plain, application/openmetrics-text", OpenMetrics),
            ("application/openmetrics-text; q=NaN, text/plain", Text),
        ] {
            assert_eq!(Form::preferred(accept), form, "{accept}");
        }
    }
}
