//! Reads the values in a text or in JSON.
