//! The durations of calls, as a histogram for each tool and outcome.

use std::collections::BTreeMap;

/// The bounds of the semantic conventions, in seconds.
pub(crate) const BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// The maximum number of histograms. Calls beyond them share one.
const MAX_SERIES: usize = 200;

/// The attributes of a histogram, in order.
pub(crate) type Attributes = Vec<(&'static str, String)>;

/// A histogram since the start of the program.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Histogram {
    pub(crate) counts: [u64; BOUNDS.len() + 1],
    pub(crate) sum: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Histogram {
    fn add(&mut self, seconds: f64) {
        let is_first = self.counts.iter().all(|&count| count == 0);
        self.min = if is_first { seconds } else { self.min.min(seconds) };
        self.max = self.max.max(seconds);
        self.sum += seconds;
        // A bound belongs to the bucket below it.
        self.counts[BOUNDS.partition_point(|&bound| bound < seconds)] += 1;
    }
}

/// All histograms.
#[derive(Debug, Clone, Default)]
pub(crate) struct Durations {
    pub(crate) series: BTreeMap<Attributes, Histogram>,
}

impl Durations {
    pub(crate) fn add(&mut self, attributes: Attributes, seconds: f64) {
        let has_room = self.series.len() < MAX_SERIES || self.series.contains_key(&attributes);
        let attributes =
            if has_room { attributes } else { vec![("otel.metric.overflow", "true".to_owned())] };
        self.series.entry(attributes).or_default().add(seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_its_bucket() {
        let mut durations = Durations::default();
        for seconds in [0.0, 0.01, 0.011, 299.0, 300.0, 301.0] {
            durations.add(vec![("a", "b".to_owned())], seconds);
        }
        let histogram = &durations.series[&vec![("a", "b".to_owned())]];
        assert_eq!(histogram.counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1]);
        assert_eq!((histogram.min, histogram.max), (0.0, 301.0));
    }

    #[test]
    fn the_number_of_histograms_is_bounded() {
        let mut durations = Durations::default();
        for number in 0..1_000 {
            durations.add(vec![("tool", number.to_string())], 1.0);
        }
        assert_eq!(durations.series.len(), MAX_SERIES + 1);
        let all = durations.series.values().flat_map(|histogram| histogram.counts);
        assert_eq!(all.sum::<u64>(), 1_000);
    }
}
