//! [lalrpop-util](https://docs.rs/lalrpop-util), whose parsers refuse every text in Wasm.
//!
//! `cedar-policy-core` has one parser for policies and another for schemas. The worker calls neither:
//! the build parses policies, and the worker reads what it wrote (`gateward_core::policy::expression`). But
//! Cedar's code calls its parsers where it makes names and error messages, so the linker keeps them:
//! a fifth of the Wasm (docs/decisions/0034-policy-parser.md). Such a parser is tables and actions, which
//! only [`state_machine::Parser::drive`] reaches. Here that function does not use them, so they are
//! not linked.
//!
//! Everything else is upstream's. Outside Wasm, and with the feature `parse`, so is that function.

#![no_std]

pub use lalrpop_util_upstream::*;

#[cfg(all(target_arch = "wasm32", not(feature = "parse")))]
pub mod state_machine {
    pub use lalrpop_util_upstream::state_machine::*;

    /// Drives nothing.
    pub struct Parser<D, I>(core::marker::PhantomData<(D, I)>);

    impl<D, I> Parser<D, I>
    where
        D: ParserDefinition,
        I: Iterator<Item = Result<TokenTriple<D>, ParseError<D>>>,
    {
        /// An error, whatever the tokens are.
        ///
        /// # Errors
        ///
        /// Always.
        pub fn drive(definition: D, _tokens: I) -> ParseResult<D> {
            Err(crate::ParseError::InvalidToken { location: definition.start_location() })
        }
    }
}

#[cfg(all(target_arch = "wasm32", not(feature = "parse"), feature = "lexer"))]
pub mod lexer {
    use core::convert::Infallible;
    use core::iter;

    use crate::ParseError;

    pub use lalrpop_util_upstream::lexer::Token;

    /// Upstream's compiles a regular expression for each kind of token.
    pub struct MatcherBuilder;

    impl MatcherBuilder {
        /// # Errors
        ///
        /// Never; upstream's can fail.
        pub fn new<S>(_exprs: impl IntoIterator<Item = (S, bool)>) -> Result<Self, Infallible> {
            Ok(Self)
        }

        /// No tokens.
        pub fn matcher<'input, E>(
            &self,
            _text: &'input str,
        ) -> impl Iterator<
            Item = Result<(usize, Token<'input>, usize), ParseError<usize, Token<'input>, E>>,
        > + use<'input, E> {
            iter::empty()
        }
    }
}
