//! Charts with logarithmic axes, as SVG.

use super::{Growth, Point};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 230.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 40.0;
/// Colours that people with colour blindness can tell apart.
const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];

/// One chart, placed below the others.
pub(super) struct Chart<'a> {
    growth: &'a Growth,
    y: f64,
    /// Powers of ten at the ends of both axes.
    sizes: [f64; 2],
    figures: [f64; 2],
}

impl Chart<'_> {
    /// All charts, one below the other.
    pub(super) fn all(all: &[Growth]) -> String {
        let height = HEIGHT * all.len() as f64;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        );
        for (at, growth) in all.iter().enumerate() {
            svg += &Chart::new(growth, HEIGHT * at as f64).draw();
        }
        svg + "</svg>\n"
    }

    fn new(growth: &Growth, y: f64) -> Chart<'_> {
        let sizes = growth.points.iter().map(|point| point.size as f64);
        let figures =
            growth.points.iter().flat_map(|point| point.figures.iter().flatten().copied());
        Chart { growth, y, sizes: powers_around(sizes), figures: powers_around(figures) }
    }

    fn draw(&self) -> String {
        let Growth { title, of, unit, .. } = self.growth;
        let mut svg = format!(
            "<text x=\"8\" y=\"{:.0}\" font-weight=\"bold\">{title}: {unit} by {of}</text>\n",
            self.y + 18.0
        );
        for power in powers(self.sizes) {
            let x = self.x(power);
            svg += &line([x, self.y + TOP], [x, self.y + HEIGHT - BOTTOM], "#ddd");
            svg += &label(x, self.y + HEIGHT - BOTTOM + 16.0, "middle", power);
        }
        for power in powers(self.figures) {
            let y = self.y(power);
            svg += &line([LEFT, y], [WIDTH - RIGHT, y], "#ddd");
            svg += &label(LEFT - 6.0, y + 4.0, "end", power);
        }
        let series = self.growth.series.iter().zip(COLOURS).enumerate();
        series.fold(svg, |svg, (at, (name, colour))| svg + &self.series(at, name, colour))
    }

    fn series(&self, at: usize, name: &str, colour: &str) -> String {
        let place = |point: &Point| {
            let figure = point.figures.get(at).copied().flatten()?;
            Some(format!(
                "{:.1},{:.1}",
                self.x((point.size as f64).log10()),
                self.y(figure.log10())
            ))
        };
        let places: Vec<String> = self.growth.points.iter().filter_map(place).collect();
        let (x, y) = (WIDTH - RIGHT + 12.0, self.y + TOP + 12.0 + 18.0 * at as f64);
        format!(
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>\n\
             <text x=\"{x:.0}\" y=\"{y:.0}\" fill=\"{colour}\">{}</text>\n",
            places.join(" "),
            name.replace('`', ""),
        )
    }

    fn x(&self, power: f64) -> f64 {
        LEFT + part(self.sizes, power) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, power: f64) -> f64 {
        self.y + HEIGHT - BOTTOM - part(self.figures, power) * (HEIGHT - TOP - BOTTOM)
    }
}

/// The position between the ends, from 0 to 1.
fn part([first, last]: [f64; 2], power: f64) -> f64 {
    (power - first) / (last - first).max(1.0)
}

/// The powers of ten around the numbers.
fn powers_around(numbers: impl Iterator<Item = f64>) -> [f64; 2] {
    let powers: Vec<f64> = numbers.filter(|number| *number > 0.0).map(f64::log10).collect();
    let first = powers.iter().copied().fold(f64::INFINITY, f64::min).floor();
    let last = powers.iter().copied().fold(f64::NEG_INFINITY, f64::max).ceil();
    if first.is_finite() { [first, last.max(first + 1.0)] } else { [0.0, 1.0] }
}

fn powers([first, last]: [f64; 2]) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(first), |power| Some(power + 1.0))
        .take_while(move |power| *power <= last)
}

fn line([x1, y1]: [f64; 2], [x2, y2]: [f64; 2], colour: &str) -> String {
    format!(
        "<line x1=\"{x1:.0}\" y1=\"{y1:.0}\" x2=\"{x2:.0}\" y2=\"{y2:.0}\" stroke=\"{colour}\"/>\n"
    )
}

/// A power of ten at an axis.
fn label(x: f64, y: f64, anchor: &str, power: f64) -> String {
    let number = if power < 0.0 {
        format!("{}", 10f64.powf(power))
    } else if power < 4.0 {
        format!("{:.0}", 10f64.powf(power))
    } else {
        format!("10<tspan dy=\"-4\" font-size=\"9\">{power:.0}</tspan>")
    };
    format!("<text x=\"{x:.0}\" y=\"{y:.0}\" text-anchor=\"{anchor}\">{number}</text>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_powers_of_ten_around_all_numbers() {
        assert_eq!(powers_around([150.0, 90_000.0].into_iter()), [2.0, 5.0]);
        assert_eq!(powers_around([0.02].into_iter()), [-2.0, -1.0]);
        assert_eq!(powers_around([0.0].into_iter()), [0.0, 1.0]);
    }

    #[test]
    fn draws_a_line_for_each_series_without_its_missing_figures() {
        let growth = Growth {
            title: "t",
            of: "files",
            unit: "ms",
            series: vec!["a", "b"],
            points: vec![
                Point { size: 10, figures: vec![Some(1.0), None] },
                Point { size: 100, figures: vec![Some(10.0), Some(10.0)] },
            ],
        };
        let svg = Chart::all(&[growth]);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains("points=\"60.0,220.0 530.0,34.0\""), "{svg}");
        assert!(svg.contains("points=\"530.0,34.0\""), "{svg}");
    }
}
