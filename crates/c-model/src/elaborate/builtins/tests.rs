//! Checks that every function that a model header declares, or that semantic analysis knows by name, is a builtin or is rejected with advice.

use std::collections::BTreeSet;

use fencewright_c::headers::HEADERS;
use fencewright_c::typed::builtin_names;

use super::*;

/// The thread functions, which the module `threads` handles instead of this one.
const THREADS: [&str; 13] = [
    "pthread_create",
    "pthread_join",
    "pthread_detach",
    "pthread_exit",
    "pthread_self",
    "pthread_equal",
    "thrd_create",
    "thrd_join",
    "thrd_detach",
    "thrd_exit",
    "thrd_current",
    "thrd_equal",
    "__VERIFIER_tid",
];

/// The functions that a header declares before the line `Declared only:`. Those after this line are declared only so that their types are known.
fn declared(header: &str) -> Vec<&str> {
    let modelled = header.split("// Declared only:").next().unwrap_or_default();
    modelled
        .lines()
        .filter(|line| line.ends_with(");") && !line.starts_with(['#', ' ']) && !line.contains("typedef"))
        .filter_map(|line| {
            let name = line.split_once('(')?.0;
            name.rsplit([' ', '*']).next()
        })
        // Variables whose types are pointers to functions have no name before the parenthesis.
        .filter(|name| !name.is_empty())
        .filter(|name| !name.starts_with("__fencewright_"))
        .collect()
}

#[test]
fn every_declared_name_has_an_operation() {
    let names: BTreeSet<&str> =
        HEADERS.iter().flat_map(|(_, text)| declared(text)).chain(builtin_names()).collect();
    assert!(names.len() > 150, "{} names", names.len());
    let unknown: Vec<&str> = names
        .into_iter()
        .filter(|name| !THREADS.contains(name) && advice(name).is_none() && named(name, &[]).is_none())
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn names_of_linux_operations_are_parsed_by_parts() {
    use atomics::Modify;
    use linux::{Answer, By, Operation};
    let modify = |modify, not, by, answer| Some(Operation::Modify { modify, not, by, answer });
    for (name, expected) in [
        ("atomic_read", Some(Operation::Load)),
        ("atomic64_inc", modify(Modify::Add, false, By::One, Answer::Old)),
        ("atomic_dec_and_test", modify(Modify::Sub, false, By::One, Answer::Zero)),
        ("atomic_fetch_andnot_relaxed", modify(Modify::And, true, By::Argument, Answer::Old)),
        ("atomic_long_add_return_acquire", modify(Modify::Add, false, By::Argument, Answer::New)),
        ("atomic_add_negative", modify(Modify::Add, false, By::Argument, Answer::Negative)),
        ("cmpxchg_release", Some(Operation::CompareExchange)),
        ("atomic_set_release", Some(Operation::Store(atomics::Order::Release))),
        ("atomic_load", None),
        ("atomic_flag_clear", None),
    ] {
        assert_eq!(linux::named(name), expected, "{name}");
    }
}

#[test]
fn names_of_gcc_atomics_are_parsed_by_parts() {
    use atomics::{Answer, Convention, Modify, Operation};
    for (name, expected) in [
        ("atomic_load", Some((Operation::Load, Convention::Implicit))),
        ("atomic_store_explicit", Some((Operation::Store, Convention::Explicit))),
        ("__atomic_load_n", Some((Operation::Load, Convention::Gnu))),
        ("__atomic_load", Some((Operation::Load, Convention::Indirect))),
        ("__atomic_nand_fetch", Some((Operation::Modify(Modify::Nand, Answer::New), Convention::Gnu))),
        ("__sync_fetch_and_or", Some((Operation::Modify(Modify::Or, Answer::Old), Convention::Sync))),
        ("__sync_lock_release", Some((Operation::Clear, Convention::Sync))),
        ("__sync_val_compare_and_swap_4", Some((Operation::CompareAndSwap(Answer::Old), Convention::Sync))),
        ("atomic_thread_fence", None),
        ("atomic_fetch_nothing", None),
    ] {
        assert_eq!(atomics::named(name), expected, "{name}");
    }
}
