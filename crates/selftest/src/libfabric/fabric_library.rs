//! libfabric, opened at run time, and the provider that it finds. Invariant: the library is never
//! closed. Its functions have the versions whose structures are those of the headers of 1.17; later
//! releases have these versions, too.

use super::fabric::*;
use fompi_sys::dl::{Library, object_at};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

/// Declares the functions by their prototypes, which the compiler compares with the headers, and
/// the versions of their symbols.
macro_rules! versioned_functions {
    ($($name:ident @ $version:literal ($($argument:ty),*) $(-> $answer:ty)?;)*) => {
        /// The functions of libfabric that are no calls through an object.
        pub struct FabricLibrary {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)*
        }

        impl FabricLibrary {
            fn of(library: Library) -> Result<FabricLibrary, &'static str> {
                // SAFETY: this version of each function has the type in the headers.
                unsafe {
                    Ok(FabricLibrary {
                        $($name: library
                            .function_of_version(c_text(concat!(stringify!($name), "\0")), $version)
                            .ok_or(stringify!($name))?,)*
                    })
                }
            }
        }

        // A constant that nothing uses names no symbol in the program that is built.
        $(const _: unsafe extern "C" fn($($argument),*) $(-> $answer)? =
            crate::libfabric::fabric::$name;)*
    };
}

versioned_functions! {
    fi_getinfo @ c"FABRIC_1.3"
        (u32, *const c_char, *const c_char, u64, *const fi_info, *mut *mut fi_info) -> c_int;
    fi_freeinfo @ c"FABRIC_1.3" (*mut fi_info);
    fi_dupinfo @ c"FABRIC_1.3" (*const fi_info) -> *mut fi_info;
    fi_fabric @ c"FABRIC_1.1" (*mut fi_fabric_attr, *mut *mut fid_fabric, *mut c_void) -> c_int;
    fi_version @ c"FABRIC_1.0" () -> u32;
    fi_strerror @ c"FABRIC_1.0" (c_int) -> *const c_char;
    fi_tostr @ c"FABRIC_1.0" (*const c_void, fi_type) -> *mut c_char;
}

/// A name that ends with NUL.
fn c_text(name: &'static str) -> &'static CStr {
    CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or(c"")
}

/// The file that is opened: the copy of the MPI, if it has loaded one.
const FILE: &CStr = c"libfabric.so.1";
/// The version of the headers, as fi_getinfo takes it: FI_VERSION(1, 17).
const API: u32 = 1 << 16 | 17;
/// The order of writes and atomic operations among each other.
const WAW: u64 = FI_ORDER_WAW as u64;

impl FabricLibrary {
    /// Opens libfabric.
    pub fn open() -> Result<FabricLibrary, String> {
        let library = Library::load(FILE)?;
        FabricLibrary::of(library).map_err(|name| format!("libfabric has no {name}"))
    }

    /// The path of the library.
    pub fn path(&self) -> String {
        let found = object_at(self.fi_version as usize);
        found.map_or_else(String::new, |(path, _)| path.to_string_lossy().into_owned())
    }

    /// Its version.
    pub fn version(&self) -> String {
        // SAFETY: may be called at any time.
        let version = unsafe { (self.fi_version)() };
        format!("{}.{}", version >> 16, version & 0xffff)
    }

    /// The text of an error: a negative result of a call, or the positive number in a completion.
    pub fn text_of(&self, code: i64) -> String {
        let code = c_int::try_from(code.abs()).unwrap_or(c_int::MAX);
        // SAFETY: returns a constant C string for any number.
        text(unsafe { (self.fi_strerror)(code) })
    }

    /// Turns a negative result into an error that names the call.
    pub fn checked(&self, call: &str, code: c_int) -> Result<(), String> {
        if code < 0 { Err(format!("{call}: {}", self.text_of(code.into()))) } else { Ok(()) }
    }

    /// libfabric's names for bits or for the value of an enum.
    pub fn names<T>(&self, value: &T, kind: fi_type) -> String {
        // SAFETY: the value of the type that `kind` means; the text lives until the next call.
        text(unsafe { (self.fi_tostr)(ptr::from_ref(value).cast(), kind) })
    }

    /// Opens a fabric.
    pub fn fabric(&self, provider: &Provider) -> Result<*mut fid_fabric, String> {
        let mut fabric = ptr::null_mut();
        // SAFETY: attributes that fi_getinfo has returned.
        let code =
            unsafe { (self.fi_fabric)((*provider.info).fabric_attr, &mut fabric, ptr::null_mut()) };
        self.checked("fi_fabric", code)?;
        Ok(fabric)
    }
}

/// The text at an address; empty at a null pointer.
fn text(at: *const c_char) -> String {
    if at.is_null() {
        return String::new();
    }
    // SAFETY: libfabric's strings end with NUL.
    unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned()
}

/// A provider for reliable one-sided operations, with its attributes. All of them stay valid.
pub struct Provider<'a> {
    /// the library
    pub library: &'a FabricLibrary,
    /// what fi_getinfo has returned
    pub info: *mut fi_info,
    /// attributes of the domain
    pub domain: &'a fi_domain_attr,
    /// attributes of the endpoint
    pub endpoint: &'a fi_ep_attr,
    /// attributes of the side that sends
    pub origin: &'a fi_tx_attr,
    /// attributes of the fabric
    pub fabric: &'a fi_fabric_attr,
}

impl<'a> Provider<'a> {
    /// Finds a provider by its name; with keys that these checks choose, with the order of writes,
    /// and with progress without calls of the target, if it has these. Keys that `cxi` chooses are
    /// those of its cache, which reach memory after their end.
    pub fn find(library: &'a FabricLibrary, name: &str) -> Result<Provider<'a>, String> {
        let wishes = [
            (WAW, FI_PROGRESS_AUTO),
            (WAW, FI_PROGRESS_UNSPEC),
            (FI_ORDER_NONE.into(), FI_PROGRESS_AUTO),
            (FI_ORDER_NONE.into(), FI_PROGRESS_UNSPEC),
        ];
        let mut found = Err(0);
        for keys in [0, FI_MR_PROV_KEY] {
            for wish in wishes {
                found = found.or_else(|_| Provider::with(library, name, keys, wish));
            }
        }
        let info = found.map_err(|code| {
            format!("provider {name}: fi_getinfo: {}", library.text_of(code.into()))
        })?;
        // SAFETY: fi_getinfo fills in all attributes, and the list is never freed.
        unsafe {
            Ok(Provider {
                library,
                info,
                domain: &*(*info).domain_attr,
                endpoint: &*(*info).ep_attr,
                origin: &*(*info).tx_attr,
                fabric: &*(*info).fabric_attr,
            })
        }
    }

    fn with(
        library: &FabricLibrary,
        name: &str,
        keys: u32,
        (order, progress): (u64, fi_progress),
    ) -> Result<*mut fi_info, c_int> {
        let name = CString::new(name).unwrap_or_default();
        let modes = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_ENDPOINT | keys;
        let mut found = ptr::null_mut();
        // SAFETY: fi_dupinfo makes hints with all attributes; fi_freeinfo frees them and the name.
        unsafe {
            let hints = (library.fi_dupinfo)(ptr::null());
            (*hints).caps = (FI_RMA | FI_ATOMIC).into();
            (*(*hints).ep_attr).type_ = FI_EP_RDM;
            (*(*hints).tx_attr).msg_order = order;
            (*(*hints).rx_attr).msg_order = order;
            (*(*hints).domain_attr).mr_mode = modes.cast_signed();
            (*(*hints).domain_attr).data_progress = progress;
            (*(*hints).domain_attr).threading = FI_THREAD_SAFE;
            (*(*hints).fabric_attr).prov_name = libc::strdup(name.as_ptr());
            let code = (library.fi_getinfo)(API, ptr::null(), ptr::null(), 0, hints, &mut found);
            (library.fi_freeinfo)(hints);
            if code == 0 { Ok(found) } else { Err(code) }
        }
    }

    /// Whether a mode of registration is on.
    pub fn registers(&self, mode: u32) -> bool {
        self.domain.mr_mode.cast_unsigned() & mode != 0
    }

    /// Whether the provider promises that writes of up to `bytes` bytes arrive in order.
    pub fn orders_writes(&self, bytes: usize) -> bool {
        self.orders(WAW | FI_ORDER_RMA_WAW, bytes)
    }

    /// Whether it promises that an atomic operation does not overtake such a write.
    pub fn orders_atomics(&self, bytes: usize) -> bool {
        self.orders(WAW, bytes)
    }

    fn orders(&self, any_of: u64, bytes: usize) -> bool {
        self.origin.msg_order & any_of != 0 && self.endpoint.max_order_waw_size >= bytes
    }

    /// Name and version of the provider.
    pub fn name(&self) -> (String, String) {
        let version = self.fabric.prov_version;
        (text(self.fabric.prov_name), format!("{}.{}", version >> 16, version & 0xffff))
    }

    /// Name of the domain.
    pub fn domain_name(&self) -> String {
        text(self.domain.name)
    }
}
