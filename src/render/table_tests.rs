use proptest::prelude::*;

use super::*;

fn row(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

#[test]
fn columns_line_up_whatever_their_characters_are_wide() {
    let rows = [
        row(&["a", "first"]),
        row(&["日本", "second"]),
        row(&["e\u{301}", ""]),
    ];
    let table = plain(&["NAME", "TEXT"], &rows, Some(80));
    assert_eq!(table, "NAME  TEXT\na     first\n日本  second\ne\u{301}\n");
}

#[test]
fn the_widest_column_gives_way_and_a_pipe_gets_everything() {
    let rows = [row(&["server", "x".repeat(100).as_str(), "end"])];
    let table = plain(&["A", "B", "C"], &rows, Some(40));
    assert_eq!(table.lines().nth(1).map(text::width), Some(40));
    assert!(
        table.contains("server  xxx") && table.contains("…  end"),
        "{table}"
    );
    assert!(plain(&["A", "B", "C"], &rows, None).contains(&"x".repeat(100)));
}

#[test]
fn a_wrapped_cell_loses_nothing() {
    let cell = vec![Span {
        style: Style::PLAIN,
        text: "several words and averyveryverylongword".to_owned(),
    }];
    let wrapped = wrap(&cell, 10);
    let lines: Vec<String> = wrapped
        .iter()
        .map(|line| line.iter().map(|span| span.text.as_str()).collect())
        .collect();
    assert_eq!(
        lines,
        ["several", "words and", "averyveryv", "erylongwor", "d"]
    );
}

proptest! {
    #[test]
    fn any_table_fits(cells in proptest::collection::vec(proptest::collection::vec("[a-zé日 ]{0,30}", 1..5), 0..6), columns in 30usize..120) {
        let table = plain(&["ONE", "TWO"], &cells, Some(columns));
        for line in table.lines() {
            prop_assert!(text::width(line) <= columns, "{line}");
        }
        prop_assert_eq!(table.lines().count(), cells.len() + 1);
    }
}
