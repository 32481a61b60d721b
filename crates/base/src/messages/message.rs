//! A message with its code, the values of its placeholders, and the line that users read.

use crate::error_class::Class;
use core::fmt::{self, Display, Write};
use std::io::Write as _;

/// The part of a message that the library prints.
#[derive(Debug, PartialEq, Eq)]
pub struct Message {
    /// `FOMPI-E` or `FOMPI-W` and three digits
    pub code: &'static str,
    /// the MPI error class that it has in any case; none for a warning
    pub class: Option<Class>,
    /// its text, with placeholders such as `{rank}`
    pub text: &'static str,
}

/// A message with the advice that the page and `fompi explain` have. The library itself has no use
/// for the advice, and the linker leaves it out.
pub struct Explanation {
    /// the message
    pub message: &'static Message,
    /// when it occurs, in a sentence
    pub when: &'static str,
    /// the remedy, in sentences
    pub remedy: &'static str,
}

/// Defines messages and their table: name, code, class if it has one, text, when, remedy.
macro_rules! messages {
    ($($name:ident $code:literal $([$class:ident])? $text:literal $when:literal $remedy:literal;)*)
    => {
        use $crate::messages::message::{Explanation, Message, class};
        $(
            #[doc = $when]
            pub static $name: Message = Message {
                code: concat!("FOMPI-", $code),
                class: class!($($class)?),
                text: $text,
            };
        )*
        pub(super) static TABLE: &[Explanation] =
            &[$(Explanation { message: &$name, when: $when, remedy: $remedy }),*];
    };
}
pub(super) use messages;

/// Returns a class, or `None` without one.
macro_rules! class {
    () => {
        None
    };
    ($class:ident) => {
        Some($crate::error_class::Class::$class)
    };
}
pub(super) use class;

/// A message with the values of its placeholders. Displayed, it is the text without the code.
pub struct Filled<'a> {
    /// the message
    pub message: &'static Message,
    /// names of placeholders, and their values
    pub values: &'a [(&'static str, &'a dyn Display)],
}

/// Returns a [`Filled`] message: `filled!(messages::TARGET_RANK; rank, size = number)`. A name that
/// is no placeholder of the text, and a placeholder without a value, are errors of the compiler.
#[macro_export]
macro_rules! filled {
    (@ $name:ident) => {
        &$name as &dyn core::fmt::Display
    };
    (@ $name:ident $value:expr) => {
        &$value as &dyn core::fmt::Display
    };
    ($message:path $(; $($name:ident $(= $value:expr)?),+)?) => {
        $crate::messages::Filled {
            message: {
                const { $message.must_have(&[$($(stringify!($name)),+)?]) };
                &$message
            },
            values: &[$($((stringify!($name), $crate::filled!(@ $name $($value)?))),+)?],
        }
    };
}

impl Message {
    /// Panics unless these are the names of the text's placeholders.
    pub const fn must_have(&self, names: &[&str]) {
        let mut text = self.text.as_bytes();
        while let [first, rest @ ..] = text {
            assert!(*first != b'{' || is_any(rest, names), "a placeholder without a value");
            text = rest;
        }
        let mut names = names;
        while let [name, rest @ ..] = names {
            assert!(has(self.text.as_bytes(), name.as_bytes()), "a value without a placeholder");
            names = rest;
        }
    }
}

/// Whether a text has the placeholder of this name.
const fn has(mut text: &[u8], name: &[u8]) -> bool {
    while let [first, rest @ ..] = text {
        if *first == b'{' && is_name(rest, name) {
            return true;
        }
        text = rest;
    }
    false
}

/// Whether a text behind an opening brace begins with one of these names.
const fn is_any(text: &[u8], mut names: &[&str]) -> bool {
    while let [name, rest @ ..] = names {
        if is_name(text, name.as_bytes()) {
            return true;
        }
        names = rest;
    }
    false
}

/// Whether a text begins with a name and a closing brace.
const fn is_name(text: &[u8], name: &[u8]) -> bool {
    match (text, name) {
        ([b'}', ..], []) => true,
        ([first, text @ ..], [letter, name @ ..]) => *first == *letter && is_name(text, name),
        _ => false,
    }
}

impl Display for Filled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fill(f, self.message.text, self.values)
    }
}

/// Writes a text with its placeholders replaced.
pub fn fill(
    to: &mut impl Write,
    text: &str,
    values: &[(&'static str, &dyn Display)],
) -> fmt::Result {
    let mut parts = text.split('{');
    to.write_str(parts.next().unwrap_or_default())?;
    for part in parts {
        let (name, rest) = part.split_once('}').unwrap_or((part, ""));
        let value = values.iter().find(|(known, _)| *known == name);
        debug_assert!(value.is_some(), "`{text}` has no value for {name}");
        match value {
            Some((_, value)) => write!(to, "{value}{rest}")?,
            None => write!(to, "{{{name}}}{rest}")?,
        }
    }
    Ok(())
}

/// A line that users read: a text, then the code of its message in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line(String);

impl Line {
    /// Prints the line on standard error.
    pub fn print(&self) {
        print_without_code(&self.0);
    }
}

impl Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Filled<'_> {
    /// Returns the line of this message.
    pub fn line(&self) -> Line {
        self.message.line(self)
    }
}

impl Message {
    /// Returns a line of this message with another text than its own alone: that of an error begins
    /// with the name of the call.
    pub fn line(&self, text: impl Display) -> Line {
        Line(format!("{text} [{}]", self.code))
    }
}

/// Prints a text on standard error, as one of libfompi. Only for information: an error or a warning
/// is a [`Line`].
pub fn print_without_code(text: &str) {
    // One write: `eprintln!` makes several, which mix with those of other ranks.
    let _ = std::io::stderr().write_all(format!("fompi: {text}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{NO_EPOCH, TARGET_RANK};

    #[test]
    fn a_text_gets_its_values_and_the_code_ends_the_line() {
        let (rank, size) = (9, 8_u8);
        let filled = filled!(TARGET_RANK; rank, size = size + 1);
        assert_eq!(filled.to_string(), "target rank 9 is invalid: the window has 9 ranks");
        assert_eq!(filled.line().to_string(), format!("{filled} [FOMPI-E001]"));
        assert_eq!(filled!(NO_EPOCH).to_string(), NO_EPOCH.text);
    }

    #[test]
    fn names_of_values_are_those_of_placeholders() {
        let holds = |text, names: &[&str]| {
            let message = Message { code: "", class: None, text };
            std::panic::catch_unwind(|| message.must_have(names)).is_ok()
        };
        assert!(holds("{rank} of {size}", &["rank", "size"]) && holds("no value", &[]));
        assert!(holds("{a}{b}{a}", &["b", "a"]));
        assert!(!holds("{rank}", &["ran"]) && !holds("{ran}", &["rank"]) && !holds("{r", &["r"]));
        assert!(!holds("{rank}", &[]) && !holds("rank", &["rank"]));
        assert!(!holds("{rank} of {size}", &["rank"]) && !holds("{a}", &["a", "b"]));
    }

    #[cfg(not(loom))]
    #[test]
    fn a_line_goes_to_standard_error_with_the_name_of_the_library() {
        const INSIDE: &str = "A_LINE_GOES_TO_STANDARD_ERROR";
        if std::env::var_os(INSIDE).is_some() {
            filled!(NO_EPOCH).line().print();
            return;
        }
        let name = "a_line_goes_to_standard_error_with_the_name_of_the_library";
        let mut test = std::process::Command::new(std::env::current_exe().unwrap());
        let ended = test.args(["--nocapture", name]).env(INSIDE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        let line = format!("fompi: {} [FOMPI-E029]\n", NO_EPOCH.text);
        assert!(said.contains(&line), "{said}");
    }
}
