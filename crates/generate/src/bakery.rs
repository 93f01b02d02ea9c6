//! Lamport's bakery without arithmetic: CONTEXT24 section 4, Algorithm 1.
//!
//! Tickets are only compared, never incremented: a thread draws a number and draws again unless the number is larger than every ticket that the
//! thread reads. The algorithm as printed fails even under SC, so this program differs from it:
//! - both loops skip the thread itself;
//! - line 5 also retries if the tickets are equal, so that an accepted ticket is never 0, the value of FALSE;
//! - line 17 lets the thread with the smaller number go first if two tickets are equal;
//! - the exit resets the ticket: `ticket[me] = 0`.
//!
//! FALSE is 0 and TRUE is 1. `chosen` is TRUE initially, so that no thread waits for a thread that has not begun to draw a ticket.

use crate::text::Text;

/// The bakery for this many threads, with or without the two fences per thread that TSO needs.
pub fn bakery(threads: usize, fences: bool) -> String {
    let mut text = Text::default();
    text.comment(
        "Lamport's bakery with tickets that are only compared: a thread draws any number, and again until it",
    );
    text.comment("is larger than every ticket it sees. The lowest ticket goes first, ties by thread number.");
    if fences {
        text.comment(
            "Fenced for TSO: others must see that a thread is choosing before it reads their tickets, and",
        );
        text.comment("must see its ticket before it asks whose turn it is.");
    }
    text.line("numbers nat;");
    text.blank();
    text.line(&format!("const N = {threads};"));
    text.line("shared chosen[N] = 1, ticket[N];");
    text.blank();
    text.open("thread p[me in 0..N]");
    text.line("var mine, theirs;");
    text.open("loop");
    text.label("choosing");
    text.line("chosen[me] = 0;");
    fence(&mut text, fences);
    text.line("mine = *;");
    others(&mut text, |text| {
        text.line("theirs = ticket[j];");
        text.open("if mine <= theirs");
        text.line("goto choosing;");
        text.close();
    });
    text.line("ticket[me] = mine;");
    text.line("chosen[me] = 1;");
    fence(&mut text, fences);
    others(&mut text, |text| {
        text.line("await chosen[j] == 1;");
        text.open("loop");
        text.line("theirs = ticket[j];");
        text.open("if theirs == 0 || mine < theirs || mine == theirs && me < j");
        text.line("break;");
        text.close();
        text.close();
    });
    text.label("critical");
    text.line("skip;");
    text.line("ticket[me] = 0;");
    text.close();
    text.close();
    text.blank();
    text.line("forbid mutex: i < j in 0..N: p[i]@critical && p[j]@critical;");
    text.finish()
}

fn fence(text: &mut Text, fences: bool) {
    if fences {
        text.line("fence;");
    }
}

/// A loop that runs `body` for every `j` except `me`.
fn others(text: &mut Text, body: impl FnOnce(&mut Text)) {
    text.open("for j in 0..N");
    text.open("if j != me");
    body(text);
    text.close();
    text.close();
}
