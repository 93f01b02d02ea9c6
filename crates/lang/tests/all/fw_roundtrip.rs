//! Random syntax trees: the printed text parses to the same tree and is in the formatter's layout.

use fencewright_lang::ast::*;
use fencewright_lang::fw;
use fencewright_program::{BinaryOp, CallId, FileId, Numbers, Span, UnaryOp, Width};
use fencewright_testing::without_spans;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

// The generator. All trees are canonical: they have the form that `print` promises to preserve.

/// The name of the procedure that random programs call.
const CALLED: &str = "called";
const NOWHERE: Span = Span { file: FileId::MAIN, start: 0, end: 0, call: CallId(None) };

fn name() -> BoxedStrategy<Name> {
    let text = prop_oneof![
        4 => "[a-z]{1,3}",
        1 => "[A-Za-z_][A-Za-z0-9_]{0,30}",
        1 => Just("and".to_string()),
        1 => Just("not".to_string()),
    ];
    text.prop_filter("a keyword", |text| fw::Keyword::from_text(text).is_none())
        .prop_map(|text| Name { text, span: NOWHERE })
        .boxed()
}

fn at(kind: ExprKind) -> Expr {
    Expr { kind, span: NOWHERE }
}

fn integer() -> BoxedStrategy<Expr> {
    prop_oneof![4 => -3..10_i64, 1 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)]
        .prop_map(|value| at(ExprKind::Int(value)))
        .boxed()
}

fn boxed_index(index: BoxedStrategy<Expr>) -> BoxedStrategy<Option<Box<Expr>>> {
    prop::option::weighted(0.3, index.prop_map(Box::new)).boxed()
}

fn place(index: BoxedStrategy<Expr>) -> BoxedStrategy<Place> {
    (name(), boxed_index(index)).prop_map(|(name, index)| Place { name, index }).boxed()
}

fn thread_ref(index: BoxedStrategy<Expr>) -> BoxedStrategy<ThreadRef> {
    (name(), boxed_index(index)).prop_map(|(name, index)| ThreadRef { name, index }).boxed()
}

/// A name, or a name qualified with that of a procedure.
fn qualified() -> BoxedStrategy<Name> {
    let inner = (name(), name()).prop_map(|(outer, inner)| format!("{}.{}", outer.text, inner.text));
    prop_oneof![3 => name(), 1 => inner.prop_map(|text| Name { text, span: NOWHERE })].boxed()
}

fn register(index: BoxedStrategy<Expr>) -> BoxedStrategy<Place> {
    (qualified(), boxed_index(index)).prop_map(|(name, index)| Place { name, index }).boxed()
}

/// A call of a procedure that every file declares.
fn call(argument: BoxedStrategy<Expr>) -> BoxedStrategy<Expr> {
    prop::collection::vec(argument, 0..4)
        .prop_map(|arguments| {
            let name = Name { text: CALLED.to_string(), span: NOWHERE };
            at(ExprKind::Call(name, arguments))
        })
        .boxed()
}

fn text() -> BoxedStrategy<String> {
    prop_oneof!["[a-z \"\\\\]{0,12}", "[^\n\r]{0,60}"].boxed()
}

fn label_or_end() -> BoxedStrategy<Name> {
    prop_oneof![4 => qualified(), 1 => Just(Name { text: "end".into(), span: NOWHERE })].boxed()
}

fn range(bound: BoxedStrategy<Expr>) -> BoxedStrategy<RangeExpr> {
    (bound.clone(), bound, any::<bool>())
        .prop_map(|(low, high, inclusive)| RangeExpr { low, high, inclusive, span: NOWHERE })
        .boxed()
}

fn binders(bound: BoxedStrategy<Expr>) -> BoxedStrategy<Vec<Binder>> {
    let relation = prop_oneof![Just(BinderRelation::Less), Just(BinderRelation::NotEqual)];
    let binder = (name(), prop::option::of((relation, name())), range(bound))
        .prop_map(|(first, second, range)| Binder { first, second, range });
    prop::collection::vec(binder, 1..3).boxed()
}

fn binary_op() -> BoxedStrategy<BinaryOp> {
    use BinaryOp::*;
    prop::sample::select(vec![
        Add, Sub, Mul, Div, Rem, BitAnd, BitOr, BitXor, Shl, Shr, Eq, Ne, Lt, Le, Gt, Ge,
    ])
    .boxed()
}

fn extremum() -> BoxedStrategy<BinaryOp> {
    prop_oneof![Just(BinaryOp::Min), Just(BinaryOp::Max)].boxed()
}

fn integer_type() -> BoxedStrategy<UnaryOp> {
    let width = prop::sample::select(Width::ALL.to_vec());
    (width, any::<bool>())
        .prop_map(|(width, signed)| if signed { UnaryOp::Signed(width) } else { UnaryOp::Unsigned(width) })
        .boxed()
}

/// A range of values, a type, or neither.
fn values() -> BoxedStrategy<(Option<RangeExpr>, Option<UnaryOp>)> {
    prop_oneof![
        2 => Just((None, None)),
        1 => range(expression()).prop_map(|range| (Some(range), None)),
        1 => integer_type().prop_map(|op| (None, Some(op))),
    ]
    .boxed()
}

fn parameter() -> BoxedStrategy<Parameter> {
    (name(), prop::option::of(integer_type())).prop_map(|(name, wraps)| Parameter { name, wraps }).boxed()
}

fn expression() -> BoxedStrategy<Expr> {
    let leaf = prop_oneof![integer(), place(integer().boxed()).prop_map(|place| at(ExprKind::Place(place)))];
    leaf.prop_recursive(6, 40, 6, |inner| {
        let inner = inner.boxed();
        let boxed = || inner.clone().prop_map(Box::new);
        let unary = prop_oneof![Just(UnaryOp::Neg), Just(UnaryOp::Not), Just(UnaryOp::BitNot)];
        let connective = prop_oneof![Just(BinaryOp::And), Just(BinaryOp::Or)];
        let quantifier = prop_oneof![Just(Quantified::Exists), Just(Quantified::Forall)];
        prop_oneof![
            1 => place(inner.clone()).prop_map(|p| at(ExprKind::Place(p))),
            1 => (unary, boxed()).prop_map(|(op, e)| at(ExprKind::Unary(op, e))),
            4 => (binary_op(), boxed(), boxed()).prop_map(|(op, l, r)| at(ExprKind::Binary(op, l, r))),
            3 => (connective, prop::collection::vec(inner.clone(), 2..9)).prop_map(|(op, e)| fw::chain(op, e)),
            1 => (place(inner.clone()), boxed(), boxed()).prop_map(|(p, o, n)| at(ExprKind::Cas(p, o, n))),
            1 => (place(inner.clone()), boxed()).prop_map(|(p, v)| at(ExprKind::Swap(p, v))),
            1 => (place(inner.clone()), boxed()).prop_map(|(p, v)| at(ExprKind::FetchAdd(p, v))),
            1 => (thread_ref(inner.clone()), label_or_end()).prop_map(|(t, l)| at(ExprKind::At(t, l))),
            1 => (thread_ref(inner.clone()), register(inner.clone())).prop_map(|(t, r)| at(ExprKind::Register(t, r))),
            1 => call(inner.clone()),
            2 => (boxed(), boxed(), boxed()).prop_map(|(c, a, b)| at(ExprKind::If(c, a, b))),
            1 => (extremum(), boxed(), boxed()).prop_map(|(op, a, b)| at(ExprKind::Binary(op, a, b))),
            1 => (integer_type(), boxed()).prop_map(|(op, e)| at(ExprKind::Unary(op, e))),
            1 => (quantifier, binders(inner.clone()), boxed())
                .prop_map(|(q, b, e)| at(ExprKind::Quantified(q, b, e))),
        ]
    })
    .boxed()
}

fn constant() -> BoxedStrategy<Const> {
    (name(), expression()).prop_map(|(name, value)| Const { name, value }).boxed()
}

fn declarator(shared: bool) -> BoxedStrategy<Declarator> {
    let size = prop_oneof![
        expression().prop_map(ArraySize::Length),
        range(expression()).prop_map(ArraySize::Indices)
    ];
    let size = prop::option::of((size, any::<bool>().prop_map(move |open| open && shared)));
    let init = prop_oneof![
        expression().prop_map(Initial::Value),
        prop::option::of(range(expression())).prop_map(Initial::Any),
        prop::collection::vec(expression(), 0..40).prop_map(Initial::List),
    ];
    (name(), size, values(), prop::option::of(init))
        .prop_map(|(name, size, (range, wraps), init)| Declarator {
            name,
            open: size.as_ref().is_some_and(|(_, open)| *open),
            size: size.map(|(size, _)| size),
            range,
            wraps,
            init,
            span: NOWHERE,
        })
        .boxed()
}

fn mutex() -> BoxedStrategy<Declarator> {
    let plain = |d: Declarator| Declarator { open: false, range: None, wraps: None, init: None, ..d };
    declarator(true).prop_map(plain).boxed()
}

fn simple_statement() -> BoxedStrategy<StatementKind> {
    use StatementKind::*;
    let operation = prop_oneof![
        (place(expression()), expression(), expression()).prop_map(|(p, o, n)| at(ExprKind::Cas(
            p,
            Box::new(o),
            Box::new(n)
        ))),
        (place(expression()), expression()).prop_map(|(p, v)| at(ExprKind::Swap(p, Box::new(v)))),
    ];
    prop_oneof![
        1 => constant().prop_map(Const),
        1 => prop::collection::vec(declarator(false), 1..6).prop_map(Var),
        6 => (place(expression()), expression()).prop_map(|(p, e)| Assign(p, e)),
        1 => (place(expression()), prop::option::of(range(expression()))).prop_map(|(p, r)| Havoc(p, r)),
        1 => operation.prop_map(Expr),
        4 => prop::sample::select(vec![Skip, Fence, StoreFence, Lock(None), Unlock(None), Break, Continue, Stop]),
        1 => place(expression()).prop_map(|p| Lock(Some(p))),
        1 => place(expression()).prop_map(|p| Unlock(Some(p))),
        1 => prop::option::of(expression()).prop_map(Return),
        1 => call(expression()).prop_map(Expr),
        1 => expression().prop_map(Assume),
        1 => (expression(), prop::option::of(text())).prop_map(|(e, t)| Assert(e, t)),
        1 => expression().prop_map(Await),
        1 => name().prop_map(Goto),
    ]
    .boxed()
}

fn statement_of(kind: impl Strategy<Value = StatementKind> + 'static) -> BoxedStrategy<Statement> {
    (prop::collection::vec(name(), 0..3), kind)
        .prop_map(|(labels, kind)| Statement { labels, kind, span: NOWHERE })
        .boxed()
}

fn block(statement: BoxedStrategy<Statement>) -> BoxedStrategy<Block> {
    (prop::collection::vec(statement, 0..5), prop::option::weighted(0.1, name()))
        .prop_map(|(mut statements, last)| {
            if let Some(label) = last {
                statements.push(Statement { labels: vec![label], kind: StatementKind::Empty, span: NOWHERE });
            }
            Block { statements, span: NOWHERE }
        })
        .boxed()
}

fn statement() -> BoxedStrategy<Statement> {
    use StatementKind::*;
    statement_of(simple_statement())
        .prop_recursive(4, 20, 4, |inner| {
            let body = block(inner.boxed());
            let compound = prop_oneof![
                body.clone().prop_map(Atomic),
                body.clone().prop_map(Snapshot),
                (expression(), body.clone(), prop::option::of(body.clone()))
                    .prop_map(|(c, t, e)| If(c, t, e)),
                (expression(), body.clone()).prop_map(|(c, b)| While(c, b)),
                body.clone().prop_map(Loop),
                (name(), range(expression()), body.clone()).prop_map(|(n, r, b)| For(n, r, b)),
                prop::collection::vec(body.clone(), 1..4).prop_map(Choose),
                body.prop_map(Block),
            ];
            statement_of(compound)
        })
        .boxed()
}

fn code_place() -> BoxedStrategy<Expr> {
    (thread_ref(expression()), label_or_end()).prop_map(|(t, l)| at(ExprKind::At(t, l))).boxed()
}

fn property() -> BoxedStrategy<Property> {
    use PropertyKind::*;
    let kind = prop::sample::select(vec![Forbid, Invariant, FinallyExists, FinallyNever, FinallyForall]);
    let binders = prop::option::of(binders(expression())).prop_map(Option::unwrap_or_default);
    (prop::option::of(name()), kind, binders, expression())
        .prop_map(|(name, kind, binders, formula)| Property { name, kind, binders, formula, span: NOWHERE })
        .boxed()
}

fn item() -> BoxedStrategy<Item> {
    let target = prop_oneof![
        Just(CostTarget::Fence),
        Just(CostTarget::StoreFence),
        Just(CostTarget::Swap),
        code_place().prop_map(CostTarget::Place)
    ];
    let numbers = prop::sample::select(vec![Numbers::Int, Numbers::Nat, Numbers::Real]);
    let family = prop::option::of((name(), range(expression())));
    prop_oneof![
        1 => constant().prop_map(Item::Const),
        1 => numbers.prop_map(|numbers| Item::Numbers(numbers, NOWHERE)),
        1 => prop::collection::vec(declarator(true), 1..4).prop_map(Item::Shared),
        1 => prop::collection::vec(mutex(), 1..4).prop_map(Item::Mutex),
        2 => (name(), prop::collection::vec(parameter(), 0..4), block(statement())).prop_map(
            |(name, parameters, body)| Item::Procedure(Procedure { name, parameters, body, span: NOWHERE })
        ),
        3 => (name(), family, block(statement())).prop_map(|(name, family, body)| {
            Item::Thread(Thread { name, family, body, span: NOWHERE })
        }),
        2 => property().prop_map(Item::Property),
        1 => prop::collection::vec(expression(), 0..4).prop_map(|f| Item::Predicates(f, NOWHERE)),
        1 => code_place().prop_map(|place| Item::Spare(place, NOWHERE)),
        1 => (target, expression()).prop_map(|(target, price)| Item::Cost(target, price, NOWHERE)),
    ]
    .boxed()
}

fn file() -> BoxedStrategy<File> {
    let called = || Procedure {
        name: Name { text: CALLED.to_string(), span: NOWHERE },
        parameters: Vec::new(),
        body: Block { statements: Vec::new(), span: NOWHERE },
        span: NOWHERE,
    };
    let items = prop::collection::vec(item(), 0..5);
    items
        .prop_map(move |mut items| {
            items.insert(0, Item::Procedure(called()));
            File { items }
        })
        .boxed()
}

// The comparison.

fn parse(text: &str) -> String {
    let (file, diagnostics) = fw::parse(text);
    assert!(diagnostics.is_empty(), "{diagnostics:?} in\n{text}");
    without_spans(&file)
}

fn tokens(text: &str) -> Vec<&str> {
    let span = |s: Span| &text[s.range()];
    fw::lex(text, usize::MAX).tokens.into_iter().map(|token| span(token.span)).collect()
}

fn comments(text: &str) -> Vec<&str> {
    let span = |s: Span| &text[s.range()];
    fw::lex(text, usize::MAX).comments.into_iter().map(span).collect()
}

/// A text with other white space and comments between its tokens.
fn disturb(text: &str, noise: &[u8]) -> String {
    const GAPS: &[&str] = &[
        " ",
        " ",
        " ",
        "  ",
        "\t",
        "\n",
        "\n",
        "\n\n",
        "\r\n",
        "\n \n\n",
        " // one\n",
        "\n// two \n",
        " /* three */ ",
        "\n/* four */\n",
        " /* five\n   six */",
        "\n\n// seven\n\n",
        " /* eight *//* nine */ // ten\n",
        " /**/\n\n",
    ];
    let mut noise = noise.iter().cycle();
    let mut disturbed = String::new();
    for token in tokens(text) {
        let gap = *noise.next().expect("it never ends") as usize;
        disturbed.push_str(GAPS[gap % GAPS.len()]);
        disturbed.push_str(token);
    }
    disturbed
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn printing_and_parsing_preserve_the_tree(file in file()) {
        let text = fw::print(&file);
        prop_assert_eq!(parse(&text), without_spans(&file), "{}", text);
    }

    #[test]
    fn printed_text_is_formatted(file in file()) {
        let text = fw::print(&file);
        prop_assert_eq!(fw::format(&text).expect("it has no errors"), text);
    }

    #[test]
    fn formatting_changes_only_white_space_and_is_idempotent(
        file in file(),
        noise in prop::collection::vec(any::<u8>(), 1..200),
    ) {
        let text = disturb(&fw::print(&file), &noise);
        let formatted = fw::format(&text).expect("it has no errors");
        prop_assert_eq!(tokens(&formatted), tokens(&text));
        // The formatter ends all lines like the first one, also inside comments, so line ends are ignored here.
        let [unix, unix_before] = [&formatted, &text].map(|text| text.replace("\r\n", "\n"));
        prop_assert_eq!(comments(&unix), comments(&unix_before));
        prop_assert_eq!(parse(&formatted), parse(&text));
        prop_assert!(!unix.contains("\n\n\n"), "{}", formatted);
        prop_assert_eq!(&fw::format(&formatted).expect("it has no errors"), &formatted);
    }
}
