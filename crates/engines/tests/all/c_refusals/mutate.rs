//! Mutations of C programs: unsupported constructs inserted, tokens deleted, exchanged or replaced, text cut off.

use std::ops::Range;

use fencewright_testing::Random;

/// Statements that are refused, or that cause the surrounding code to be refused.
const STATEMENTS: &[&str] = &[
    "nobody_wrote_this(1);",
    "hash_of(hash_of(3));",
    "double fl = 1.5; fl = fl * 2;",
    "float fa[2] = { 1.0f };",
    "recursive(3);",
    "odd_or_even(3);",
    "__builtin_return_address(0);",
    "__builtin_frobnicate(1, 2);",
    "__asm__ volatile (\"rdtsc\" : : : \"memory\");",
    "__asm__ volatile (\"lock; xaddl %0, %1\" : \"+r\" (nothing), \"+m\" (nowhere) : : \"memory\");",
    "asm goto (\"jmp %l0\" : : : : inside);",
    "struct { unsigned a : 3; unsigned b : 5; } bits = { 1 }; bits.a++;",
    "goto nowhere_at_all;",
    "again: if (1) goto again;",
    "goto into; { int z = ({ into: 3; }); (void)z; }",
    "int vl = 3; int vla[vl]; vla[vl] = 1;",
    "undeclared = undeclared + 1;",
    "undeclared->field[3].other = 1;",
    "int self = self;",
    "char *text = \"abc\"; text[1] = 'x';",
    "int *null = 0; *null = 1;",
    "((void (*)(void))12)();",
    "void (*fp)(int) = 0; fp(1);",
    "switch (1) { case 1: hash_of(1); default: break; case 1: break; }",
    "switch (hash_of(1)) { int skipped = 1; case 2: skipped++; }",
    "while (1) { hash_of(2); }",
    "for (int i = 0; i < 8; i++) calls_hash(i);",
    "for (int i = 0; i < 8; i++) { if (i == 4) continue; calls_hash(i); }",
    "do { calls_hash(1); } while (calls_hash(2));",
    "for (int i = 0; i < 3; i++) switch (i) { case 1: calls_hash(i); break; default: continue; }",
    "break;",
    "continue;",
    "case 3: ;",
    "default: ;",
    "return calls_hash(1);",
    "return;",
    "return 1, 2.0;",
    "union { int i; float f; } u = { 1 }; u.f = 2;",
    "_Static_assert(0, \"no\");",
    "_Static_assert(sizeof(int) == 4, \"yes\");",
    "enum { LATE = sizeof(struct later_on) };",
    "typedef int integer_t; integer_t it = (integer_t)1;",
    "_Thread_local static int tl = 3; tl++;",
    "int big[1000000000]; big[3] = 1;",
    "int matrix[3][4] = { { 1 }, [2] = { [1] = 7 } }; matrix[1][2] = matrix[2][1];",
    "unsigned long long u = 18446744073709551615ull; u *= u; u <<= 65;",
    "int zero = 0; int d = 1 / zero; d = 1 % zero; d = 1 << 40;",
    "__int128 wide = 1; wide <<= 100;",
    "void *m = malloc(hash_of(1)); free(m); free(m);",
    "int local; int *escaped = &local; escaped += 3; *escaped = 1;",
    "pthread_t late; pthread_create(&late, 0, nobody, 0);",
    "pthread_t late; pthread_create(&late, 0, thread_body, &late); pthread_join(late, 0);",
    "pthread_exit(0);",
    "exit(3);",
    "abort();",
    "longjmp(0, 1);",
    "printf(\"%d\", calls_hash(1));",
    "memcpy(0, 0, 3);",
    "__sync_fetch_and_add(1, 2);",
    "atomic_thread_fence(99);",
    "({ calls_hash(1); });",
    "({ goto out_of_it; 1; }); out_of_it: ;",
    "if (calls_hash(1)) { calls_hash(2); } else calls_hash(3);",
    "int nested(int a) { return a; } nested(1);",
    "{ { { calls_hash(7); } } }",
    "void *labels[] = { &&one, &&two }; goto *labels[0]; one: two: ;",
    "va_list list; va_start(list, list);",
    "__attribute__((cleanup(hash_of))) int cleaned = 1;",
    "struct incomplete_thing thing;",
    "struct flexible { int n; int rest[]; } f = { 1 }; f.rest[0] = 1;",
    "_Generic(1, int: calls_hash, default: 0)(1);",
    "_Atomic int at = 1; at += 2; at = at++ + ++at;",
    "extern int elsewhere; elsewhere = 1;",
    "HASHES(1)",
    "LOOPED(calls_hash(1))",
    "UNBALANCED(1",
    "#if 1",
    "#endif",
    "#else",
    "#define X X X",
    "#include \"no_such_file.h\"",
    "#include <math.h>",
    "#error no",
    "#pragma weak x",
];

/// Statements that are well typed, so that they can be refused only during translation.
const TYPED: &[&str] = &[
    "calls_hash(1);",
    "recursive(3);",
    "odd_or_even(3);",
    "for (int i = 0; i < 8; i++) calls_hash(i);",
    "for (int i = 0; i < 8; i++) { if (i == 4) continue; adds(i, 1); if (i == 6) break; }",
    "for (int i = 0; i < 3; i++) switch (i) { case 1: calls_hash(i); break; default: continue; }",
    "switch (any()) { case 1: calls_hash(1); case 2 ... 5: break; default: adds(1, 2); }",
    "switch (any()) { int skipped; case 1: skipped = 2; for (;;) { case 2: skipped++; if (any()) break; } }",
    "while (any()) { if (any()) continue; recursive(1); }",
    "do { if (any()) continue; adds(1, 1); } while (any());",
    "int i = any() ? calls_hash(1) : recursive(2);",
    "int i = any() && calls_hash(1); i = any() || recursive(i);",
    "int i = ({ for (int k = 0; k < 4; k++) adds(k, 1); any(); }); shared_cell = i;",
    "back: if (any()) goto back;",
    "if (any()) goto over; { int passed = any(); over: shared_cell = passed; }",
    "for (int i = 0; i < any(); i++) { early: if (i == 2) goto early; }",
    "double fl = 1.5; fl = fl * 2;",
    "float fa[2] = { 1.0f }; fa[1] = fa[0];",
    "struct { unsigned a : 3; unsigned b : 5; } bits = { 1 }; bits.a++;",
    "int vl = 3; int vla[vl]; vla[1] = 1; shared_cell = vla[1];",
    "int n = any(); int vla[n]; vla[1] = 1;",
    "__asm__ volatile (\"rdtsc\" : : : \"memory\");",
    "__asm__ volatile (\"mfence\" : : : \"memory\");",
    "__asm__ volatile (\"lock; incl %0\" : \"+m\" (shared_cell) : : \"memory\");",
    "void (*fp)(void) = 0; if (any()) fp = shared_function; fp();",
    "int (*fp)(int) = any() ? calls_hash : recursive; fp(1);",
    "int *null = 0; *null = 1;",
    "int *p = &shared_cell; if (any()) p = 0; *p = 2;",
    "int *p = malloc(sizeof *p); *p = any(); free(p); shared_cell = *p;",
    "for (int i = 0; i < 3; i++) { int *p = malloc(4 * any()); p[i] = 1; }",
    "int local = 1; shared_pointer = &local; *shared_pointer += 1;",
    "int local[4]; shared_pointer = local + any(); *shared_pointer = 1;",
    "struct pair { int a, b; } one = { 1, any() }, two = one; shared_cell = two.b;",
    "struct pair { int a; int *b; } one = { 1, &shared_cell }; *one.b = one.a; shared_pointer = &one.a;",
    "union { int i; unsigned char c[4]; } u = { 1 }; u.c[1] = 2; shared_cell = u.i;",
    "union { int i; float f; } u = { 1 }; u.f = 2;",
    "unsigned long long u = 18446744073709551615ull; u *= u + any(); u <<= 65;",
    "int zero = 0; int d = 1 / zero; d = 1 % any(); d = 1 << 40;",
    "int self = self; if (self) shared_cell = self;",
    "pthread_t late; pthread_create(&late, 0, thread_body, &late); pthread_join(late, 0);",
    "pthread_t late; for (int i = 0; i < 3; i++) pthread_create(&late, 0, thread_body, &late);",
    "pthread_t late[2]; int i = 0; while (i < 2) { pthread_create(&late[i], 0, thread_counts, &i); i++; } pthread_join(late[0], 0);",
    "pthread_t late; if (any()) { pthread_create(&late, 0, thread_body, 0); calls_hash(1); }",
    "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&m); if (any()) pthread_mutex_unlock(&m);",
    "pthread_exit(0);",
    "exit(3);",
    "abort();",
    "_Atomic int at = 1; at += any(); shared_cell = at++;",
    "while (shared_cell) ;",
    "while (!__sync_bool_compare_and_swap(&shared_cell, 0, 1)) adds(1, 1);",
    "static int kept; kept++; shared_pointer = &kept;",
    "char text[4] = \"abc\"; text[any()] = 'x';",
    "memset(&shared_cell, 0, sizeof shared_cell); memcpy(&shared_cell, shared_pointer, 4);",
    "HASHES(1)",
    "LOOPED(calls_hash(1))",
    "LOOPED(adds(looped, any()))",
    "assert(any());",
];

/// Expressions that are refused, or unusual.
const EXPRESSIONS: &[&str] = &[
    "hash_of(1)",
    "calls_hash(1)",
    "recursive(2)",
    "1.5",
    "1e400",
    "0x",
    "99999999999999999999",
    "'ab'",
    "\"text\"",
    "L\"wide\"",
    "undeclared",
    "&undeclared",
    "*0",
    "(*(int *)12)",
    "(int *)1",
    "(double)1",
    "(char)300",
    "sizeof(struct later_on)",
    "sizeof(int[hash_of(1)])",
    "&&label",
    "({ hash_of(1); 2; })",
    "({ goto gone; 1; })",
    "({ for (int i = 0; i < 4; i++) calls_hash(i); 1; })",
    "(1 ? hash_of(1) : 2)",
    "(hash_of(1) ? 1 : calls_hash(2))",
    "(hash_of(0) && calls_hash(1))",
    "(1 ?: hash_of(1))",
    "(1, hash_of(1))",
    "(struct { int a; }){ 1 }",
    "(int[]){ 1, 2 }[1]",
    "__builtin_frobnicate(1)",
    "__builtin_choose_expr(1, 2, 3)",
    "__builtin_offsetof(struct later_on, a)",
    "_Generic(1, int: 1, int: 2)",
    "__func__",
    "main",
    "main()",
    "(1 / 0)",
    "(1 << 99)",
    "-9223372036854775808",
    "1 = 2",
    "x++ + ++x",
    "f()()()",
    "a[1][2][3]",
    "->",
    "malloc(8)",
    "__VERIFIER_nondet_int()",
    "pthread_self()",
    "sizeof",
    "{ 1, 2 }",
    "[3] = 1",
    ".a = 1",
    "HASHES(1)",
    "HASHES(",
    "__COUNTER__",
];

/// The declarations that the statements and expressions above use.
const PRELUDE: &str = "#include <pthread.h>\n#include <stdlib.h>\n#include <string.h>\n#include <assert.h>\n\
int hash_of(int);\n\
int __VERIFIER_nondet_int(void);\n\
static int shared_cell, *shared_pointer = &shared_cell;\n\
static void shared_function(void) { shared_cell = 1; }\n\
static int any(void) { return __VERIFIER_nondet_int(); }\n\
static int adds(int a, int b) { if (a < b) return a; shared_cell = a + b; return shared_cell; }\n\
static void *thread_counts(void *a) { int *n = a; for (int i = 0; i < *n; i++) adds(i, *n); return n; }\n\
static int calls_hash(int x) { return hash_of(x); }\n\
static int recursive(int n) { return n ? recursive(n - 1) : 0; }\n\
static int odd_or_even(int n);\n\
static int even_or_odd(int n) { return odd_or_even(n); }\n\
static int odd_or_even(int n) { return even_or_odd(n); }\n\
static void *thread_body(void *a) { for (int i = 0; i < 2; i++) calls_hash(i); return a; }\n\
#define HASHES(x) calls_hash(x);\n\
#define LOOPED(x) for (int looped = 0; looped < 3; looped++) { x; }\n";

/// Declarations at file scope.
const DECLARATIONS: &[&str] = &[
    "int from_function = hash_of(1);",
    "float global_float = 1.5;",
    "struct bits { int a : 3, : 0, b : 40; } global_bits;",
    "int twice; float twice;",
    "int open[];",
    "int negative[-1];",
    "int value = ({ 1; });",
    "static int calls_itself(void) { return calls_itself(); } int use = 1;",
    "void main(void);",
    "int main(int);",
    "struct s { struct s inside; };",
    "struct s; struct s incomplete;",
    "union mixed { char c[8]; long l; void *p; } mixed = { .l = 3 };",
    "enum wide { A = 1, A = 2 };",
    "typedef struct { int x; } T; typedef T T; T *T;",
    "__attribute__((constructor)) static void early(void) { hash_of(1); }",
    "int arr[3] = { 1, 2, 3, 4, [7] = 1 };",
    "char text[2] = \"longer than two\";",
    "int *pointer = &pointer;",
    "_Atomic struct { int a, b; } both;",
    "#define main not_main",
    "#define int",
    "#define static hash_of(1);",
    "#define return (void)calls_hash(1); return",
    "#define while LOOPED(1) while",
    "#define for(...) for (int k = 0; k < 3; k++) for (__VA_ARGS__)",
    "#undef assert\n#define assert(x) hash_of(x)",
    "#define pthread_create(a, b, c, d) calls_hash(1)",
    "#define NULL hash_of(0)",
];

/// Tokens to insert in the wrong places.
const TOKENS: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    "=",
    "==",
    "*",
    "&",
    "->",
    ".",
    "?",
    ":",
    "#",
    "##",
    "\\",
    "\"",
    "'",
    "/*",
    "//",
    "\n",
    "if",
    "else",
    "for",
    "while",
    "do",
    "switch",
    "case",
    "default",
    "goto",
    "return",
    "break",
    "continue",
    "int",
    "void",
    "struct",
    "union",
    "enum",
    "static",
    "extern",
    "_Atomic",
    "const",
    "typedef",
    "sizeof",
    "float",
    "0",
    "1",
    "-1",
    "4294967296",
    "main",
    "...",
    "@",
    "$",
    "\u{e4}",
    "\u{0}",
];

/// The text with one to three mutations.
pub fn mutated(random: &mut Random, text: &str) -> String {
    let mut changed = text.to_owned();
    let changes = if random.one_in(3) { 2 + random.below(2) } else { 1 };
    for _ in 0..changes {
        changed = once(random, &changed);
    }
    PRELUDE.to_owned() + &changed
}

fn once(random: &mut Random, text: &str) -> String {
    let source = Source { text, tokens: tokens(text) };
    if source.tokens.is_empty() {
        return text.to_owned();
    }
    let (statement, typed) = (*random.pick(STATEMENTS), *random.pick(TYPED));
    let (value, declaration) = (*random.pick(EXPRESSIONS), *random.pick(DECLARATIONS));
    let token = *random.pick(TOKENS);
    match random.below(28) {
        0..=2 => source.insert_behind(random, &[";", "{", "}"], statement),
        3..=9 => source.insert_behind(random, &[";", "{"], &format!("{{ {typed} }}")),
        10..=12 => source.alike(random),
        13..=14 => source.operand(random, value),
        15 => format!("{declaration}\n{text}"),
        16 => source.insert_behind(random, &["}"], declaration),
        17 => source.surround(random),
        18..=19 => source.without_statement(random),
        20..=21 => source.twice(random),
        22 => with(text, source.any(random), ""),
        23 => with(text, source.any(random), &format!(" {token} ")),
        24 => with(text, source.any(random), &text[source.any(random)]),
        25 => text[..source.any(random).end].to_owned(),
        26 => source.without_some(random),
        _ => source.swap(random),
    }
}

/// A text that is being mutated.
struct Source<'t> {
    text: &'t str,
    tokens: Vec<Range<usize>>,
}

impl Source<'_> {
    fn any(&self, random: &mut Random) -> Range<usize> {
        random.pick(&self.tokens).clone()
    }

    /// The end offsets of the tokens with these texts.
    fn ends(&self, words: &[&str]) -> Vec<usize> {
        let is_one = |token: &&Range<usize>| words.contains(&&self.text[(*token).clone()]);
        self.tokens.iter().filter(is_one).map(|token| token.end).collect()
    }

    /// The range from the end of one statement to the end of one of the next `most` statements.
    fn statements(&self, random: &mut Random, most: usize) -> Option<Range<usize>> {
        let ends = self.ends(&[";", "{", "}"]);
        let first = random.below(ends.len().checked_sub(1).filter(|n| *n > 0)?);
        let last = (first + 1 + random.below(most)).min(ends.len() - 1);
        Some(ends[first]..ends[last])
    }

    fn insert_behind(&self, random: &mut Random, words: &[&str], inserted: &str) -> String {
        let ends = self.ends(words);
        let at = if ends.is_empty() { self.text.len() } else { *random.pick(&ends) };
        with(self.text, at..at, &format!("\n{inserted}\n"))
    }

    /// Replaces a number, operator or keyword by another one of the same kind.
    fn alike(&self, random: &mut Random) -> String {
        const ALIKE: &[&[&str]] = &[
            &["0", "1", "2", "3", "7", "-1", "64", "2147483647"],
            &["+", "-", "*", "/", "%", "&", "|", "^"],
            &["<", ">"],
            &["int", "long", "char", "unsigned", "short", "_Bool"],
            &["break", "continue", "return 0"],
            &["static", "volatile", "_Atomic"],
            &["if", "while"],
        ];
        let alike =
            |token: &Range<usize>| ALIKE.iter().find(|words| words.contains(&&self.text[token.clone()]));
        let places: Vec<_> = self.tokens.iter().filter_map(|token| Some((token, *alike(token)?))).collect();
        if places.is_empty() {
            return self.text.to_owned();
        }
        let (token, words) = *random.pick(&places);
        let word = random.pick(words);
        with(self.text, token.clone(), word)
    }

    /// Replaces a name or a number by `value`.
    fn operand(&self, random: &mut Random, value: &str) -> String {
        let is_operand = |token: &&Range<usize>| self.text[(*token).clone()].starts_with(is_word);
        let operands: Vec<_> = self.tokens.iter().filter(is_operand).collect();
        match operands.as_slice() {
            [] => self.text.to_owned(),
            operands => with(self.text, (*random.pick(operands)).clone(), value),
        }
    }

    /// Wraps some statements in a loop, a case or an expression.
    fn surround(&self, random: &mut Random) -> String {
        let (before, behind) = *random.pick(&[
            ("for (int around = 0; around < 3; around++) {", "}"),
            ("switch (1) { case 1:", "}"),
            ("while (calls_hash(1)) {", "}"),
            ("({", "});"),
            ("if (hash_of(1)) {", "} else { calls_hash(1); }"),
        ]);
        let Some(range) = self.statements(random, 3) else { return self.text.to_owned() };
        let inside = &self.text[range.clone()];
        with(self.text, range, &format!("\n{before} {inside} {behind}\n"))
    }

    fn without_statement(&self, random: &mut Random) -> String {
        let range = self.statements(random, 1);
        range.map_or_else(|| self.text.to_owned(), |range| with(self.text, range, ";"))
    }

    /// Copies a statement to another place.
    fn twice(&self, random: &mut Random) -> String {
        let Some(range) = self.statements(random, 1) else { return self.text.to_owned() };
        self.insert_behind(random, &[";"], &self.text[range])
    }

    /// Deletes a few tokens.
    fn without_some(&self, random: &mut Random) -> String {
        let first = random.below(self.tokens.len());
        let last = (first + random.below(12)).min(self.tokens.len() - 1);
        with(self.text, self.tokens[first].start..self.tokens[last].end, "")
    }

    /// Exchanges two tokens.
    fn swap(&self, random: &mut Random) -> String {
        let (one, other) = (self.any(random), self.any(random));
        let (first, second) = if one.start <= other.start { (one, other) } else { (other, one) };
        if first == second {
            return self.text.to_owned();
        }
        let late = with(self.text, second.clone(), &self.text[first.clone()]);
        with(&late, first, &self.text[second])
    }
}

/// The text with a range replaced.
fn with(text: &str, range: Range<usize>, inserted: &str) -> String {
    format!("{}{inserted}{}", &text[..range.start], &text[range.end..])
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The approximate token ranges of C.
fn tokens(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((start, c)) = rest.next() {
        if c.is_whitespace() {
            continue;
        }
        let mut end = start + c.len_utf8();
        if is_word(c) {
            while let Some((at, c)) = rest.next_if(|(_, c)| is_word(*c)) {
                end = at + c.len_utf8();
            }
        } else if c == '"' {
            for (at, c) in rest.by_ref() {
                end = at + c.len_utf8();
                if c == '"' || c == '\n' {
                    break;
                }
            }
        }
        found.push(start..end);
    }
    found
}
