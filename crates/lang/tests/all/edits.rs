//! Inserting fences into texts: positions and indentation of the inserted statements.

use fencewright_lang::edit::{Edit, What, edited};
use fencewright_lang::load;
use fencewright_lang::places::places;

/// For each place of the text before or after a line that contains `near`, the text with a fence inserted there.
fn fenced(name: &str, text: &str, near: &str) -> Vec<String> {
    let loaded = load(name, text.as_bytes(), None, &[]).unwrap_or_else(|e| panic!("{:?}", e.diagnostics));
    let placed = places(&loaded, &[]).expect("places");
    let here = |statement: fencewright_program::Span| text[statement.range()].contains(near);
    let places = placed.places.into_iter().filter(|place| here(place.statement));
    places
        .map(|place| {
            let edit = Edit { what: What::Fence, place };
            edited(&loaded, &[edit]).expect("a fence can be written").main().text.clone()
        })
        .collect()
}

#[test]
fn a_fence_before_a_label_is_indented_like_its_statement() {
    let text = "shared x;\nthread p {\n    x = 1;\nhere:\n    x = 2;\n}\n";
    assert_eq!(
        fenced("a.fw", text, "x = 2"),
        [
            "shared x;\nthread p {\n    x = 1;\n    fence;\nhere:\n    x = 2;\n}\n",
            "shared x;\nthread p {\n    x = 1;\nhere:\n    fence;\n    x = 2;\n}\n",
            "shared x;\nthread p {\n    x = 1;\nhere:\n    x = 2;\n    fence;\n}\n",
        ]
    );
}

#[test]
fn a_fence_at_a_label_on_the_same_line_stays_there() {
    let text = "shared x;\nthread p {\n  here: x = 2;\n}\n";
    assert_eq!(
        fenced("a.fw", text, "x = 2"),
        [
            "shared x;\nthread p {\n  fence;\n  here: x = 2;\n}\n",
            "shared x;\nthread p {\n  here: fence; x = 2;\n}\n",
            "shared x;\nthread p {\n  here: x = 2;\n  fence;\n}\n",
        ]
    );
}

#[test]
fn line_ends_are_kept() {
    let text = "shared x;\r\nthread p {\r\n    x = 2;\r\n}\r\n";
    assert_eq!(fenced("a.fw", text, "x = 2")[0], text.replace("    x", "    fence;\r\n    x"));
}
