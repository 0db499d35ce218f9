//! Numbers as they stand in a table.

/// With two digits after the point.
pub(super) fn two_digits(number: Option<f64>) -> String {
    number.map_or("–".to_owned(), |number| format!("{number:.2}"))
}

/// How many times the base.
pub(super) fn ratio(number: Option<f64>, base: Option<f64>) -> String {
    let ratio = number.zip(base).map(|(number, base)| number / base);
    ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}×"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_a_dash() {
        assert_eq!(ratio(Some(3.0), Some(2.0)), "1.50×");
        assert_eq!(ratio(Some(3.0), None), "–");
        assert_eq!(two_digits(None), "–");
    }
}
