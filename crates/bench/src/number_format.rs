//! Formats numbers for tables: two significant digits, ratios.

/// A number with two decimals; a dash for `None`.
pub(super) fn two_digits(number: Option<f64>) -> String {
    number.map_or("–".to_owned(), |number| format!("{number:.2}"))
}

/// The ratio to the base; a dash if either is `None`.
pub(super) fn ratio(number: Option<f64>, base: Option<f64>) -> String {
    let ratio = number.zip(base).map(|(number, base)| number / base);
    ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}×"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_values_are_a_dash() {
        assert_eq!(ratio(Some(3.0), Some(2.0)), "1.50×");
        assert_eq!(ratio(Some(3.0), None), "–");
        assert_eq!(two_digits(None), "–");
    }
}
