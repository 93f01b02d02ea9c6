//! Worker threads for long jobs, so that typing never waits for them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crossbeam_channel::{Sender, unbounded};

/// A job of a worker thread.
type Job = Box<dyn FnOnce() + Send>;

/// Threads that run jobs in the order in which the jobs are queued. They end when the pool is dropped and all jobs are done.
pub struct Pool {
    jobs: Sender<Job>,
}

/// Stack size of a thread in bytes: parsers and engines recurse over expressions.
const STACK: usize = 16 << 20;

impl Pool {
    /// Starts the threads.
    pub fn new(name: &str, threads: usize) -> Self {
        let (jobs, waiting) = unbounded::<Job>();
        for _ in 0..threads {
            let waiting = waiting.clone();
            let work = move || waiting.into_iter().for_each(|job| job());
            let thread = std::thread::Builder::new().name(name.into()).stack_size(STACK).spawn(work);
            thread.expect("the system starts another thread");
        }
        Pool { jobs }
    }

    /// Queues a job. If the job panics, `panicked` is called with the message, and the thread continues.
    pub fn run(&self, job: impl FnOnce() + Send + 'static, panicked: impl FnOnce(String) + Send + 'static) {
        let job = move || {
            if let Err(why) = caught(job) {
                panicked(why);
            }
        };
        // Sending cannot fail, because the threads live as long as the pool.
        let _ = self.jobs.send(Box::new(job));
    }
}

/// The result of a function, or the message of its panic.
pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    // All data that a panicking job can access is dropped with the job, so no other job observes it in an inconsistent state.
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| in_words(&*panic))
}

fn in_words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("this is a bug in fencewright, please report it: {}", text.unwrap_or_else(|| "a panic".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_its_job_and_not_the_thread() {
        let pool = Pool::new("test", 1);
        let (told, heard) = unbounded();
        let also = told.clone();
        pool.run(|| panic!("{} is odd", 3), move |why| also.send(why).expect("somebody listens"));
        pool.run(move || told.send("done".into()).expect("somebody listens"), |_| {});
        assert_eq!(
            heard.into_iter().collect::<Vec<_>>(),
            ["this is a bug in fencewright, please report it: 3 is odd", "done"]
        );
    }
}
