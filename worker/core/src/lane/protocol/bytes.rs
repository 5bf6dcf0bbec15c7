//! Where postcard writes and reads messages. Its own types would be inlined for each of some hundred fields, which makes
//! the Wasm larger.

use postcard::Error;
use postcard::de_flavors::Flavor as Reads;
use postcard::ser_flavors::Flavor as Writes;

/// What is written of a message.
pub struct Written(pub Vec<u8>);

impl Writes for Written {
    type Output = Vec<u8>;

    #[inline(never)]
    fn try_push(&mut self, byte: u8) -> Result<(), Error> {
        self.0.push(byte);
        Ok(())
    }

    #[inline(never)]
    fn try_extend(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> Result<Vec<u8>, Error> {
        Ok(self.0)
    }
}

/// What is left to read of a message.
pub struct Unread<'m>(pub &'m [u8]);

impl<'m> Reads<'m> for Unread<'m> {
    type Remainder = &'m [u8];
    type Source = &'m [u8];

    #[inline(never)]
    fn pop(&mut self) -> Result<u8, Error> {
        let (first, rest) = self.0.split_first().ok_or(Error::DeserializeUnexpectedEnd)?;
        self.0 = rest;
        Ok(*first)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }

    #[inline(never)]
    fn try_take_n(&mut self, count: usize) -> Result<&'m [u8], Error> {
        let taken = self.0.split_at_checked(count);
        let (taken, rest) = taken.ok_or(Error::DeserializeUnexpectedEnd)?;
        self.0 = rest;
        Ok(taken)
    }

    fn finalize(self) -> Result<&'m [u8], Error> {
        Ok(self.0)
    }
}
