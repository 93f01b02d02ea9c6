//! Memory that is freed after threads have ended: the accesses of these threads need no check, those of all others do. And the translation for models
//! in which no store is late.

use fencewright_executions::oracle::explore;
use fencewright_lang::Loaded;
use fencewright_lang::fw::print;
use fencewright_lang::options::Options;
use fencewright_program::{MemoryModel, Observable};

use crate::verdicts::load;

/// The names of the threads of which the property `memory` compares locations with marks of freed memory.
fn watched(loaded: &Loaded) -> Vec<&str> {
    let program = &loaded.program;
    let mut found = Vec::new();
    for formula in program.properties.iter().filter(|p| p.name == "memory").filter_map(|p| p.formula()) {
        let mut marks = false;
        formula.for_each_leaf(&mut |leaf| marks |= matches!(leaf, Observable::Register(..)));
        formula.for_each_leaf(&mut |leaf| {
            if let (true, Observable::At(thread, _)) = (marks, leaf) {
                found.push(program.thread(*thread).name.as_str());
            }
        });
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn is_safe(loaded: &Loaded, model: MemoryModel) -> bool {
    let reachable = explore(&loaded.program, model, 1_000_000, &mut || false).expect("it is small");
    let holds = |property| reachable.satisfies(&loaded.program, model, property) == Some(true);
    loaded.program.properties.iter().all(holds)
}

/// A program in which two threads access an object, and `main` executes some statements after it has created them.
fn program(main: &str) -> String {
    format!(
        "#include <pthread.h>\n#include <stdlib.h>\n#include <stdatomic.h>\n
        struct s {{ atomic_int v; }}; struct s *shared; atomic_int flag; pthread_t t[2];
        void *work(void *argument) {{ atomic_fetch_add(&shared->v, 1); return 0; }}
        void *quiet(void *argument) {{ atomic_load(&shared->v); return 0; }}
        void end(void) {{ free(shared); }}
        int main(void) {{ struct s *a = malloc(sizeof *a); atomic_init(&a->v, 0); shared = a;
        pthread_create(&t[0], 0, work, 0); pthread_create(&t[1], 0, quiet, 0); {main} return 0; }}\n"
    )
}

#[test]
fn accesses_of_threads_that_were_joined_are_not_checked() {
    let cases: [(&str, bool, &[&str]); 9] = [
        ("pthread_join(t[0], 0); pthread_join(t[1], 0); free(a);", true, &[]),
        ("for (int n = 0; n < 2; n++) pthread_join(t[n], 0); end();", true, &[]),
        (
            "pthread_join(t[0], 0); pthread_join(t[1], 0); if (atomic_load(&flag)) free(a); else end();",
            true,
            &[],
        ),
        ("pthread_join(t[0], 0); free(a); pthread_join(t[1], 0);", false, &["quiet"]),
        ("pthread_join(t[1], 0); end(); pthread_join(t[0], 0);", false, &["work"]),
        (
            "if (atomic_load(&a->v)) pthread_join(t[0], 0); pthread_join(t[1], 0); free(a);",
            false,
            &["main", "work"],
        ),
        ("free(a); pthread_join(t[0], 0); pthread_join(t[1], 0);", false, &["quiet", "work"]),
        (
            "if (atomic_load(&a->v)) goto out; pthread_join(t[0], 0); out: pthread_join(t[1], 0); free(a);",
            true,
            &["work"],
        ),
        ("for (int n = 0; n < 2; n++) { if (n == 1) end(); pthread_join(t[n], 0); }", false, &["quiet"]),
    ];
    for (main, safe, threads) in cases {
        let text = program(main);
        let loaded = load(&text, &Options::default());
        for model in [MemoryModel::Sc, MemoryModel::Tso] {
            assert_eq!(is_safe(&loaded, model), safe, "{main}");
        }
        let watched: Vec<&str> = watched(&loaded).into_iter().filter(|name| *name != "main").collect();
        let expected: Vec<&str> = threads.iter().copied().filter(|name| *name != "main").collect();
        assert_eq!(watched, expected, "{main}");
    }
}

/// The end of the lifetime of a local variable.
#[test]
fn locals_of_functions_that_join() {
    let text = |before: &str, after: &str| {
        format!(
            "#include <pthread.h>\n#include <stdatomic.h>\n
            atomic_int *shared; pthread_t t;
            void *work(void *argument) {{ atomic_fetch_add(shared, 1); return 0; }}
            void run(void) {{ atomic_int here; atomic_init(&here, 0); shared = &here;
                pthread_create(&t, 0, work, 0); {before} }}
            int main(void) {{ run(); {after} return 0; }}\n"
        )
    };
    for (before, after, safe) in [("pthread_join(t, 0);", "", true), ("", "pthread_join(t, 0);", false)] {
        let loaded = load(&text(before, after), &Options::default());
        assert_eq!(is_safe(&loaded, MemoryModel::Tso), safe, "{before}");
        assert_eq!(watched(&loaded).contains(&"work"), !safe, "{before}");
    }
}

/// A thread cannot allocate what is freed after it has ended, so nothing is passed to it although it compares pointers.
#[test]
fn memory_is_not_passed_to_threads_that_have_ended() {
    let text = |main: &str| {
        format!(
            "#include <pthread.h>\n#include <stdlib.h>\n#include <stdatomic.h>\n
            struct s {{ int v; }}; _Atomic(struct s *) one, two; pthread_t t;
            void *work(void *argument) {{ for (int n = 0; n < 2; n++) {{ struct s *a = malloc(sizeof *a); a->v = 1;
                atomic_store(&one, a); }} return 0; }}
            int main(void) {{ pthread_create(&t, 0, work, 0);
                for (int n = 0; n < 2; n++) {{ struct s *b = malloc(sizeof *b); b->v = 2; atomic_store(&two, b); }}
                {main}
                if (atomic_load(&one) == atomic_load(&two)) atomic_store(&one, 0); return 0; }}\n"
        )
    };
    let passes = |main: &str| print(&load(&text(main), &Options::default()).file).contains("returned");
    assert!(passes("free(atomic_load(&two)); pthread_join(t, 0);"));
    assert!(!passes("pthread_join(t, 0); free(atomic_load(&two));"));
}

/// Under SC and TSO no store is late, so the translation for these models has no tests for late stores.
#[test]
fn no_store_is_late_where_stores_are_in_order() {
    let text = "#include <pthread.h>\n#include <stdlib.h>\n#include <stdatomic.h>\n
        struct s { int v; }; atomic_int done; pthread_t t;
        void *work(void *argument) { struct s *a = argument; a->v = 1;
            atomic_store_explicit(&done, 1, memory_order_relaxed); return 0; }
        int main(void) { struct s *a = malloc(sizeof *a); pthread_create(&t, 0, work, a);
            while (!atomic_load(&done)); free(a); a = malloc(sizeof *a); a->v = 2; return a->v; }\n";
    let read = |models: &[MemoryModel]| {
        let mut options = Options::default();
        options.ask_models(models);
        load(text, &options)
    };
    for models in [&MemoryModel::ALL[..], &[MemoryModel::Pso]] {
        let loaded = read(models);
        assert!(loaded.facts.late_stores && print(&loaded.file).contains("may_store_to_an_object_after"));
    }
    for models in [&[MemoryModel::Tso][..], &[MemoryModel::Sc, MemoryModel::Tso]] {
        let loaded = read(models);
        assert!(!loaded.facts.late_stores && !print(&loaded.file).contains("may_store_to_an_object_after"));
        assert!(is_safe(&loaded, MemoryModel::Tso));
    }
}
