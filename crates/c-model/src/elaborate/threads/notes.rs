//! What the translation records about threads, in variables of the model.

use fencewright_code::core::ObjectId;

/// A fact about a thread that the translation records in a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Note {
    /// Whether the thread has ended.
    Done,
    /// The return value of the thread.
    Result,
    /// Whether the thread was joined or detached.
    Released,
    /// Whether the thread was cancelled.
    Cancelled,
}

impl Note {
    /// The name of the array for all threads. The variable for a single thread has this name followed by the number of the thread.
    pub fn name(self) -> &'static str {
        match self {
            Note::Done => "done",
            Note::Result => "result",
            Note::Released => "released",
            Note::Cancelled => "cancelled",
        }
    }
}

/// For each kind of note, the variable that holds it; `None` until the variable is created.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Notes([Option<ObjectId>; 4]);

impl Notes {
    pub fn get(&self, note: Note) -> Option<ObjectId> {
        self.0[note as usize]
    }

    pub fn set(&mut self, note: Note, object: ObjectId) {
        self.0[note as usize] = Some(object);
    }

    /// Drops the variables for which `is_kept` returns false.
    pub fn retain(&mut self, is_kept: impl Fn(&ObjectId) -> bool) {
        self.0.iter_mut().for_each(|object| *object = object.filter(&is_kept));
    }
}
