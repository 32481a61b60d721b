//! A second implementation of the ops, as a model for tests: on bytes, one member after the other,
//! integers as `i128` and floating point as `f64` rounded after each step. It also makes random
//! elements, with many hard cases.

use core::ops::Range;

use crate::basic::{Basic, Kind};
use crate::reduce::Op;

/// A small generator (xorshift64*), so that a failure repeats.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 33) as usize % limit
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Number {
    Signed(usize),
    Bits(usize),
    F32,
    F64,
    Extended,
}

impl Number {
    fn bytes(self) -> usize {
        match self {
            Number::Signed(bytes) | Number::Bits(bytes) => bytes,
            Number::F32 => 4,
            Number::F64 => 8,
            Number::Extended => 16,
        }
    }
}

/// The members of a type, with their offsets.
fn members(basic: Basic) -> Vec<(usize, Number)> {
    use Number::*;
    let both = |number: Number| vec![(0, number), (number.bytes(), number)];
    match basic {
        Basic::I8 | Basic::I16 | Basic::I32 | Basic::I64 | Basic::I128 | Basic::Aint64 => {
            vec![(0, Signed(basic.size()))]
        }
        Basic::F32 => vec![(0, F32)],
        Basic::F64 => vec![(0, F64)],
        Basic::LongDouble => vec![(0, Extended)],
        Basic::Complex32 | Basic::TwoReal => both(F32),
        Basic::Complex64 | Basic::TwoDouble => both(F64),
        Basic::ComplexLongDouble => both(Extended),
        Basic::FloatInt => vec![(0, F32), (4, Signed(4))],
        Basic::DoubleInt => vec![(0, F64), (8, Signed(4))],
        Basic::LongInt => vec![(0, Signed(8)), (8, Signed(4))],
        Basic::TwoInt | Basic::TwoInteger => both(Signed(4)),
        Basic::ShortInt => vec![(0, Signed(2)), (4, Signed(4))],
        Basic::LongDoubleInt => vec![(0, Extended), (16, Signed(4))],
        Basic::Opaque32 => both(Bits(16)),
        _ => vec![(0, Bits(basic.size()))],
    }
}

/// Which bytes of an element are data.
pub fn data(basic: Basic) -> Vec<Range<usize>> {
    members(basic).iter().map(|&(at, number)| at..at + number.bytes()).collect()
}

#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Value {
    Integer(i128),
    Natural(u128),
    Real(f64),
}

fn decode(number: Number, bytes: &[u8]) -> Value {
    let mut raw = [0; 16];
    raw[..number.bytes()].copy_from_slice(&bytes[..number.bytes()]);
    let bits = u128::from_le_bytes(raw);
    match number {
        Number::Signed(bytes) => {
            let unused = 128 - 8 * bytes;
            Value::Integer((bits as i128) << unused >> unused)
        }
        Number::Bits(_) => Value::Natural(bits),
        Number::F32 => Value::Real(f32::from_bits(bits as u32).into()),
        Number::F64 => Value::Real(f64::from_bits(bits as u64)),
        Number::Extended if IS_BINARY128 => {
            let (fraction, exponent) = ((bits << 16 >> 64) as u64, (bits >> 112) as i32 & 0x7fff);
            let sign = if bits >> 127 == 1 { -1. } else { 1. };
            let significand = if exponent == 0 { 0. } else { 1. + fraction as f64 / 2f64.powi(64) };
            Value::Real(sign * significand * 2f64.powi(exponent - 16383))
        }
        Number::Extended => {
            let (significand, exponent) = (bits as u64, (bits >> 64) as i32 & 0x7fff);
            let sign = if bits >> 79 & 1 == 1 { -1. } else { 1. };
            Value::Real(sign * significand as f64 * 2f64.powi(exponent - 16383 - 63))
        }
    }
}

fn encode(number: Number, value: Value) -> Vec<u8> {
    let bits = match value {
        Value::Integer(value) => value as u128,
        Value::Natural(value) => value,
        Value::Real(value) => match number {
            Number::F32 => (value as f32).to_bits().into(),
            Number::F64 => value.to_bits().into(),
            _ => extended(value),
        },
    };
    bits.to_le_bytes()[..number.bytes()].to_vec()
}

/// Whether a `long double` is IEEE binary128; otherwise it is the ten bytes of the x87.
const IS_BINARY128: bool = cfg!(target_arch = "aarch64");

/// A finite number as a `long double`.
fn extended(value: f64) -> u128 {
    let bits = value.to_bits();
    let sign = u128::from(bits >> 63) << if IS_BINARY128 { 127 } else { 79 };
    if value == 0. {
        return sign;
    }
    let exponent = u128::from(bits >> 52 & 0x7ff) + 16383 - 1023;
    if IS_BINARY128 {
        return sign | exponent << 112 | u128::from(bits << 12) << 48;
    }
    let significand = 1 << 63 | u128::from(bits << 12 >> 1);
    sign | exponent << 64 | significand
}

fn round(number: Number, value: f64) -> f64 {
    if number == Number::F32 { (value as f32).into() } else { value }
}

fn arithmetic(
    number: Number,
    (left, right): (Value, Value),
    integers: fn(u128, u128) -> u128,
    reals: fn(f64, f64) -> f64,
) -> Value {
    match (left, right) {
        (Value::Integer(left), Value::Integer(right)) => {
            Value::Integer(integers(left as u128, right as u128) as i128)
        }
        (Value::Natural(left), Value::Natural(right)) => Value::Natural(integers(left, right)),
        (Value::Real(left), Value::Real(right)) => Value::Real(round(number, reals(left, right))),
        _ => panic!("two kinds of values"),
    }
}

fn add(number: Number, values: (Value, Value)) -> Value {
    arithmetic(number, values, u128::wrapping_add, |left, right| left + right)
}

fn multiply(number: Number, values: (Value, Value)) -> Value {
    arithmetic(number, values, u128::wrapping_mul, |left, right| left * right)
}

fn subtract(number: Number, values: (Value, Value)) -> Value {
    arithmetic(number, values, u128::wrapping_sub, |left, right| left - right)
}

fn bitwise(values: (Value, Value), of: fn(u128, u128) -> u128) -> Value {
    arithmetic(Number::Bits(16), values, of, |_, _| panic!("bits of a floating-point number"))
}

fn logical((left, right): (Value, Value), of: fn(bool, bool) -> bool) -> Value {
    let truth = |value| !matches!(value, Value::Integer(0) | Value::Natural(0));
    let answer = of(truth(left), truth(right));
    match left {
        Value::Integer(_) => Value::Integer(answer.into()),
        _ => Value::Natural(answer.into()),
    }
}

/// The element that the target holds afterwards, its padding included.
pub fn expected(op: Op, basic: Basic, target: &[u8], origin: &[u8]) -> Vec<u8> {
    let members = members(basic);
    let values: Vec<_> = members
        .iter()
        .map(|&(at, number)| (decode(number, &target[at..]), decode(number, &origin[at..])))
        .collect();
    let (value, number) = (values[0], members[0].1);
    let single = |value| vec![encode(number, value)];
    let keep = || members.iter().map(|&(at, number)| target[at..at + number.bytes()].to_vec());
    let take = || members.iter().map(|&(at, number)| origin[at..at + number.bytes()].to_vec());
    let choose = |target| if target { keep().collect() } else { take().collect() };
    let tie = || value.0 == value.1 && values[1].1 < values[1].0;
    let new: Vec<Vec<u8>> = match op {
        Op::NoOp => keep().collect(),
        Op::Replace => take().collect(),
        Op::Max => choose(value.0 > value.1),
        Op::Min => choose(value.0 < value.1),
        Op::MaxLoc => choose(!(value.1 > value.0 || tie())),
        Op::MinLoc => choose(!(value.1 < value.0 || tie())),
        Op::Sum => values.iter().map(|&values| encode(number, add(number, values))).collect(),
        Op::Prod if basic.kind() == Kind::Complex => {
            let ((a, c), (b, d)) = (values[0], values[1]);
            let product = |left, right| multiply(number, (left, right));
            vec![
                encode(number, subtract(number, (product(a, c), product(b, d)))),
                encode(number, add(number, (product(a, d), product(b, c)))),
            ]
        }
        Op::Prod => single(multiply(number, value)),
        Op::Land => single(logical(value, |left, right| left && right)),
        Op::Lor => single(logical(value, |left, right| left || right)),
        Op::Lxor => single(logical(value, |left, right| left != right)),
        Op::Band => single(bitwise(value, |left, right| left & right)),
        Op::Bor => single(bitwise(value, |left, right| left | right)),
        Op::Bxor => single(bitwise(value, |left, right| left ^ right)),
    };
    let mut element = target.to_vec();
    for (&(at, number), bytes) in members.iter().zip(new) {
        element[at..at + number.bytes()].copy_from_slice(&bytes);
    }
    element
}

/// Whether two elements are the same, the padding too. All NaNs are equal here, and the bytes after
/// the ten bytes of the x87 count only where no arithmetic was done.
pub fn same(op: Op, basic: Basic, found: &[u8], wanted: &[u8]) -> bool {
    let (mut found, wanted) = (found.to_vec(), wanted.to_vec());
    for (at, number) in members(basic) {
        let mut end = at + number.bytes();
        if number == Number::Extended && !IS_BINARY128 && matches!(op, Op::Sum | Op::Prod) {
            end = at + 10;
            found[end..at + 16].copy_from_slice(&wanted[end..at + 16]);
        }
        let nan =
            |bytes: &[u8]| matches!(decode(number, bytes), Value::Real(value) if value.is_nan());
        if number != Number::Extended && nan(&found[at..]) && nan(&wanted[at..]) {
            found[at..end].copy_from_slice(&wanted[at..end]);
        }
    }
    found == wanted
}

/// A random element, padding included. Values that an op treats specially come often.
pub fn element(op: Op, basic: Basic, random: &mut Random) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..basic.extent()).map(|_| random.next() as u8).collect();
    if matches!(op, Op::Replace | Op::NoOp) {
        return bytes;
    }
    let pair = basic.kind() == Kind::Pair;
    for (at, number) in members(basic) {
        let small = random.below(7) as i128 - 3;
        let value = match number {
            Number::Signed(_) if pair || random.below(2) == 0 => Value::Integer(small),
            Number::Bits(_) if random.below(2) == 0 => Value::Natural(random.below(3) as u128),
            Number::Signed(_) | Number::Bits(_) => continue,
            Number::Extended => Value::Real(small as f64 / 2.),
            Number::F32 | Number::F64 if pair => Value::Real(small as f64),
            Number::F32 | Number::F64 => {
                let some =
                    f64::from(random.next() as i32) * 2f64.powi(random.below(60) as i32 - 30);
                let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0., -0., f64::MAX];
                let special = random.one_of(&special);
                Value::Real(if random.below(3) == 0 { special } else { some })
            }
        };
        bytes[at..at + number.bytes()].copy_from_slice(&encode(number, value));
    }
    bytes
}
