//! What a scrape gets: families of series and their values, in two forms.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, text};
use prometheus_client::registry::Registry;

use crate::families::{Family, Kind};
use crate::form::Form;

/// The labels of one series.
pub type Labels = Vec<(&'static str, String)>;

/// The value of one series.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A count that only grows.
    Counter(u64),
    /// A sum of seconds, which only grows.
    Seconds(f64),
    /// A value that goes up and down.
    Gauge(f64),
    /// Durations in buckets.
    Histogram {
        /// Their sum in seconds.
        sum: f64,
        /// The upper bound of each bucket in seconds, and how many are in it and in none before.
        buckets: Vec<(f64, u64)>,
    },
}

impl Value {
    /// A gauge with this count.
    #[expect(
        clippy::cast_precision_loss,
        reason = "no count of a gateway reaches 2^53"
    )]
    pub const fn count(count: usize) -> Self {
        Self::Gauge(count as f64)
    }
}

/// The values of all series at one moment.
#[derive(Debug, Default)]
pub struct Exposition(Vec<(&'static Family, Vec<(Labels, Value)>)>);

impl Exposition {
    /// Adds the series of a family.
    pub fn add(
        &mut self,
        family: &'static Family,
        series: impl IntoIterator<Item = (Labels, Value)>,
    ) {
        let all: Vec<_> = series.into_iter().collect();
        if !all.is_empty() {
            self.0.push((family, all));
        }
    }

    /// Adds the series of a family by the values of its labels.
    pub fn add_by_labels<'a, const N: usize>(
        &mut self,
        family: &'static Family,
        series: impl IntoIterator<Item = ([&'a str; N], Value)>,
    ) {
        let labels = |values: [&str; N]| {
            let labels = family.labels.iter().copied();
            labels.zip(values.map(str::to_owned)).collect()
        };
        let unlabelled = series.into_iter();
        self.add(
            family,
            unlabelled.map(|(values, value)| (labels(values), value)),
        );
    }

    /// Adds a family with one series, which has no labels.
    pub fn add_single(&mut self, family: &'static Family, value: Value) {
        self.add(family, [(Labels::new(), value)]);
    }

    /// How many series there are; a histogram counts as one.
    pub fn series(&self) -> usize {
        self.0.iter().map(|(_, series)| series.len()).sum()
    }

    /// The text in `form`.
    ///
    /// # Errors
    ///
    /// Never: writing to memory does not fail.
    pub fn write(self, form: Form) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut written = String::new();
        text::encode(&mut written, &registry)?;
        Ok(match form {
            Form::OpenMetrics => written,
            Form::Text => text_form(&written),
        })
    }
}

impl Collector for Exposition {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (family, series) in &self.0 {
            let kind = family.kind.metric_type();
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, kind)?;
            for (labels, value) in series {
                if labels.is_empty() {
                    encode(value, &mut metric)?;
                } else {
                    encode(value, &mut metric.encode_family(labels)?)?;
                }
            }
        }
        Ok(())
    }
}

fn encode(value: &Value, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
    match value {
        Value::Counter(count) => encoder.encode_counter::<Labels, u64, f64>(count, None),
        Value::Seconds(sum) => encoder.encode_counter::<Labels, f64, f64>(sum, None),
        Value::Gauge(value) => encoder.encode_gauge(value),
        Value::Histogram { sum, buckets } => {
            let count = buckets.iter().map(|(_, count)| count).sum();
            encoder.encode_histogram::<Labels>(*sum, count, buckets, None)
        }
    }
}

/// What is written in OpenMetrics, in Prometheus' text form 0.0.4.
///
/// Samples are the same in both. The text form names a counter as its samples are named, and has no end mark.
fn text_form(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = "";
    for line in open_metrics.split_terminator('\n') {
        if let Some(described) = line.strip_prefix("# HELP ") {
            help = described;
        } else if let Some(typed) = line.strip_prefix("# TYPE ") {
            let (name, kind) = typed.split_once(' ').unwrap_or((typed, "untyped"));
            let suffix = if kind == Kind::Counter.name() {
                "_total"
            } else {
                ""
            };
            let description = help.strip_prefix(name).unwrap_or_default();
            text.push_str(&format!(
                "# HELP {name}{suffix}{description}\n# TYPE {name}{suffix} {kind}\n"
            ));
        } else if line != "# EOF" {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families;

    fn exposition() -> Exposition {
        let mut exposition = Exposition::default();
        let name = |name: &str| vec![("rule", name.to_owned())];
        exposition.add(
            &families::DENIED,
            [
                (name("plain"), Value::Counter(7)),
                (
                    name("a\"b\\c\nd\re\n# EOF\n# TYPE x counter"),
                    Value::Counter(1),
                ),
            ],
        );
        exposition.add_single(&families::SESSIONS, Value::Gauge(3.0));
        let buckets = vec![(0.01, 2), (f64::INFINITY, 1)];
        exposition.add(
            &families::OWN_DURATION,
            [(
                vec![("method", "ping".to_owned())],
                Value::Histogram { sum: 1.5, buckets },
            )],
        );
        exposition.add(&families::BUILD, []);
        exposition
    }

    #[test]
    fn the_text_form_names_counters_as_their_samples() {
        let text = exposition().write(Form::Text).unwrap();
        assert_eq!(
            text,
            r##"# HELP vary_denied_total Requests that access rules refused, and items that they hid from a request, by rule
# TYPE vary_denied_total counter
vary_denied_total{rule="plain"} 7
"##
            .to_owned()
                + "vary_denied_total{rule=\"a\\\"b\\\\c\\nd\re\\n# EOF\\n# TYPE x counter\"} 1\n"
                + r##"# HELP vary_sessions Sessions that were used recently
# TYPE vary_sessions gauge
vary_sessions 3.0
# HELP vary_own_duration_seconds What Vary itself took for a request: all but the time from sending it to its server to the answer
# TYPE vary_own_duration_seconds histogram
vary_own_duration_seconds_sum{method="ping"} 1.5
vary_own_duration_seconds_count{method="ping"} 3
vary_own_duration_seconds_bucket{le="0.01",method="ping"} 2
vary_own_duration_seconds_bucket{le="+Inf",method="ping"} 3
"##
        );
    }

    #[test]
    fn open_metrics_names_counters_without_their_suffix_and_ends() {
        let text = exposition().write(Form::OpenMetrics).unwrap();
        assert!(text.contains("# TYPE vary_denied counter\nvary_denied_total{rule=\"plain\"} 7\n"));
        assert!(text.ends_with("# EOF\n"));
        assert_eq!(text.lines().filter(|line| *line == "# EOF").count(), 1);
        assert_eq!(exposition().series(), 4);
    }
}
