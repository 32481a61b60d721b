//! Moves of pages of this process to a shared segment at the same addresses, and back: the areas of
//! an address range (`areas`), the program's advice for them (`smaps`), the threads and files of
//! the process that could use them (`helper_threads`, `open_files`), the moves (`page_moves`, which
//! ask the kernel whether anything else holds a page: `unshared`), and pages that the program
//! discards (`discards`). Knows no window and no policy.

pub mod areas;
pub mod discards;
pub mod helper_threads;
pub mod memory_nodes;
mod move_lock;
pub mod open_files;
pub mod page_moves;
pub mod process_state;
pub mod smaps;
pub mod unshared;
