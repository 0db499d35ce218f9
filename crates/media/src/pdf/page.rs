//! Reads the glyphs of one page, line by line.

use hayro_interpret::font::{Glyph, GlyphRun, PositionedGlyph};
use hayro_interpret::hayro_cmap::WritingMode;
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::kurbo::{Affine, BezPath, Point, Rect, Vec2};
use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps,
    InterpreterCache, InterpreterSettings, SoftMask, TransformExt, interpret_page,
};

use super::cjk_collections::Collections;
use super::glyph_text;
use super::line::{Line, PlacedGlyph};

/// hayro measures glyphs in thousandths of the font size.
const UNITS_PER_EM: f64 = 1_000.0;

/// The offset of text that is printed twice to look bold, relative to the font size.
const OVERPRINT_OFFSET: f64 = 0.15;

/// The text of a page.
pub(super) struct PageText {
    pub(super) text: String,
    /// Whether the limit cut the text.
    pub(super) cut: bool,
}

/// Reads a page, at most `max_chars` characters of it.
pub(super) fn read<'a>(
    page: &Page<'a>,
    cache: &InterpreterCache<'a>,
    settings: &InterpreterSettings,
    collections: &mut Collections<'_>,
    max_chars: usize,
) -> PageText {
    let (width, height) = page.render_dimensions();
    let sheet = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
    let upright = page.initial_transform(true).to_kurbo();
    let mut context = Context::new(upright, sheet, cache, page.xref(), settings.clone());
    let mut reader = PageReader {
        sheet,
        collections,
        text: String::new(),
        line: Line::default(),
        last_run: Vec::new(),
        chars_left: max_chars,
        cut: false,
    };
    interpret_page(page, &mut context, &mut reader);
    reader.end_line();
    clip(reader.text, reader.cut, max_chars)
}

/// Collects the glyphs that hayro draws.
struct PageReader<'c, 'p> {
    /// Glyphs outside of it are invisible.
    sheet: Rect,
    collections: &'c mut Collections<'p>,
    text: String,
    line: Line,
    /// The previous run, to detect that it is drawn again.
    last_run: Vec<PlacedGlyph>,
    /// Several glyphs may become one character. This limit only protects the memory.
    chars_left: usize,
    cut: bool,
}

impl PageReader<'_, '_> {
    fn add(&mut self, glyph: PlacedGlyph) {
        let chars = glyph.text.chars().count();
        if chars > self.chars_left {
            self.cut = true;
            return;
        }
        self.chars_left -= chars;
        if let Some(glyph) = self.line.push(glyph) {
            self.end_line();
            // An empty line accepts any glyph.
            self.line.push(glyph);
        }
    }

    fn end_line(&mut self) {
        let line = self.line.take();
        if line.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&line);
    }

    fn placed(
        &mut self,
        glyph: &PositionedGlyph<'_>,
        outer: Affine,
        run: RunWidth,
    ) -> Option<PlacedGlyph> {
        let transform = outer * glyph.transform();
        let origin = transform * Point::ZERO;
        let (across, up) = axes(transform);
        let size = up.length() * UNITS_PER_EM;
        let (along, advance) = match run {
            RunWidth::Vertical => (-up, size),
            RunWidth::Plain => (across, advance(glyph) * across.length()),
            RunWidth::Stretched => (across, advance(glyph) * up.length()),
        };
        let unit = along / along.length();
        let start = origin.to_vec2().dot(unit);
        let baseline = origin.to_vec2().cross(unit);
        let is_sound = [size, advance, start, baseline].iter().all(|number| number.is_finite());
        if !is_sound || size <= 0.0 || !self.sheet.contains(origin) {
            return None;
        }
        let text = glyph_text::of(glyph, self.collections);
        (!text.is_empty()).then_some(PlacedGlyph {
            text,
            direction: (unit.x, unit.y),
            start,
            end: start + advance,
            baseline,
            size,
        })
    }

    /// Whether this run was just drawn in the same position: filled and then outlined, or twice for a bold
    /// look.
    fn is_overprint(&self, run: &[PlacedGlyph]) -> bool {
        let same = |(a, b): (&PlacedGlyph, &PlacedGlyph)| {
            let near = OVERPRINT_OFFSET * a.size;
            a.text == b.text
                && (a.start - b.start).abs() < near
                && (a.baseline - b.baseline).abs() < near
        };
        run.len() == self.last_run.len() && run.iter().zip(&self.last_run).all(same)
    }
}

impl<'a> Device<'a> for PageReader<'_, '_> {
    fn draw_glyph_run(&mut self, glyph_run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, _: &DrawMode) {
        if self.cut {
            return;
        }
        let kind = RunWidth::of(glyph_run);
        let glyphs = glyph_run.glyphs().iter();
        let run: Vec<PlacedGlyph> =
            glyphs.filter_map(|glyph| self.placed(glyph, props.transform, kind)).collect();
        if !run.is_empty() && !self.is_overprint(&run) {
            run.iter().for_each(|glyph| self.add(glyph.clone()));
            self.last_run = run;
        }
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {}
    fn draw_rect(&mut self, _: &Rect, _: DrawProps<'a>, _: &DrawMode) {}
    fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_clip_rect(&mut self, _: &Rect) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

/// How the width of the glyphs of a run is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunWidth {
    /// By their transform.
    Plain,
    /// Their font is not in the file. Each glyph of the substitute font is scaled to the width of the
    /// original one, so that width must not be scaled again.
    Stretched,
    /// Vertical text. Each glyph is as high as the font.
    Vertical,
}

impl RunWidth {
    fn of(run: &GlyphRun<'_, '_>) -> RunWidth {
        if matches!(run.writing_mode(), WritingMode::Vertical) {
            return RunWidth::Vertical;
        }
        let squeezed = run.glyphs().iter().map(|glyph| {
            let (across, up) = axes(glyph.transform());
            across.length() / up.length()
        });
        let (least, most) = squeezed.fold((f64::MAX, 0.0), |(least, most): (f64, f64), one| {
            (least.min(one), most.max(one))
        });
        // A scale that the page sets is the same for all glyphs.
        if most > least * 1.01 { RunWidth::Stretched } else { RunWidth::Plain }
    }
}

/// The images of the two axes of a glyph under a transform.
fn axes(transform: Affine) -> (Vec2, Vec2) {
    let [a, b, c, d, ..] = transform.as_coeffs();
    (Vec2::new(a, b), Vec2::new(c, d))
}

/// The advance width, in glyph units.
fn advance(glyph: &Glyph<'_>) -> f64 {
    let width = match glyph {
        Glyph::Outline(glyph) => glyph.advance_width(),
        Glyph::Type3(glyph) => glyph.advance_width(),
    };
    width.map_or(UNITS_PER_EM / 2.0, f64::from)
}

/// As many whole lines as fit.
fn clip(mut text: String, cut: bool, max_chars: usize) -> PageText {
    let Some((limit, _)) = text.char_indices().nth(max_chars) else {
        return PageText { text, cut };
    };
    let end = text.get(..limit).and_then(|head| head.rfind('\n')).unwrap_or(limit);
    text.truncate(end);
    PageText { text, cut: true }
}
