//! Parts of allocated objects that are written once, before a thread starts: the thread knows their values, and nothing else is assumed.

use fencewright_executions::oracle::explore;
use fencewright_lang::Loaded;
use fencewright_lang::fw::print;
use fencewright_lang::options::Options;
use fencewright_program::MemoryModel;

use crate::verdicts::load;

fn is_safe(loaded: &Loaded, model: MemoryModel) -> bool {
    let reachable = explore(&loaded.program, model, 1_000_000, &mut || false).expect("it is small");
    let holds = |property| reachable.satisfies(&loaded.program, model, property) == Some(true);
    loaded.program.properties.iter().all(holds)
}

/// Threads that a launcher starts with an array of arguments, as test harnesses do. `main` executes `before` before each thread is created, and
/// `after` when all are.
fn launched(before: &str, after: &str, body: &str) -> String {
    format!(
        "#include <assert.h>\n#include <pthread.h>\n#include <stdatomic.h>\n#include <stdlib.h>\n
        struct info {{ pthread_t t; int id; void (*run)(struct info *); }};
        atomic_int first, second, flag; struct info *_Atomic other;
        void run(struct info *own) {{ {body} }}
        void *common(void *argument) {{ struct info *own = argument; own->run(own); return 0; }}
        int main(void) {{ struct info *all = malloc(2 * sizeof *all);
            for (int n = 0; n < 2; n++) {{ {before} all[n].run = run;
                pthread_create(&all[n].t, 0, common, &all[n]); }}
            {after}
            for (int n = 0; n < 2; n++) pthread_join(all[n].t, 0);
            free(all); return 0; }}\n"
    )
}

#[test]
fn each_thread_has_only_its_own_code() {
    let body = "if (own->id == 0) atomic_store(&first, 1); else atomic_store(&second, 1);";
    let loaded = load(
        &launched("all[n].id = n;", "if (atomic_load(&first) + atomic_load(&second) > 2) abort();", body),
        &Options::default(),
    );
    let text = print(&loaded.file);
    assert_eq!(
        (text.matches("swap(first, 1)").count(), text.matches("swap(second, 1)").count()),
        (1, 1),
        "{text}"
    );
    assert!(is_safe(&loaded, MemoryModel::Tso));
}

#[test]
fn what_is_not_settled_is_read() {
    let one = "assert(own->id < 2);";
    // The statements before a thread is created, those afterwards, the code of the threads, and whether all is well.
    let cases = [
        ("all[n].id = n;", "", one, true),
        // A second store, by `main`, through an unknown pointer, and by the other thread.
        ("all[n].id = n;", "all[1].id = 2;", one, false),
        ("all[n].id = n;", "struct info *one = atomic_load(&flag) ? all : all + 1; one->id = 2;", one, false),
        (
            "all[n].id = n; atomic_store(&other, all);",
            "",
            "assert(own->id < 2); atomic_load(&other)[1].id = 2;",
            false,
        ),
        // A store that is not always executed, or executed too late.
        (
            "if (!atomic_load(&first)) all[n].id = n;",
            "",
            "assert(own->id < 2); atomic_store(&first, 1);",
            false,
        ),
        (
            "if (atomic_load(&first)) goto next; all[n].id = n; next:;",
            "",
            "assert(own->id < 2); atomic_store(&first, 1);",
            false,
        ),
        ("if (n == 1) all[0].id = 0;", "all[1].id = 1;", one, false),
        // The memory is freed before it is read.
        ("all[n].id = n;", "if (atomic_load(&flag) == 0) { free(all); exit(0); }", one, false),
    ];
    for (before, after, body, safe) in cases {
        // A label occurs once in a function, so the loop is written out.
        let text = match before.contains("goto") {
            true => launched("", after, body).replace(
                "for (int n = 0; n < 2; n++) {  all[n].run = run;",
                "all[0].id = 0; if (atomic_load(&flag)) goto next; all[1].id = 1; next:; for (int n = 0; n < 2; n++) { all[n].run = run;",
            ),
            false => launched(before, after, body),
        };
        let text = match before.contains("goto") {
            true => text.replace("int main(void) {", "void *sets(void *a) { atomic_store(&flag, 1); return 0; } int main(void) { pthread_t s; pthread_create(&s, 0, sets, 0);"),
            false => text,
        };
        for model in [MemoryModel::Sc, MemoryModel::Tso] {
            assert_eq!(is_safe(&load(&text, &Options::default()), model), safe, "{before} {after} {body}");
        }
    }
}

/// Code before the first thread that masks addresses, exchanges pointers or stores atomically to new memory is executed when the file is read: the
/// translation has no code for it, and no bound on its allocations.
#[test]
fn pointers_with_tags_before_the_first_thread() {
    let text = "#include <assert.h>\n#include <pthread.h>\n#include <stdint.h>\n#include <stdlib.h>\n
        struct node { long key; struct node *next; }; struct node last, *first = &last;
        void *run(void *argument) { return 0; }
        int main(void) { pthread_t t;
            for (int n = 0; n < 9; n++) { struct node *node = malloc(sizeof *node); node->key = n;
                assert(((uintptr_t)node & 7) == 0 && ((uintptr_t)&node->next & 7) == 0);
                __atomic_store_n(&node->next, first, __ATOMIC_SEQ_CST);
                struct node *old = (struct node *)((uintptr_t)first & ~(uintptr_t)1);
                if (!__atomic_compare_exchange_n(&first, &old, node, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) abort(); }
            assert(first->next->key == 7);
            pthread_create(&t, 0, run, 0); pthread_join(t, 0); return 0; }\n";
    let loaded = load(text, &Options::default());
    assert!(is_safe(&loaded, MemoryModel::Tso));
    assert!(loaded.program.threads.iter().all(|thread| thread.edges.len() < 4), "{}", print(&loaded.file));
    // Bits above the alignment are unknown, and the model ends where a program looks at them.
    let unaligned = text.replace("(uintptr_t)&node->next & 7) == 0", "(uintptr_t)&node->next & 15) == 8");
    let unaligned = load(&unaligned, &Options::default());
    assert!(explore(&unaligned.program, MemoryModel::Tso, 1_000, &mut || false).is_err());
}
