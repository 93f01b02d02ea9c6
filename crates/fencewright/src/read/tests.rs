//! Programs are read again within the limits of the question.

use fencewright_engines::{Reason, Token};

use crate::{Error, MemoryModel, Program, Question};

const QUEUE: &str = "#include <pthread.h>
#include <stdatomic.h>
atomic_int x, y;
void *t(void *u) { x = 1; y = x; return 0; }
int main(void) { pthread_t p; pthread_create(&p, 0, t, 0); y = 1; pthread_join(p, 0); return 0; }
";

#[test]
fn a_program_is_not_read_again_after_the_end() {
    let program = Program::parse("queue.c", QUEUE).expect("it is a program");
    let token = Token::default();
    token.cancel();
    let question = Question::under(MemoryModel::Tso).token(token);
    assert!(matches!(program.for_robustness(&question.limits()), Err(Error::Unfinished { .. })));
    assert_eq!(question.robust(&program).robust(), Err(&Reason::Cancelled));
    let answers = question.property("deadlock").check(&program);
    assert!(matches!(answers, Err(Error::Unfinished { reason: Reason::Cancelled, .. })));
}

/// A program that is refused for this question is not judged by its translation for other questions.
#[test]
fn a_program_that_cannot_be_read_for_robustness_is_undecided() {
    let rcu = "#include <linux/rcupdate.h>
#include <pthread.h>
int x;
void *t(void *u) { rcu_read_lock(); int r = READ_ONCE(x); rcu_read_unlock(); return 0; }
int main(void) { pthread_t p; pthread_create(&p, 0, t, 0); WRITE_ONCE(x, 1); synchronize_rcu(); return 0; }
";
    let program = Program::parse("rcu.c", rcu).expect("it is a program");
    let answer = Question::under(MemoryModel::Tso).robust(&program);
    assert!(matches!(answer.robust(), Err(Reason::Unsupported(..))), "{:?}", answer.robust());
}
