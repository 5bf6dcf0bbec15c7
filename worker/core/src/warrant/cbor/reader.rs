//! Reads items.

use super::super::bounds::MAX_NESTING;
use super::item::{Malformed, major};
use crate::json::{Json, sort_fields};

/// Members of a map with known names, at most.
const MAX_MEMBERS: usize = 9;

const TWICE: Malformed = Malformed("a key occurs twice");

/// The names that [`Reader::members`] read.
#[derive(Debug)]
pub struct Members<'a> {
    names: [&'a str; MAX_MEMBERS],
    count: usize,
}

impl Members<'_> {
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.names.iter().take(self.count).any(|it| *it == name)
    }
}

/// Reads items from the front of its input.
///
/// The methods that every other one begins with are never inlined: a warrant has some fifty items, and the code of a
/// reader that is inlined everywhere is a fifth of the verifier's.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    #[must_use]
    pub const fn new(input: &'a [u8]) -> Self {
        Self { rest: input }
    }

    /// # Errors
    ///
    /// Something follows.
    pub fn end(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed("bytes follow the end")) }
    }

    /// The major type of the next item.
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().map(|head| head >> 5)
    }

    /// Whether an array is next.
    #[must_use]
    pub fn is_array(&self) -> bool {
        self.peek() == Some(major::ARRAY)
    }

    /// Whether a text is next.
    #[must_use]
    pub fn is_text(&self) -> bool {
        self.peek() == Some(major::TEXT)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed("it is cut off"))?;
        self.rest = rest;
        Ok(taken)
    }

    /// The bytes that `read` consumes.
    ///
    /// # Errors
    ///
    /// Those of `read`.
    pub fn consumed<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<(T, &'a [u8]), Malformed> {
        let before = self.rest;
        let value = read(self)?;
        let length = before.len() - self.rest.len();
        Ok((value, before.get(..length).unwrap_or_default()))
    }

    /// A head: major type, the five lower bits, and the argument.
    #[inline(never)]
    fn head(&mut self) -> Result<(u8, u8, u64), Malformed> {
        let [head] = *self.take(1)? else { return Err(Malformed("it is cut off")) };
        let (major, info) = (head >> 5, head & 0x1f);
        let width = match info {
            0..=23 => return Ok((major, info, u64::from(info))),
            24..=27 => 1_usize << (info - 24),
            _ => return Err(Malformed("a length is not definite")),
        };
        let argument = self.take(width)?.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let least = match info {
            24 => 24,
            25 => 1 << 8,
            26 => 1 << 16,
            _ => 1 << 32,
        };
        // The bits of a float are no length.
        if major != major::SIMPLE && argument < least {
            return Err(Malformed("a length or a number does not have its shortest form"));
        }
        Ok((major, info, argument))
    }

    /// The argument of a head with this major type. Most heads are one byte; those of keys and signatures are two.
    fn of(&mut self, wanted: u8) -> Result<u64, Malformed> {
        match self.rest {
            [head, rest @ ..] if (head >> 5, head & 0x1f < 24) == (wanted, true) => {
                self.rest = rest;
                Ok(u64::from(head & 0x1f))
            }
            [head, argument, rest @ ..] if *head == wanted << 5 | 24 && *argument >= 24 => {
                self.rest = rest;
                Ok(u64::from(*argument))
            }
            _ => self.rare_of(wanted),
        }
    }

    #[inline(never)]
    fn rare_of(&mut self, wanted: u8) -> Result<u64, Malformed> {
        let (major, _, argument) = self.head()?;
        if major == wanted {
            return Ok(argument);
        }
        Err(Malformed(match wanted {
            major::UNSIGNED => "an unsigned integer was expected",
            major::BYTES => "a byte string was expected",
            major::TEXT => "a text was expected",
            major::ARRAY => "an array was expected",
            _ => "a map was expected",
        }))
    }

    /// The number of items of an array, or of entries of a map.
    #[inline(never)]
    fn count(&mut self, wanted: u8) -> Result<usize, Malformed> {
        let items = usize::try_from(self.of(wanted)?).ok();
        items.filter(|items| *items <= self.rest.len()).ok_or(Malformed("it is cut off"))
    }

    /// # Errors
    ///
    /// It is no unsigned integer.
    pub fn unsigned(&mut self) -> Result<u64, Malformed> {
        self.of(major::UNSIGNED)
    }

    /// # Errors
    ///
    /// It is no unsigned integer, or too large for the type.
    #[inline(never)]
    pub fn small<T: TryFrom<u64>>(&mut self) -> Result<T, Malformed> {
        T::try_from(self.unsigned()?).map_err(|_| Malformed("a number is out of range"))
    }

    /// # Errors
    ///
    /// It is no byte string.
    #[inline(never)]
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.of(major::BYTES)?;
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// # Errors
    ///
    /// It is no byte string of `N` bytes.
    pub fn exact<const N: usize>(&mut self) -> Result<&'a [u8; N], Malformed> {
        self.bytes()?.try_into().map_err(|_| Malformed("a byte string has the wrong length"))
    }

    /// # Errors
    ///
    /// It is no text, or not UTF-8.
    #[inline(never)]
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        let length = self.of(major::TEXT)?;
        let bytes = self.take(usize::try_from(length).unwrap_or(usize::MAX))?;
        std::str::from_utf8(bytes).map_err(|_| Malformed("a text is not UTF-8"))
    }

    /// A text that is kept.
    ///
    /// # Errors
    ///
    /// Those of [`Self::text`].
    #[inline(never)]
    pub fn owned_text(&mut self) -> Result<String, Malformed> {
        self.text().map(str::to_owned)
    }

    /// # Errors
    ///
    /// It is no boolean.
    #[inline(never)]
    pub fn flag(&mut self) -> Result<bool, Malformed> {
        match self.head()? {
            (major::SIMPLE, 20, _) => Ok(false),
            (major::SIMPLE, 21, _) => Ok(true),
            _ => Err(Malformed("true or false was expected")),
        }
    }

    /// Whether null is next. If so, it is read.
    pub fn null(&mut self) -> bool {
        match self.rest {
            [0xf6, rest @ ..] => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// The number of items of an array.
    ///
    /// # Errors
    ///
    /// It is no array, or the input has fewer bytes than the array has items.
    pub fn array(&mut self) -> Result<usize, Malformed> {
        self.count(major::ARRAY)
    }

    /// # Errors
    ///
    /// It is no array of `items`.
    #[inline(never)]
    pub fn tuple(&mut self, items: usize) -> Result<(), Malformed> {
        if self.array()? == items {
            Ok(())
        } else {
            Err(Malformed("an array has the wrong length"))
        }
    }

    /// The number of entries of a map.
    ///
    /// # Errors
    ///
    /// It is no map, or the input has fewer bytes than the map has keys.
    pub fn map(&mut self) -> Result<usize, Malformed> {
        self.count(major::MAP)
    }

    /// The number of entries of a map, which has at most `most`.
    #[inline(never)]
    fn map_of(&mut self, most: usize) -> Result<usize, Malformed> {
        let count = self.map()?;
        if count > most { Err(Malformed("a map has too many entries")) } else { Ok(count) }
    }

    /// Reads a map that has some of a few known members: `read` gets each name and reads its value. It must
    /// refuse the names that it does not know.
    ///
    /// Not generic, so that it is compiled only once.
    ///
    /// # Errors
    ///
    /// It is no such map, a name occurs twice, there are more than [`MAX_MEMBERS`], or `read` fails.
    #[inline(never)]
    pub fn members(
        &mut self,
        read: &mut dyn FnMut(&mut Self, &'a str) -> Result<(), Malformed>,
    ) -> Result<Members<'a>, Malformed> {
        let mut members = Members { names: [""; MAX_MEMBERS], count: self.map_of(MAX_MEMBERS)? };
        for at in 0..members.count {
            let name = self.text()?;
            let (before, rest) = members.names.split_at_mut(at);
            if before.contains(&name) {
                return Err(TWICE);
            }
            if let Some(free) = rest.first_mut() {
                *free = name;
            }
            read(self, name)?;
        }
        Ok(members)
    }

    /// The entries of a map from texts, sorted by key, at most `most`.
    ///
    /// Keys are inserted instead of sorted, because a sort is ten times the code, and most writers sort them. `most`
    /// bounds what the inserts move.
    ///
    /// # Errors
    ///
    /// It is no such map, a key occurs twice, there are too many entries, or `read` fails.
    pub fn entries<T>(
        &mut self,
        most: usize,
        read: fn(&mut Self, &'a str) -> Result<T, Malformed>,
    ) -> Result<Vec<(String, T)>, Malformed> {
        let mut entries: Vec<(String, T)> = Vec::new();
        for _ in 0..self.map_of(most)? {
            let key = self.text()?;
            let mut at = entries.len();
            if entries.last().is_some_and(|(last, _)| last.as_str() >= key) {
                match entries.binary_search_by(|(other, _)| other.as_str().cmp(key)) {
                    Ok(_) => return Err(TWICE),
                    Err(place) => at = place,
                }
            }
            let value = read(self, key)?;
            // `at` is at most the length.
            entries.insert(at, (key.to_owned(), value));
        }
        Ok(entries)
    }

    /// The items of an array, at most `most`.
    ///
    /// # Errors
    ///
    /// It is no array, there are too many items, or `read` fails.
    pub fn list<T>(
        &mut self,
        most: usize,
        mut read: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.array()?;
        if count > most {
            return Err(Malformed("an array has too many items"));
        }
        // A loop: collecting results has twice the code.
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(read(self)?);
        }
        Ok(items)
    }

    /// An array of small numbers, which is how some byte strings are written.
    ///
    /// # Errors
    ///
    /// It is no array of numbers up to 255, or it has more than `most`.
    #[inline(never)]
    pub fn octets(&mut self, most: usize) -> Result<Vec<u8>, Malformed> {
        self.list(most, Self::small)
    }

    /// A number, whole or not. A whole number that is written as a float is [`Json::Number`].
    fn number(&mut self) -> Result<Json, Malformed> {
        Ok(match self.head()? {
            // Integers beyond ±2^53 never equal an argument, because arguments do not have them.
            (major::UNSIGNED, _, value) => match i64::try_from(value) {
                Ok(value) => Json::Integer(value),
                Err(_) => Json::Number(value as f64),
            },
            (major::NEGATIVE, _, value) => match i64::try_from(value) {
                Ok(value) => Json::Integer(-1 - value),
                Err(_) => return Err(Malformed("a whole number is less than -2^63")),
            },
            (major::SIMPLE, 25, bits) => Json::Number(half(bits)),
            (major::SIMPLE, 26, bits) => {
                Json::Number(f64::from(f32::from_bits(u32::try_from(bits).unwrap_or(u32::MAX))))
            }
            (major::SIMPLE, 27, bits) => Json::Number(f64::from_bits(bits)),
            _ => return Err(Malformed("a number was expected")),
        })
    }

    /// A finite number.
    ///
    /// # Errors
    ///
    /// It is no number, or not finite.
    pub fn finite(&mut self) -> Result<f64, Malformed> {
        let number = match self.number()? {
            Json::Integer(value) => value as f64,
            Json::Number(value) => value,
            _ => f64::NAN,
        };
        if number.is_finite() { Ok(number) } else { Err(Malformed("a number is not finite")) }
    }

    /// A value as an argument can have it.
    ///
    /// # Errors
    ///
    /// It has a type that JSON lacks, or is nested too deeply.
    pub fn value(&mut self) -> Result<Json, Malformed> {
        self.nested(0)
    }

    /// Reads over one item, which may have byte strings in it.
    ///
    /// # Errors
    ///
    /// It is malformed, or nested too deeply.
    pub fn skip(&mut self) -> Result<(), Malformed> {
        self.skip_nested(0)
    }

    fn skip_nested(&mut self, depth: usize) -> Result<(), Malformed> {
        if depth > MAX_NESTING {
            return Err(Malformed("it is nested too deeply"));
        }
        match self.peek() {
            Some(major::BYTES) => self.bytes().map(drop),
            Some(major::TEXT) => self.text().map(drop),
            Some(major::ARRAY) => {
                for _ in 0..self.array()? {
                    self.skip_nested(depth + 1)?;
                }
                Ok(())
            }
            Some(major::MAP) => {
                for _ in 0..self.map()? {
                    self.skip_nested(depth + 1)?;
                    self.skip_nested(depth + 1)?;
                }
                Ok(())
            }
            Some(major::UNSIGNED | major::NEGATIVE | major::SIMPLE) => self.head().map(drop),
            _ => Err(Malformed("a value has a type that arguments do not have")),
        }
    }

    fn nested(&mut self, depth: usize) -> Result<Json, Malformed> {
        if depth > MAX_NESTING {
            return Err(Malformed("it is nested too deeply"));
        }
        match self.peek() {
            Some(major::TEXT) => self.owned_text().map(Json::String),
            Some(major::ARRAY) => {
                self.list(usize::MAX, |reader| reader.nested(depth + 1)).map(Json::Array)
            }
            Some(major::MAP) => {
                // Sorted at the end, because nothing but the input bounds the number of fields.
                let mut fields = Vec::new();
                for _ in 0..self.map()? {
                    let key = self.owned_text()?;
                    fields.push((key, self.nested(depth + 1)?));
                }
                sort_fields(&mut fields);
                let twice = fields.array_windows().any(|[(a, _), (b, _)]| a == b);
                if twice { Err(TWICE) } else { Ok(Json::Object(fields)) }
            }
            Some(major::SIMPLE) => match self.rest.first() {
                Some(0xf4 | 0xf5) => self.flag().map(Json::Bool),
                Some(0xf6) => {
                    self.null();
                    Ok(Json::Null)
                }
                _ => self.number(),
            },
            Some(major::UNSIGNED | major::NEGATIVE) => self.number(),
            _ => Err(Malformed("a value has a type that arguments do not have")),
        }
    }
}

/// A float of 16 bits (IEEE 754, binary16).
pub(super) fn half(bits: u64) -> f64 {
    let (exponent, mantissa) = (bits >> 10 & 0x1f, (bits & 0x3ff) as f64);
    let magnitude = match exponent {
        0 => mantissa * 2_f64.powi(-24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + mantissa / 1024.0) * 2_f64.powi(i32::try_from(exponent).unwrap_or(0) - 15),
    };
    if bits >> 15 & 1 == 1 { -magnitude } else { magnitude }
}
