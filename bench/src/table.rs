//! Markdown tables with aligned columns.

use crate::out;

/// Prints a table; all columns but the first are right-aligned.
pub fn print(header: &[&str], rows: &[Vec<String>]) {
    out::print(&table(header, rows));
}

fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let header: Vec<String> = header.iter().map(|text| cell(text)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|text| cell(text)).collect()).collect();
    let width = |column: usize| {
        let cells = rows.iter().chain([&header]).map(|row| row[column].chars().count());
        // Even if all cells of a column are empty, including its header, the line below the header needs one character for it.
        cells.max().unwrap_or(0).max(1)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let rule = |(n, &w): (usize, &usize)| if n == 0 { "-".repeat(w) } else { "-".repeat(w - 1) + ":" };
    let mut text = line(header.iter().zip(&widths).map(|(cell, &w)| format!("{cell:w$}")).collect());
    text += &line(widths.iter().enumerate().map(rule).collect());
    for row in &rows {
        let aligned = |(n, cell): (usize, &String)| {
            let w = widths[n];
            if n == 0 { format!("{cell:w$}") } else { format!("{cell:>w$}") }
        };
        text += &line(row.iter().enumerate().map(aligned).collect());
    }
    text
}

/// The text of a cell, with control characters replaced and bars escaped, because the text may come from other tools.
fn cell(text: &str) -> String {
    out::plain(text).replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_stays_within_its_cell() {
        let rows = [vec!["a|b\n".to_string(), "\u{1b}[31m1".to_string()], vec!["µ".into(), "2".into()]];
        let lines = [
            "| program | ms     |",
            "| ------- | -----: |",
            "| a\\|b\u{fffd}   | \u{fffd}[31m1 |",
            "| µ       |      2 |",
            "",
        ];
        assert_eq!(table(&["program", "ms"], &rows), lines.join("\n"));
    }
}
