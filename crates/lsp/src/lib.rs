//! A language server: presents programs, verdicts and fences in an editor.
//!
//! * `server`: the message loop; `requests`: handlers of requests about documents; `programs`: handlers of program events (text changed, read,
//!   examined); `speak`: outgoing messages; `transport`: message framing;
//! * `client`, `settings`: client capabilities and user settings;
//! * `documents`, `text`, `uri`, `places`: open documents, positions and URIs;
//! * `load`, `check`, `fixes`: long-running jobs, run on the worker threads of `pool`; `session`: schedules these jobs for each open program and
//!   keeps their `answers`;
//! * `diagnostics`, `lenses`, `actions`, `hover`, `names`, `symbols`, `tokens`: presentation in the editor.
//!
//! The main loop never blocks: long computations run in worker threads, can be cancelled, and their results are dropped if the text has changed
//! meanwhile. A panic in a worker is reported and terminates neither the worker nor the server.

#![forbid(unsafe_code)]
// A `Uri` caches its parsed form, but is compared and hashed by its text, which never changes.
#![allow(clippy::mutable_key_type)]

mod actions;
mod answers;
mod check;
mod client;
mod diagnostics;
mod documents;
mod fixes;
mod hover;
mod lenses;
mod load;
mod names;
mod places;
mod pool;
mod programs;
mod requests;
mod server;
mod session;
mod settings;
mod speak;
mod symbols;
mod text;
mod tokens;
mod transport;
mod uri;

use std::time::Duration;

pub use settings::Settings;

/// The command that checks a program; its argument is the URI.
pub const CHECK: &str = "fencewright.check";
/// The command that shows the execution or proof behind a verdict; its arguments are the URI, the property and the memory model.
pub const EXECUTION: &str = "fencewright.execution";

/// Maximum time to wait at the end of the session for the client to read the remaining messages.
const FAREWELL: Duration = Duration::from_millis(500);

/// Services of the process that the server runs in.
#[derive(Clone, Copy)]
pub struct Environment {
    /// Returns the number of bytes of memory in use.
    pub memory: fn() -> u64,
}

/// Serves one client over the standard input and output. Returns whether the client sent `shutdown` before it exited or disconnected.
pub fn serve(settings: Settings, environment: Environment) -> bool {
    let (to_client, outgoing) = crossbeam_channel::unbounded();
    let (received, incoming) = crossbeam_channel::unbounded();
    let replies = to_client.clone();
    let reader = move || transport::read_all(std::io::stdin().lock(), &received, &replies);
    let (done, written) = crossbeam_channel::bounded(1);
    let writer = move || {
        transport::write_all(std::io::stdout().lock(), &outgoing);
        let _ = done.send(());
    };
    let thread = |name: &str| std::thread::Builder::new().name(name.into());
    thread("reader").spawn(reader).expect("the system starts another thread");
    thread("writer").spawn(writer).expect("the system starts another thread");
    let orderly = server::Server::new(settings, environment, to_client).run(&incoming);
    // The server drops its sender when it ends. The writer ends after writing the remaining messages, unless the client has stopped reading; the
    // timeout bounds the wait.
    let _ = written.recv_timeout(FAREWELL);
    orderly
}
