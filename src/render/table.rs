//! Columns of text that fit a width. Pure.

use super::theme::{Paint, Span, Style};
use crate::utils::text;

/// What happens to a cell that is wider than its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overflow {
    /// It is cut, `…` in place of what is missing.
    Cut,
    /// It goes on in further lines.
    Wrap,
}

/// A cell's content.
pub(super) type Cell = Vec<Span>;

/// A table of plain text without frame or colour: the header, then the rows, each ended by a newline.
pub(super) fn plain(headers: &[&str], rows: &[Vec<String>], columns: Option<usize>) -> String {
    let cell = |text: String| -> Cell {
        vec![Span {
            style: Style::PLAIN,
            text,
        }]
    };
    let mut all: Vec<Vec<Cell>> = Vec::with_capacity(rows.len() + 1);
    if !headers.is_empty() {
        all.push(
            headers
                .iter()
                .map(|header| cell((*header).to_owned()))
                .collect(),
        );
    }
    for row in rows {
        all.push(row.iter().map(|text| cell(text.clone())).collect());
    }
    let paint = Paint {
        theme: super::options::Theme::Dark,
        color: false,
        true_color: false,
    };
    let widths = widths(&all, columns.unwrap_or(usize::MAX), 2);
    let mut out = String::new();
    for row in &all {
        out.push_str(&lines(row, &widths, "  ", Overflow::Cut, paint));
    }
    out
}

/// The width of each column, shrunk, widest first, until all fit into `columns` with `gap` between two of them.
pub(super) fn widths(rows: &[Vec<Cell>], columns: usize, gap: usize) -> Vec<usize> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let natural = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(cell_width).max().unwrap_or(0)
    };
    let natural: Vec<usize> = (0..count).map(natural).collect();
    let room = columns.saturating_sub(gap * count.saturating_sub(1));
    if natural.iter().sum::<usize>() <= room {
        return natural;
    }
    let capped = |cap: usize| natural.iter().map(|width| (*width).min(cap)).sum::<usize>();
    let widest = natural.iter().copied().max().unwrap_or(0);
    let (mut low, mut high) = (1, widest.max(1));
    while low < high {
        let middle = (low + high).div_ceil(2);
        if capped(middle) <= room {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    let mut left = room.saturating_sub(capped(low));
    natural
        .iter()
        .map(|width| {
            let extra = usize::from(*width > low && left > 0);
            left -= extra;
            (*width).min(low + extra)
        })
        .collect()
}

/// One row, in as many lines as it takes.
pub(super) fn lines(
    row: &[Cell],
    widths: &[usize],
    separator: &str,
    overflow: Overflow,
    paint: Paint,
) -> String {
    let empty = Cell::new();
    let cells: Vec<Vec<Cell>> = widths
        .iter()
        .enumerate()
        .map(|(column, width)| {
            let cell = row.get(column).unwrap_or(&empty);
            match overflow {
                Overflow::Cut => vec![cut(cell, *width)],
                Overflow::Wrap => wrap(cell, *width),
            }
        })
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let mut out = String::new();
    for line in 0..height {
        let mut padding = 0;
        for (column, width) in widths.iter().enumerate() {
            if column > 0 {
                // Blanks at a line's end are left out, frames are not.
                out.extend(std::iter::repeat_n(' ', padding));
                out.push_str(separator);
            }
            let piece = cells
                .get(column)
                .and_then(|lines| lines.get(line))
                .unwrap_or(&empty);
            for span in piece {
                out.push_str(&paint.paint(span.style, &span.text));
            }
            padding = width.saturating_sub(cell_width(piece));
        }
        let kept = out.trim_end_matches(' ').len();
        out.truncate(kept);
        out.push('\n');
    }
    out
}

fn cell_width(cell: &Cell) -> usize {
    cell.iter().map(|span| text::width(&span.text)).sum()
}

/// The beginning of `cell` that fits.
fn cut(cell: &Cell, width: usize) -> Cell {
    if cell_width(cell) <= width {
        return cell.clone();
    }
    let mut left = width;
    let mut out = Cell::new();
    for span in cell {
        let fitted = text::fit(&span.text, left).into_owned();
        let is_cut = fitted != span.text;
        left = left.saturating_sub(text::width(&fitted));
        out.push(Span {
            style: span.style,
            text: fitted,
        });
        if is_cut {
            break;
        }
    }
    out
}

/// `cell` in lines that fit, broken between words, and inside a word that is wider than a line.
fn wrap(cell: &Cell, width: usize) -> Vec<Cell> {
    let width = width.max(1);
    let mut lines: Vec<Cell> = vec![Cell::new()];
    let mut used = 0;
    for (style, word) in words(cell) {
        let is_blank = word.trim().is_empty();
        let needed = text::width(word);
        if used + needed > width && used > 0 {
            trim_end(lines.last_mut());
            lines.push(Cell::new());
            used = 0;
        }
        if is_blank && used == 0 {
            continue;
        }
        for (_, cluster) in text::clusters(word) {
            let columns = text::width(cluster);
            if used + columns > width && used > 0 {
                lines.push(Cell::new());
                used = 0;
            }
            push(lines.last_mut(), style, cluster);
            used += columns;
        }
    }
    lines
}

/// The words of a cell and the blanks between them. A word whose style changes inside is two.
fn words(cell: &Cell) -> impl Iterator<Item = (Style, &str)> {
    cell.iter().flat_map(|span| {
        let mut rest = span.text.as_str();
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            let end = rest
                .find(|c: char| c.is_whitespace() != first.is_whitespace())
                .unwrap_or(rest.len());
            let (word, tail) = rest.split_at_checked(end)?;
            rest = tail;
            Some((span.style, word))
        })
    })
}

fn push(line: Option<&mut Cell>, style: Style, text: &str) {
    let Some(line) = line else { return };
    match line.last_mut() {
        Some(last) if last.style == style => last.text.push_str(text),
        _ => line.push(Span {
            style,
            text: text.to_owned(),
        }),
    }
}

fn trim_end(line: Option<&mut Cell>) {
    if let Some(last) = line.and_then(|line| line.last_mut()) {
        let kept = last.text.trim_end().len();
        last.text.truncate(kept);
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
