//! What is said about a row of measurements.

use std::time::Duration;

/// Durations of the same thing, measured again and again.
#[derive(Default)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    pub(super) fn add(&mut self, time: Duration) {
        // Kept in order: there are thousands, not millions.
        let at = self.0.partition_point(|earlier| *earlier <= time);
        self.0.insert(at, time);
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The time that so many of a hundred measurements did not exceed; 0 is the least. In ms.
    /// Nothing without a measurement.
    pub(super) fn percentile_ms(&self, percent: usize) -> Option<f64> {
        let last = self.0.len().checked_sub(1)?;
        // Rounded up, so that p90 of ten is the ninth and not the eighth.
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
    fn percentiles_are_those_of_the_sorted_row() {
        let ten = times((1..=10).rev());
        assert_eq!(ten.percentile_ms(0), Some(1.0));
        assert_eq!(ten.percentile_ms(50), Some(5.0));
        assert_eq!(ten.percentile_ms(90), Some(9.0));
        assert_eq!(ten.percentile_ms(100), Some(10.0));
        assert_eq!(times([7]).percentile_ms(50), Some(7.0));
        assert_eq!(times([]).percentile_ms(50), None);
    }
}
