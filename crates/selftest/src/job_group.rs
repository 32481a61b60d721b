//! A rank of a job for the reports of `fompi info` and `fompi doctor`: exchanges of texts, and what
//! the library does with windows of groups of ranks. Invariant: all ranks call the same functions.

use crate::job_rank::number;
use crate::opened_mpi::OpenedMpi;
use fompi_base::number::Number;
use fompi_host::handle::Handle;
use serde::{Deserialize, Serialize};
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The settings under which the library reports each window.
pub const SETTINGS: [(&str, &str); 2] = [("FOMPI_VERBOSE", "1"), ("FOMPI_FALLBACK", "warn")];
/// How a line of the library begins.
const LIBRARY: &str = "fompi: ";

/// The kinds of memory that a window may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupWindow {
    /// memory of MPI_Win_allocate
    Allocate,
    /// memory of malloc, under MPI_Win_create
    Create,
}

/// What a rank learns from a window.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WindowAnswer {
    /// the transport; `None` for a window of the host MPI, or without a window
    pub transport: Option<String>,
    /// the lines of the library that this rank printed, or the error
    pub said: Vec<String>,
}

/// A rank of the job.
pub struct JobGroup {
    mpi: OpenedMpi,
    rank: c_int,
    ranks: c_int,
}

impl JobGroup {
    /// Opens the first MPI of `libraries`, behind libfompi if that is named, and initialises it.
    pub fn join(fompi: Option<&Path>, libraries: &[PathBuf]) -> Result<JobGroup, String> {
        let mpi = OpenedMpi::open(fompi, libraries)?;
        mpi.initialise()?;
        let mut group = JobGroup { mpi, rank: 0, ranks: 1 };
        let world = group.world();
        let call = &group.mpi.call;
        // SAFETY: handles of this MPI, and local out parameters.
        unsafe {
            (call.comm_set_errhandler)(world, group.mpi.constants.errors_return);
            (call.comm_rank)(world, &mut group.rank);
            (call.comm_size)(world, &mut group.ranks);
        }
        Ok(group)
    }

    fn world(&self) -> Handle {
        self.mpi.constants.comm_world
    }

    /// The rank of this process.
    pub fn rank(&self) -> usize {
        self.rank.cast_unsigned().to_usize()
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks.cast_unsigned().to_usize()
    }

    /// The MPI.
    pub fn mpi(&self) -> &OpenedMpi {
        &self.mpi
    }

    /// Returns the texts of all ranks. Collective.
    pub fn gather(&self, own: &str) -> Result<Vec<String>, String> {
        self.mpi.gather(self.world(), self.ranks(), own)
    }

    /// Makes a window of the ranks that pass the same number, and frees it. With [`SETTINGS`] the
    /// library reports it. Collective.
    pub fn window(&self, group: usize, kind: GroupWindow, bytes: usize) -> WindowAnswer {
        let mut comm = self.mpi.constants.comm_null;
        // SAFETY: a communicator of this MPI, and a local out parameter.
        let code = unsafe {
            (self.mpi.call.comm_split)(self.world(), number(group), self.rank, &mut comm)
        };
        if code != 0 {
            return WindowAnswer { transport: None, said: vec![self.mpi.text_of(code)] };
        }
        let answer = captured(|| self.window_of(comm, kind, bytes));
        // SAFETY: the communicator from above, which the window does not use any more.
        unsafe { (self.mpi.call.comm_free)(&mut comm) };
        let (made, mut said) = answer.unwrap_or_else(|error| (Err(error.to_string()), Vec::new()));
        match made {
            Ok(transport) => WindowAnswer { transport, said },
            Err(error) => {
                said.push(error);
                WindowAnswer { transport: None, said }
            }
        }
    }

    fn window_of(
        &self,
        comm: Handle,
        kind: GroupWindow,
        bytes: usize,
    ) -> Result<Option<String>, String> {
        let (info, call) = (self.mpi.constants.info_null, &self.mpi.call);
        let (mut win, mut base) = (self.mpi.constants.win_null, std::ptr::null_mut::<c_void>());
        let mut own = vec![0_u8; if kind == GroupWindow::Create { bytes } else { 0 }];
        let size = bytes.cast_signed();
        // SAFETY: handles of this MPI; memory of that size, which outlives the window.
        let code = unsafe {
            (call.comm_set_errhandler)(comm, self.mpi.constants.errors_return);
            match kind {
                GroupWindow::Allocate => {
                    (call.win_allocate)(size, 1, info, comm, (&raw mut base).cast(), &mut win)
                }
                GroupWindow::Create => {
                    (call.win_create)(own.as_mut_ptr().cast(), size, 1, info, comm, &mut win)
                }
            }
        };
        if code != 0 {
            return Err(self.mpi.text_of(code));
        }
        let mut info = info;
        // SAFETY: the window from above, and a local out parameter.
        unsafe { (call.win_get_info)(win, &mut info) };
        let transport = self.mpi.value_of(info, c"fompi_transport");
        // SAFETY: the window from above.
        match unsafe { (call.win_free)(&mut win) } {
            0 => Ok(transport),
            code => Err(self.mpi.text_of(code)),
        }
    }

    /// Finalises MPI. Collective.
    pub fn end(self) {
        // SAFETY: the last call of this process.
        unsafe { (self.mpi.more.finalize)() };
    }
}

/// Calls a function, and returns the lines that libfompi writes to standard error meanwhile. Other
/// lines go there afterwards.
fn captured<T>(call: impl FnOnce() -> T) -> io::Result<(T, Vec<String>)> {
    let error = libc::STDERR_FILENO;
    // SAFETY: creates a file in memory; a result of -1 is handled.
    let file = unsafe { libc::memfd_create(c"fompi-info".as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: duplicates an open descriptor.
    let kept = unsafe { libc::fcntl(error, libc::F_DUPFD_CLOEXEC, 3) };
    if file < 0 || kept < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: descriptors that nothing else owns.
    let (mut file, kept) = unsafe { (File::from_raw_fd(file), OwnedFd::from_raw_fd(kept)) };
    // SAFETY: both are open.
    unsafe { libc::dup2(file.as_raw_fd(), error) };
    let result = call();
    // SAFETY: both are open.
    unsafe { libc::dup2(kept.as_raw_fd(), error) };
    let mut text = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut text)?;
    let mut said = Vec::new();
    for line in String::from_utf8_lossy(&text).lines() {
        match line.strip_prefix(LIBRARY) {
            Some(line) => said.push(line.to_owned()),
            None => io::stderr().write_all(format!("{line}\n").as_bytes())?,
        }
    }
    Ok((result, said))
}
