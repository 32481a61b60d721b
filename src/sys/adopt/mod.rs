//! Pages of this process that become pages of a shared segment at the same addresses, and private
//! pages again: what lies at a range of addresses (`areas`), userfaultfd (`userfault`), what other
//! threads do (`other_threads`), the moves (`page_moves`), and what the program discards of such
//! pages (`discards`). Knows no window and no policy.

pub mod areas;
pub mod discards;
pub mod huge_pages;
pub mod kept_file;
pub mod memory_nodes;
pub mod other_threads;
pub mod page_moves;
pub mod process_state;
mod set_aside;
mod step_lock;
pub mod userfault;
