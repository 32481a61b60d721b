//! The settings of this process, and their defaults.

use crate::adopt_setting::Adopt;
use crate::net_settings::NetSettings;

/// The action if a window has to be delegated to the host MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// write a line once per job
    Warn,
    /// write nothing
    Quiet,
    /// refuse to create the window
    Error,
}

/// The settings of this process. Ranks may differ in all of them but FOMPI_DISABLE and
/// FOMPI_RANKS_PER_NODE (`window::create::settings_check`). The other settings affect only what a
/// process writes and sends, or the ranks agree on their effect whenever they make a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// FOMPI_VERBOSE: one line per window
    pub verbose: bool,
    /// FOMPI_VERBOSE=2: a rank that waits long writes a line, and a table comes at the end of the
    /// job
    pub reports_waits: bool,
    /// FOMPI_DISABLE: the host MPI carries out all calls
    pub disable: bool,
    /// FOMPI_FALLBACK
    pub fallback: Fallback,
    /// FOMPI_NET, FOMPI_VERBS, and the variables whose names begin like them
    pub net: NetSettings,
    /// FOMPI_NET_SPIN: microseconds for which a waiting rank may spin before it sleeps, over TCP
    pub net_spin: Option<u32>,
    /// FOMPI_NET_TIMEOUT: seconds after which a process counts as lost whose node acknowledges
    /// nothing that was sent to it by TCP
    pub net_timeout: u32,
    /// FOMPI_RANKS_PER_NODE: this many ranks of a communicator count as being on one node, for
    /// tests
    pub ranks_per_node: Option<u32>,
    /// FOMPI_STRICT: every wrong call is an error, also those that MPIs carry out
    pub strict: bool,
    /// FOMPI_CHECK: accesses of one epoch that conflict are errors
    pub conflicts: bool,
    /// FOMPI_ORDER=strict: the transfers of a process with a rank take effect in their order
    pub strict_order: bool,
    /// FOMPI_ADOPT
    pub adopt: Adopt,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            verbose: false,
            reports_waits: false,
            disable: false,
            fallback: Fallback::Warn,
            net: NetSettings::default(),
            net_spin: None,
            net_timeout: 10,
            ranks_per_node: None,
            strict: false,
            conflicts: false,
            strict_order: false,
            adopt: Adopt::Auto,
        }
    }
}
