//! Statistics of measurements.

use std::time::Duration;

/// Sorted durations of repeated measurements.
#[derive(Default)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    pub(super) fn add(&mut self, time: Duration) {
        // Sorted insertion is fast enough for thousands of measurements.
        let at = self.0.partition_point(|earlier| *earlier <= time);
        self.0.insert(at, time);
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The percentile in ms; 0 is the minimum. `None` without measurements.
    pub(super) fn percentile_ms(&self, percent: usize) -> Option<f64> {
        let last = self.0.len().checked_sub(1)?;
        // Rounded up, so that p90 of ten is the ninth.
        let at = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
        self.0.get(at.min(last)).map(|time| time.as_secs_f64() * 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(ms: impl IntoIterator<Item = u64>) -> Times {
        let mut times = Times::default();
        ms.into_iter().for_each(|ms| times.add(Duration::from_millis(ms)));
        times
    }

    #[test]
    fn percentiles_use_the_sorted_order() {
        let ten = times((1..=10).rev());
        assert_eq!(ten.percentile_ms(0), Some(1.0));
        assert_eq!(ten.percentile_ms(50), Some(5.0));
        assert_eq!(ten.percentile_ms(90), Some(9.0));
        assert_eq!(ten.percentile_ms(100), Some(10.0));
        assert_eq!(times([7]).percentile_ms(50), Some(7.0));
        assert_eq!(times([]).percentile_ms(50), None);
    }
}
