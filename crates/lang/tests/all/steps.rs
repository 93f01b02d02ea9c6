//! Statement groups that represent a single statement of another language: lowering, printing, and places for fences.

use fencewright_lang::ast::{Block, File, Item, Statement, StatementKind};
use fencewright_lang::places::{Side, Site, Sites, places};
use fencewright_lang::{Awaits, Loaded, front_end, load, lower};
use fencewright_program::{Call, CallId, Span};

fn loaded(text: &str) -> Loaded {
    load("a.fw", text.as_bytes(), None, &[]).unwrap_or_else(|e| panic!("{:?}", e.diagnostics))
}

fn body(file: &mut File) -> &mut Vec<Statement> {
    let thread = file.items.iter_mut().find_map(|item| match item {
        Item::Thread(thread) => Some(&mut thread.body),
        _ => None,
    });
    &mut thread.expect("a thread").statements
}

/// Groups statements into one.
fn group(statements: Vec<Statement>) -> Statement {
    let (first, last) = (statements[0].span, statements[statements.len() - 1].span);
    let span = first.to(last);
    Statement { labels: Vec::new(), kind: StatementKind::Steps(Block { statements, span }), span }
}

const TEXT: &str = "shared x, y; thread t { var r; r = x; l: y = r; if r == 1 { x = 2; } goto l; }";

#[test]
fn groups_of_steps_are_lowered_and_printed_as_their_statements() {
    let Loaded { mut file, program, .. } = loaded(TEXT);
    let all = std::mem::take(body(&mut file));
    *body(&mut file) = vec![group(all)];
    let lowered = lower::lower(&file, &[]).expect("it can be lowered");
    assert_eq!(format!("{lowered:?}"), format!("{program:?}"));
    let printed = fencewright_lang::fw::print(&file);
    assert_eq!(printed, fencewright_lang::fw::print(&loaded(TEXT).file));
}

/// The side of each place of a program, and the text of the statement beside it.
fn sides(loaded: &Loaded) -> Vec<(Side, String)> {
    let placed = places(loaded, &[]).expect("places");
    let text = |span: Span| loaded.sources.text(span).to_owned();
    placed.places.iter().map(|place| (place.side, text(place.statement))).collect()
}

#[test]
fn no_fence_stands_between_them_but_inside_their_blocks() {
    let mut program =
        loaded("shared x, y; thread t { var r; r = x; if r == 1 { y = 1; x = 2; } x = 3; y = 4; }");
    let mut all = std::mem::take(body(&mut program.file));
    let end = all.split_off(4);
    let steps = group(all.split_off(1));
    let around = steps.span;
    all.push(steps);
    all.extend(end);
    *body(&mut program.file) = all;
    let here = |side, text: &str| (side, text.to_owned());
    let whole = program.sources.text(around).to_owned();
    // Without sites there are places beside every statement, except those inside a group.
    let expected = [
        here(Side::Before, &whole),
        here(Side::Before, "y = 1;"),
        here(Side::Before, "x = 2;"),
        here(Side::After, "x = 2;"),
        here(Side::Before, "y = 4;"),
        here(Side::After, "y = 4;"),
    ];
    assert_eq!(sides(&program), expected);
    // With sites there are places only beside the statements named there, including one after a statement that no other statement follows.
    let mut sites = Sites::default();
    sites.insert(around, Site { before: true, after: true, bare: false, uses: 0 });
    program.sites = Some(sites);
    assert_eq!(sides(&program), [here(Side::Before, &whole), here(Side::After, &whole)]);
}

#[test]
fn statements_at_the_same_position_have_their_own_effects() {
    let mut program = loaded("shared x; thread t { if x == 1 { x = 2; } }");
    let all = std::mem::take(body(&mut program.file));
    let span = all[0].span;
    let mut steps = group(all);
    if let StatementKind::Steps(block) = &mut steps.kind
        && let StatementKind::If(_, then, _) = &mut block.statements[0].kind
    {
        then.statements[0].span = span;
    }
    *body(&mut program.file) = vec![steps];
    program.program = lower::lower(&program.file, &[]).expect("it can be lowered");
    let mut sites = Sites::default();
    sites.insert(span, Site { before: true, after: true, bare: false, uses: 0 });
    program.sites = Some(sites);
    let sides: Vec<Side> = sides(&program).into_iter().map(|(side, _)| side).collect();
    assert_eq!(sides, [Side::Before, Side::After]);
}

#[test]
fn copies_of_a_procedure_share_positions_and_record_their_calls() {
    let mut program = loaded("shared x; thread t { x = 1; x = 1; }");
    let written = body(&mut program.file)[0].span;
    program.calls = ["f(1)", "f(2)"].map(|what| Call { what: what.into(), at: Span::default() }).to_vec();
    let call = |n: u32| CallId(std::num::NonZeroU32::new(n));
    for (n, statement) in body(&mut program.file).iter_mut().enumerate() {
        statement.span = written.called(call(n as u32 + 1));
    }
    let stop = fencewright_lang::Stop::never();
    program.program = lower::lower_unless(&stop, &program.file, &program.calls, &[], Awaits::Spin)
        .expect("it can be lowered");
    let shown: Vec<Vec<&str>> = program.program.threads[0]
        .edges
        .iter()
        .map(|edge| program.program.calls_to(edge.span).map(|call| call.what.as_str()).collect())
        .collect();
    assert_eq!(shown, [["f(1)"], ["f(2)"]]);
    // In .fw, places of one thread at the same point of the text stay separate: before and after each copy, because the copies belong to different
    // calls. The importer of C duplicates code, so there they are merged.
    assert_eq!(places(&program, &[]).expect("places").places.len(), 4);
    program.front_end = front_end::named("c").expect("C is known");
    let joined = places(&program, &[]).expect("places").places;
    let edges: Vec<usize> = joined.iter().map(|place| place.edges.len()).collect();
    assert_eq!(edges, [2, 2]);
}
