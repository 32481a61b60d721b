//! Symbols of libraries that are already loaded (dlopen(3) with RTLD_NOLOAD, dl_iterate_phdr(3)).

#![allow(clippy::missing_safety_doc)] // callbacks: called by the C library

use core::ffi::{CStr, c_int, c_void};
pub use fompi_base::object_at::object_at;
use std::ffi::CString;

/// A library that is loaded in this process; libfompi never unloads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Library(*mut c_void);

// SAFETY: a handle of dlopen may be used from any thread.
unsafe impl Send for Library {}
// SAFETY: as above; dlsym takes its own lock.
unsafe impl Sync for Library {}

/// Returns the paths of all loaded libraries, in load order.
pub fn loaded() -> Vec<CString> {
    let mut paths = Vec::new();
    each_object(&mut |info| {
        if !info.dlpi_name.is_null() {
            // SAFETY: the loader's names are C strings that live during the call.
            paths.push(unsafe { CStr::from_ptr(info.dlpi_name) }.to_owned());
        }
    });
    paths
}

/// Returns how often a library was loaded or unloaded in this process so far: while the number does
/// not change, the same libraries are loaded. `None`: the C library does not count. Inspects one
/// library, however many are loaded.
pub fn changes() -> Option<u64> {
    unsafe extern "C" fn read(
        info: *mut libc::dl_phdr_info,
        bytes: libc::size_t,
        changes: *mut c_void,
    ) -> c_int {
        // `bytes` is the length of what the C library has filled in.
        if bytes >= size_of::<libc::dl_phdr_info>() {
            // SAFETY: the loader passes a valid `info`, and `changes` is the one given below.
            unsafe { *changes.cast() = Some((*info).dlpi_adds + (*info).dlpi_subs) };
        }
        1
    }
    let mut changes: Option<u64> = None;
    // SAFETY: `read` matches the callback's type and only uses `changes`.
    unsafe { libc::dl_iterate_phdr(Some(read), (&raw mut changes).cast()) };
    changes
}

/// Returns the file name in a path.
pub fn file_name(path: &CStr) -> &str {
    let path = path.to_str().unwrap_or("");
    path.rsplit('/').next().unwrap_or(path)
}

/// A function that gets the loader's description of an object.
type ObjectVisitor<'a> = &'a mut dyn FnMut(&libc::dl_phdr_info);

/// Passes the loader's description of the program and of each loaded library to `visitor`. The
/// loader keeps them loaded meanwhile. Allocates nothing.
pub fn each_object(visitor: ObjectVisitor<'_>) {
    unsafe extern "C" fn show(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        visitor: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid `info`, and `visitor` is the one given below.
        let (info, visitor) = unsafe { (&*info, &mut *visitor.cast::<ObjectVisitor<'_>>()) };
        visitor(info);
        0
    }
    let mut visitor = visitor;
    // SAFETY: `show` matches the callback's type and only uses `visitor`.
    unsafe { libc::dl_iterate_phdr(Some(show), (&raw mut visitor).cast()) };
}

impl Library {
    /// Returns the library at `path`, if it is loaded.
    pub fn at(path: &CStr) -> Option<Library> {
        // SAFETY: RTLD_NOLOAD loads nothing and so runs no constructor.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
        (!handle.is_null()).then_some(Library(handle))
    }

    /// Loads the library at `path`, and runs its constructors. The error is the loader's message.
    pub fn load(path: &CStr) -> Result<Library, String> {
        Library::load_with(path, libc::RTLD_LOCAL)
    }

    /// Loads a library as [`Library::load`] does, and searches symbols of all libraries in it.
    pub fn load_for_all(path: &CStr) -> Result<Library, String> {
        Library::load_with(path, libc::RTLD_GLOBAL)
    }

    fn load_with(path: &CStr, scope: c_int) -> Result<Library, String> {
        // SAFETY: loads a library of the user's choice.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | scope) };
        if !handle.is_null() {
            return Ok(Library(handle));
        }
        // SAFETY: a C string that lives until the next call of this thread, as the call has failed.
        let message = unsafe { CStr::from_ptr(libc::dlerror()) };
        Err(message.to_string_lossy().into_owned())
    }

    /// Returns a function of this library or of those that it needs, if there is one. `name` is
    /// NUL-terminated.
    ///
    /// # Safety
    /// `F` is the exact function-pointer type of the function `name`.
    pub unsafe fn function<F: Copy>(self, name: &str) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        let address = self.symbol(CStr::from_bytes_with_nul(name.as_bytes()).ok()?);
        // SAFETY: the address of a function, of the type that the caller has promised.
        (address != 0).then(|| unsafe { core::mem::transmute_copy::<usize, F>(&address) })
    }

    /// Returns a function as [`Library::function`] does, of one version of this symbol (dlvsym(3)).
    ///
    /// # Safety
    /// `F` is the exact function-pointer type of that version of the function.
    pub unsafe fn function_of_version<F: Copy>(self, name: &CStr, version: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        // SAFETY: the handle is valid, and both are C strings.
        let address = unsafe { libc::dlvsym(self.0, name.as_ptr(), version.as_ptr()) };
        // SAFETY: the address of a function, of the type that the caller has promised.
        (!address.is_null()).then(|| unsafe { core::mem::transmute_copy::<_, F>(&address) })
    }

    /// Returns the address of `name` in this library or in those that it needs, or 0.
    pub fn symbol(self, name: &CStr) -> usize {
        // SAFETY: the handle is valid and the name a C string.
        unsafe { libc::dlsym(self.0, name.as_ptr()) as usize }
    }
}

/// Returns the address of `name` by the search order of the program (RTLD_DEFAULT), or 0. It
/// differs from [`Library::symbol`] for data that the executable copied (R_X86_64_COPY).
pub fn global_symbol(name: &CStr) -> usize {
    // SAFETY: RTLD_DEFAULT is valid and the name a C string.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) as usize }
}

/// Returns the address of `name` in the program and in the libraries that it was started with or
/// has opened with RTLD_GLOBAL, or 0. A library that was opened with RTLD_LOCAL may see another
/// symbol of this name in its own scope.
pub fn symbol_of_program(name: &CStr) -> usize {
    // SAFETY: no path: the program itself.
    let program = unsafe { libc::dlopen(core::ptr::null(), libc::RTLD_LAZY) };
    // SAFETY: the handle is valid, or null, which is RTLD_DEFAULT; the name is a C string.
    unsafe { libc::dlsym(program, name.as_ptr()) as usize }
}

/// Whether the library that holds `address` defines `name` itself; a definition in a library that
/// it needs does not count.
pub fn object_defines(address: usize, name: &CStr) -> bool {
    let Some((path, base)) = object_at(address) else { return false };
    let Some(library) = Library::at(&path) else { return false };
    object_at(library.symbol(name)).is_some_and(|(_, other)| other == base)
}

/// Returns the library that holds `address`, and its file name.
pub fn library_at(address: usize) -> Option<(Library, String)> {
    let (path, _) = object_at(address)?;
    let library = Library::at(&path)?;
    Some((library, file_name(&path).to_owned()))
}

/// Whether the library that holds `address` was loaded before the one that holds `other`.
pub fn is_loaded_before(address: usize, other: usize) -> bool {
    let (Some((first, _)), Some((second, _))) = (object_at(address), object_at(other)) else {
        return false;
    };
    loaded().into_iter().find(|path| *path == first || *path == second) == Some(first)
}

/// Waits until no other thread is in a call of dlopen that has begun to load: such a call holds the
/// loader's lock to its end, and dlsym takes it.
pub fn wait_for_loads() {
    let _ = global_symbol(c"dlopen");
}

/// Returns the address of `name` in the libraries after this one, or 0.
pub fn next_symbol(name: &CStr) -> usize {
    // SAFETY: RTLD_NEXT is valid and the name a C string.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) as usize }
}

/// Declares a structure of functions of a library by their prototypes in C, and `of`, which finds
/// them. With `as`, the compiler compares the prototypes with those in a module.
macro_rules! c_functions {
    ($(#[$doc:meta])* $table:ident as $header:ident $functions:tt) => {
        crate::dl::c_functions! { $(#[$doc])* $table $functions }
        crate::dl::c_functions! { compare $header $functions }
    };
    (compare $header:ident { $($name:ident($($argument:ty),*) $(-> $answer:ty)?;)* }) => {
        // A constant that nothing uses names no symbol in the library that is built.
        $(const _: unsafe extern "C" fn($($argument),*) $(-> $answer)? = $header::$name;)*
    };
    ($(#[$doc:meta])* $table:ident { $($name:ident($($argument:ty),*) $(-> $answer:ty)?;)* }) => {
        $(#[$doc])*
        #[allow(non_snake_case)] // their names in C
        pub struct $table {
            $(
                #[doc = concat!("`", stringify!($name), "`")]
                pub $name: unsafe extern "C" fn($($argument),*) $(-> $answer)?,
            )*
        }

        impl $table {
            /// Finds the functions; the error is the name of one that is missing.
            pub fn of(library: crate::dl::Library) -> Result<$table, &'static str> {
                // SAFETY: the function of each name has this type.
                unsafe {
                    Ok($table {
                        $($name: library
                            .function(concat!(stringify!($name), "\0"))
                            .ok_or(stringify!($name))?,)*
                    })
                }
            }
        }
    };
}
pub(crate) use c_functions;
