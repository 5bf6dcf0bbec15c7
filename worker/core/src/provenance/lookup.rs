//! The level of a value, as a whole and in parts.
