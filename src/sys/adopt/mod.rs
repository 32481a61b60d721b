//! Pages of this process that become pages of a shared segment at the same addresses, and private
//! pages again: what lies at a range of addresses (`areas`), what the program has said of it
//! (`smaps`), which threads and files of the process could use it (`helper_threads`,
//! `open_files`), the moves (`page_moves`, which ask the kernel whether anything else holds a page:
//! `unshared`), and what the program discards of such pages (`discards`). Knows no window and no
//! policy.

pub mod areas;
pub mod discards;
pub mod helper_threads;
pub mod huge_pages;
pub mod kept_file;
pub mod memory_nodes;
mod move_lock;
pub mod open_files;
pub mod page_moves;
pub mod process_state;
pub mod smaps;
pub mod unshared;
