//! The normal form of values, and bounded decodings.
