//! Which objects are freed, and whether a thread can still access or allocate memory by then.

use crate::core::{ObjectId, ThreadNumber};
use crate::layout::classes::Layout;

impl Layout {
    /// Whether some place of a class belongs to an object that may be freed before this thread has ended.
    pub fn can_be_freed(&self, class: usize, thread: ThreadNumber) -> bool {
        self.classes[class].places.iter().flatten().any(|place| self.is_freed_during(thread, place.object))
    }

    /// Whether an object may be freed, or its lifetime may end, before this thread has ended.
    pub fn is_freed_during(&self, thread: ThreadNumber, object: ObjectId) -> bool {
        let placed = self.placed(object);
        let used = &self.classes[placed.class].used;
        self.is_freed(object)
            && match placed.heap {
                true => used.freed_by.iter().any(|by| used.is_freed_during(thread, *by)),
                false => {
                    let by = self.ended.get(&object).into_iter().flatten();
                    by.copied().any(|by| !self.ends.is_before_end(thread, by, object))
                }
            }
    }

    /// Whether an object may be freed, or is a local variable whose lifetime ends while pointers to it may exist.
    pub fn is_freed(&self, object: ObjectId) -> bool {
        let placed = self.placed(object);
        match placed.heap {
            true => !self.classes[placed.class].used.freed_by.is_empty(),
            false => self.ended.contains_key(&object) && !self.classes[placed.class].places.is_empty(),
        }
    }

    /// The class of the flags that say which objects, freed by other threads, this thread may allocate; `None` if there are no such objects.
    pub fn passed_to(&self, class: usize, thread: ThreadNumber) -> Option<usize> {
        let used = &self.classes[class].used;
        let others = used.freed_by.iter().any(|by| *by != thread && used.is_freed_during(thread, *by));
        self.returned.get(&class).copied().filter(|_| others)
    }

    /// The class of the flags that this thread sets when it frees an object for other threads; `None` if the thread never does.
    pub fn passed_from(&self, class: usize, thread: ThreadNumber) -> Option<usize> {
        let used = &self.classes[class].used;
        let later = |other: &ThreadNumber| *other != thread && used.is_freed_during(*other, thread);
        let others = used.allocated_by.iter().any(later);
        self.returned.get(&class).copied().filter(|_| others)
    }
}
