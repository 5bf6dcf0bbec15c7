//! What the arguments of a tool are for, and whom a call of it reaches.

use serde::{Deserialize, Serialize};

use super::pointers::{self, Step};
use crate::text_enum::text_enum;

text_enum! {
    /// What an argument is for.
    #[derive(PartialOrd, Ord, Hash)]
    Role {
        /// Who or what the effect reaches: a recipient, account, URL, host, path, branch or permission, the
        /// amount of a payment.
        Sink = "sink",
        /// A time, place or title, the name of a new file: a detail that reaches nobody by itself.
        Detail = "detail",
        /// Text for a reader. Links and addresses in it are sinks of their own.
        Content = "content",
    }
}

text_enum! {
    /// Whom a call of a tool reaches, as registered.
    #[derive(Default, PartialOrd, Ord, Hash)]
    Reach {
        /// Nobody but the user.
        Nobody = "nobody",
        /// Others in the tenant.
        Tenant = "tenant",
        /// Others outside of the tenant.
        #[default]
        Outside = "outside",
        /// Those that the sinks name: nobody if there are no sinks, the tenant if its allow-list has all of them,
        /// otherwise others outside.
        BySinks = "by_sinks",
    }
}

/// The roles of a tool's arguments, by JSON Pointer (RFC 6901) into the arguments. `*` as a step stands for
/// every item of an array, and in the pointer of a sink also for every member of an object. A role holds for everything below its pointer; the longest pointer counts. An
/// argument without a role is a sink. If no argument has the role of a sink, every argument is one. As JSON:
/// `{"/to":"sink"}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ArgumentRoles(
    #[serde(
        serialize_with = "pointers::serialize",
        deserialize_with = "pointers::deserialize_parts"
    )]
    pub Vec<(String, Role)>,
);

impl ArgumentRoles {
    /// Whether a pointer leads through the member to which these steps lead.
    #[must_use]
    pub fn lead_to(&self, steps: &[Step<'_>]) -> bool {
        self.0.iter().any(|(pointer, _)| {
            let mut pointer = pointer.split('/').skip(1);
            steps.iter().all(|step| pointer.next().is_some_and(|it| step.is(it)))
        })
    }
}
