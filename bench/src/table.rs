//! Tables for people: Markdown, columns aligned.

/// Prints rows under a header, numbers to the right.
pub fn print(header: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        // A column may be empty, header and all; its rule is still one character wide.
        cells.chain([header[column].len()]).max().unwrap_or(0).max(1)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: Vec<String>| println!("| {} |", cells.join(" | "));
    line(header.iter().zip(&widths).map(|(cell, &w)| format!("{cell:w$}")).collect());
    line(
        widths
            .iter()
            .enumerate()
            .map(|(n, &w)| if n == 0 { "-".repeat(w) } else { "-".repeat(w - 1) + ":" })
            .collect(),
    );
    for row in rows {
        let cell = |(n, cell): (usize, &String)| {
            let w = widths[n];
            if n == 0 { format!("{cell:w$}") } else { format!("{cell:>w$}") }
        };
        line(row.iter().enumerate().map(cell).collect());
    }
}
