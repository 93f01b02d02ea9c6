//! Headers of C programs: model headers, the user's, and those of the system, and which of them counts.

use std::collections::BTreeMap;
use std::path::Path;

use fencewright_executions::oracle;
use fencewright_lang::load::Failure;
use fencewright_lang::{COptions, Loaded, Loader, Options, Stop};
use fencewright_program::MemoryModel;

/// Options with the headers of a system that has only the given files.
fn options() -> Options {
    let c = COptions { folders: vec!["inc".into()], sysroot: Some("/sys".into()), ..COptions::default() };
    Options { c, ..Options::default() }
}

fn read(options: &Options, main: &str, files: &[(&str, &str)]) -> Result<Loaded, String> {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let open = |name: &str| {
        files.get(name).map(|text| text.as_bytes().to_vec()).ok_or_else(|| "no such file".to_owned())
    };
    let loader = Loader { front_end: None, options, stop: &Stop::never(), open: &open };
    loader.load("src/main.c", main.as_bytes()).map_err(|failure| match failure {
        Failure::Wrong(error) => error.sources.render(&error.diagnostics, false),
        Failure::Stopped(_) => unreachable!("nobody asks to stop"),
    })
}

/// Whether the assertions of a program hold under SC.
fn holds(loaded: &Loaded) -> bool {
    let reachable = oracle::explore(&loaded.program, MemoryModel::Sc, 100_000, &mut || false);
    let property = loaded.program.properties.iter().find(|property| property.name == "assertions");
    let property = property.expect("C programs have it");
    let reachable = reachable.expect("it is small");
    reachable.satisfies(&loaded.program, MemoryModel::Sc, property).expect("it is known")
}

/// Checks that the assertions hold, that they fail if a false one is added, and that there are no warnings.
#[track_caller]
fn check(main: &str, files: &[(&str, &str)]) {
    let text = |assertion: &str| {
        format!("#include <assert.h>\n{main}\nint main(void) {{ test(); {assertion} return 0; }}")
    };
    let loaded = read(&options(), &text(""), files).unwrap_or_else(|e| panic!("{main}\n{e}"));
    assert_eq!(loaded.warnings, [], "{main}");
    assert!(holds(&loaded), "{main}");
    assert!(!holds(&read(&options(), &text("assert(0);"), files).expect("it is right too")), "{main}");
}

#[track_caller]
fn refused(main: &str, files: &[(&str, &str)], expected: &[&str]) {
    match read(&options(), main, files) {
        Ok(_) => panic!("this is understood: {main}"),
        Err(error) => expected.iter().for_each(|part| assert!(error.contains(part), "{main}\n{error}")),
    }
}

#[test]
fn the_folders_are_searched_in_order() {
    let three = [
        ("src/x.h", "#define X 1\n"),
        ("inc/x.h", "#define X 2\n"),
        ("/sys/usr/include/x.h", "#define X 3\n"),
    ];
    check("#include \"x.h\"\nvoid test(void) { assert(X == 1); }", &three);
    check("#include <x.h>\nvoid test(void) { assert(X == 2); }", &three);
    check("#include <x.h>\nvoid test(void) { assert(X == 3); }", &three[2..]);
    check("#include \"x.h\"\nvoid test(void) { assert(X == 3); }", &three[2..]);
    let compiler = [("/sys/usr/lib/gcc/x86_64-linux-gnu/12/include/x.h", "#define X 4\n")];
    check("#include <x.h>\nvoid test(void) { assert(X == 4); }", &compiler);
    // With `#include_next`, a header includes the next header of the same name.
    let next = [("inc/x.h", "#define A 1\n#include_next <x.h>\n"), ("/sys/usr/include/x.h", "#define B 2\n")];
    check("#include <x.h>\nvoid test(void) { assert(A + B == 3); }", &next);
    let more = [("inc/x.h", "#if __has_include_next(<x.h>)\n#error more\n#endif\n#define A 1\n")];
    check("#include <x.h>\nvoid test(void) { assert(A == 1); }", &more);
}

#[test]
fn model_headers_come_first() {
    let own = [
        ("inc/stdint.h", "#error not this one\n"),
        ("/sys/usr/include/stdint.h", "#error not this one\n"),
        ("inc/dat3m.h", "#error not this one\n"),
        ("/sys/usr/include/y.h", "#include <stdint.h>\ntypedef uint32_t y_t;\n"),
    ];
    check(
        "#include <stdint.h>\n#include \"dat3m.h\"\n#include <y.h>\nvoid test(void) { y_t a = -1; assert(a == UINT32_MAX); }",
        &own,
    );
    // A header in the folder of the file is found before the model header of the same name.
    check("#include \"list.h\"\nvoid test(void) { assert(X == 1); }", &[("src/list.h", "#define X 1\n")]);
}

#[test]
fn a_header_that_is_nowhere_is_explained() {
    let parts = [
        "src/main.c:1:10",
        "no such file in inc, /sys/usr/local/include",
        "/sys/usr/include",
        "-I DIR",
        "--sysroot DIR",
        "-p DIR",
    ];
    refused("#include <gone.h>\nint main(void) { return 0; }", &[], &parts);
    refused("#include \"gone.h\"\nint main(void) { return 0; }", &[], &["no such file in src, inc"]);
}

#[test]
fn many_files_are_refused() {
    // A file may be included under many names, so the number of files is limited.
    let numbers: Vec<(String, String)> = (0..10_010)
        .map(|n| {
            (
                format!("inc/h{n}.h"),
                if n % 50 == 49 { String::new() } else { format!("#include <h{}.h>\n", n + 1) },
            )
        })
        .collect();
    let files: Vec<(&str, &str)> =
        numbers.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let main: String = (0..10_010).step_by(50).map(|n| format!("#include <h{n}.h>\n")).collect();
    refused(&(main + "int main(void) { return 0; }"), &files, &["more than 10000 files"]);
}

/// A header of the system with all that such headers contain.
const SYSTEM: &str = r#"
#ifndef _X_H
#define _X_H
#include <features.h>
__extension__ typedef long long int quad_t;
typedef struct { unsigned lo : 3, : 5; int hi : 8; union { int a; char b[4]; } u; long double d; } odd_t;
extern int renamed (const char *__restrict name, ...) __asm__ ("" "other_name") __attribute__ ((__nothrow__ , __leaf__)) __attribute__ ((__nonnull__ (1)));
extern __inline __attribute__ ((__gnu_inline__)) int inlined (int x) { return __extension__ ({ int y = x; y + 1; }); }
typedef int word_t __attribute__ ((__mode__ (__word__)));
extern _Float128 strtof128 (const char *s, char **end);
extern double floating (double x, __builtin_va_list list);
typedef float v4 __attribute__ ((__vector_size__ (16)));
static __inline v4 added (v4 a, v4 b) { return a + b; }
static inline unsigned __int128 wide (unsigned __int128 a) { return a * 3; }
static inline double computed (double x) { if (x > 1.5) return x * 0.5; return sin (x); }
_Noreturn void ended (int) ;
_Static_assert (sizeof (word_t) == 8, "words");
extern char **environment;
enum { ONE = 1, TWO };
this is broken in a way that nobody expects;
struct broken { int a; what b; };
extern int good;
#warning "nobody wants to know"
#define TWICE 1
#define TWICE 2
#endif
"#;

#[test]
fn headers_of_the_system_are_read_as_they_are() {
    let files = [("/sys/usr/include/x.h", SYSTEM), ("/sys/usr/include/features.h", "\n")];
    check(
        "#include <x.h>\nvoid test(void) { odd_t o; o.u.a = 1; word_t w = 1L << 40; quad_t q = w; assert(q >> 40 == ONE && TWO == 2 && inlined(1) == 2 && o.u.a == 1); }",
        &files,
    );
    // A declaration of a header of the system that is not supported, or was skipped because of an error, is an error only where it is used.
    for (use_of, message) in [
        ("computed(1);", "floating"),
        ("wide(1);", "128 bits"),
        ("struct broken b;", "not known"),
        ("renamed(\"\");", "no body"),
    ] {
        let main = format!("#include <x.h>\nint main(void) {{ {use_of} return 0; }}");
        refused(&main, &files, &[message]);
    }
    // In a header of the user, an error in the same text is reported.
    let own = [("inc/x.h", SYSTEM), files[1]];
    refused("#include \"x.h\"\nint main(void) { return 0; }", &own, &["expected", "inc/x.h"]);
}

#[test]
fn an_error_of_the_system_never_hides_a_text_of_the_user() {
    let files = [("/sys/usr/include/x.h", "struct open { int a;\n")];
    refused("#include <x.h>\nint y = 3;\nint main(void) { return y; }", &files, &["expected"]);
    // The header ends in the middle of a declaration; what follows is read as it is written.
    let files = [("/sys/usr/include/x.h", "extern int strange what\n")];
    check("#include <x.h>\nint y = 3;\nvoid test(void) { assert(y == 3); }", &files);
}

#[test]
fn declarations_have_a_precedence() {
    let types = "
        typedef union { char size[40]; long align; } pthread_mutex_t;
        struct timespec { int wrong; };
        extern int pthread_mutex_lock (int wrong);
        typedef short time_t;
        enum { EINVAL_ = 22 };
        static inline int pthread_mutex_unlock (pthread_mutex_t *m) { return 7; }
        #define PTHREAD_MUTEX_INITIALIZER { { 1, 2, 3 } }\n";
    let files = [("/sys/usr/include/types.h", types)];
    let test = "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        void test(void) { struct timespec t = { 1, 2 }; pthread_mutex_lock(&m); assert(t.tv_nsec == 2 && sizeof(time_t) == 8); assert(!pthread_mutex_unlock(&m)); }";
    for order in ["#include <types.h>\n#include <pthread.h>\n", "#include <pthread.h>\n#include <types.h>\n"]
    {
        check(&format!("{order}{test}"), &files);
    }
    // The user's own definitions count more than those of the model headers.
    let own = "struct list_head { int mine; struct list_head *next, *prev; };\nstatic int atomic_read(int *x) { return *x + 1; }\n";
    let test = "void test(void) { struct list_head l = { 5 }; int x = 1; assert(l.mine == 5 && atomic_read(&x) == 2); }";
    check(&format!("{own}#include <linux/atomic.h>\n{test}"), &[]);
    check(&format!("#include <linux/atomic.h>\n{own}{test}"), &[]);
    // Two definitions of the user are an error.
    refused(
        "struct s { int a; }; struct s { int b; }; int main(void) { return 0; }",
        &[],
        &["defined twice"],
    );
    refused(
        "int f(void) { return 0; } int f(void) { return 1; } int main(void) { return f(); }",
        &[],
        &["defined twice"],
    );
}

#[test]
fn macros_of_the_user_do_not_change_model_headers() {
    let macros = "
        #define likely(x) (x)
        #define READ_ONCE(x) (*(volatile int *)&(x) + 1)
        #define barrier() ((void)0)
        #define smp_mb() __sync_synchronize()
        #define container_of(p, t, m) ((t *)0)
        #define atomic_set(v, i) ((v)->counter = (i) + 1)
        #define atomic_read(v) ((v)->counter)
        #define object 1 +
        #define value 2 +
        #define v 3 +
        #define i 4 +
        #define lock 5 +
        #define list 6 +\n";
    let test = "
        #undef v
        #undef i
        #undef list
        #undef lock
        #undef value
        #undef object
        struct outer { int a; struct list_head list; } o;
        void test(void) {
            int x = 1;
            atomic_t a;
            atomic_set(&a, 1);
            smp_mb();
            barrier();
            assert(READ_ONCE(x) == 2 && likely(x == 1) && atomic_read(&a) == 2);
            assert(container_of(&o.list, struct outer, list) == 0);
            INIT_LIST_HEAD(&o.list);
            assert(list_empty(&o.list));
        }";
    let headers = "#include <linux/atomic.h>\n#include <linux/spinlock.h>\n#include <linux/list.h>\n#include <linux/mutex.h>\n";
    check(&format!("{macros}{headers}{test}"), &[]);
    check(&format!("{headers}{macros}{test}"), &[]);
    // Without macros of the user, those of the model headers have their meaning.
    let plain = "struct outer { int a; struct list_head list; } o; void test(void) { assert(container_of(&o.list, struct outer, list) == &o); }";
    check(&format!("{headers}{plain}"), &[]);
    // `assert` is defined anew each time that its header is included.
    check(
        "#define NDEBUG\n#include <assert.h>\nvoid f(void) { assert(0); }\n#undef NDEBUG\n#include <assert.h>\nvoid test(void) { f(); }",
        &[],
    );
}

#[test]
fn errno_belongs_to_a_thread() {
    let main = "#include <errno.h>\n#include <pthread.h>\n
        static void *other(void *p) { errno = EAGAIN; return p; }
        void test(void) { pthread_t t; errno = EINTR; pthread_create(&t, 0, other, 0); pthread_join(t, 0); assert(errno == EINTR); }";
    check(main, &[]);
}

/// Headers of Linux that public programs include.
const OF_LINUX: &[&str] = &[
    "sys/random.h",
    "sys/time.h",
    "strings.h",
    "ctype.h",
    "errno.h",
    "limits.h",
    "poll.h",
    "sched.h",
    "sys/syscall.h",
    "linux/futex.h",
    "linux/types.h",
    "linux/membarrier.h",
    "linux/io_uring.h",
    "linux/perf_event.h",
    "linux/rseq.h",
    "math.h",
    "signal.h",
    "unistd.h",
    "time.h",
    "sys/types.h",
    "sys/mman.h",
    "fcntl.h",
    "sys/stat.h",
    "inttypes.h",
    "wchar.h",
    "locale.h",
    "setjmp.h",
    "semaphore.h",
    "sys/epoll.h",
    "sys/eventfd.h",
    "sys/socket.h",
    "sys/wait.h",
    "stdio.h",
    "stdlib.h",
    "string.h",
    "sys/uio.h",
    "netinet/in.h",
    "arpa/inet.h",
    "dlfcn.h",
    "sys/resource.h",
    "sys/ioctl.h",
    "complex.h",
    "getopt.h",
    "sys/param.h",
    "sys/prctl.h",
    "sys/select.h",
    "sys/queue.h",
    "endian.h",
    "execinfo.h",
    "tgmath.h",
    "fenv.h",
    "ucontext.h",
    "aio.h",
    "regex.h",
    "dirent.h",
    "netdb.h",
    "syslog.h",
];

/// A program with threads, whose assertions hold.
const PROGRAM: &str = "
    #include <pthread.h>
    #include <stdatomic.h>
    #include <assert.h>
    atomic_int x;
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    struct timespec until;
    int done;
    static void *thread(void *p) { pthread_mutex_lock(&m); done++; pthread_mutex_unlock(&m); atomic_store(&x, 1); return p; }
    int main(void) {
        pthread_t t;
        pthread_create(&t, 0, thread, 0);
        pthread_mutex_lock(&m);
        done++;
        pthread_mutex_unlock(&m);
        pthread_join(t, 0);
        assert(done == 2 && x == 1);
        return 0;
    }";

#[test]
fn the_headers_of_this_machine_are_read() {
    if !Path::new("/usr/include/x86_64-linux-gnu/bits/types.h").is_file() {
        println!("skipped: the headers of a C library for x86-64 are not in /usr/include");
        return;
    }
    let open = |name: &str| match Path::new(name).is_file() {
        true => std::fs::read(name).map_err(|error| error.to_string()),
        false => Err("no such file".to_owned()),
    };
    let mut count = 0;
    for header in OF_LINUX {
        let folders = ["/usr/include", "/usr/include/x86_64-linux-gnu"];
        if !folders.iter().any(|folder| Path::new(folder).join(header).is_file()) {
            println!("skipped: <{header}> is not installed");
            continue;
        }
        // The header is included before the model headers, and after them with `_GNU_SOURCE`.
        for text in [
            format!("#include <{header}>\n{PROGRAM}"),
            format!(
                "#define _GNU_SOURCE 1\n{}",
                PROGRAM.replacen("atomic_int x;", &format!("\n#include <{header}>\natomic_int x;"), 1)
            ),
        ] {
            let loader =
                Loader { front_end: None, options: &Options::default(), stop: &Stop::never(), open: &open };
            let loaded = match loader.load("main.c", text.as_bytes()) {
                Ok(loaded) => loaded,
                Err(Failure::Wrong(error)) => {
                    panic!("<{header}>\n{}", error.sources.render(&error.diagnostics, false))
                }
                Err(Failure::Stopped(_)) => unreachable!("nobody asks to stop"),
            };
            assert_eq!(loaded.warnings, [], "<{header}>");
            assert!(holds(&loaded), "<{header}>");
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
}
