//! Roots of warrants, and revocations.

use gateward_core::problem::ProblemCode::{LimitReached, NameTaken, StateConflict};

use super::super::entry::{CREATED, CREATED_OR_KEPT, DONE, Entry};
use crate::warrant_revocation::{RevokeWarrant, WarrantRevocation, WarrantRevocationRow};
use crate::warrant_root::{
    CreateWarrantRoot, RevocationListRequest, WarrantRootPatch, WarrantRootRow, WarrantRootView,
};

pub(super) fn list_warrant_roots() -> Entry {
    Entry::new("warrants", "list_warrant_roots", "Lists roots of warrants.")
        .page::<WarrantRootRow>()
}

pub(super) fn create_warrant_root() -> Entry {
    Entry::new("warrants", "create_warrant_root", "Registers a key whose warrants are accepted.")
        .takes::<CreateWarrantRoot>()
        .writes::<WarrantRootView>(&CREATED)
        .tagged()
        .refuses(&[LimitReached, NameTaken, StateConflict])
}

pub(super) fn read_warrant_root() -> Entry {
    Entry::new("warrants", "read_warrant_root", "Returns a root of warrants.")
        .answers::<WarrantRootView>()
        .tagged()
}

pub(super) fn patch_warrant_root() -> Entry {
    Entry::new("warrants", "patch_warrant_root", "Changes a root of warrants.")
        .takes::<WarrantRootPatch>()
        .writes::<WarrantRootView>(&DONE)
        .tagged()
        .matching()
}

pub(super) fn delete_warrant_root() -> Entry {
    let about = "Deletes a root of warrants. Its warrants are denied from then on.";
    Entry::new("warrants", "delete_warrant_root", about).writes::<WarrantRootView>(&DONE).matching()
}

pub(super) fn take_revocation_list() -> Entry {
    let about = "Revokes the warrants of a list that is signed with the root's key, for \
                 chains of this root. A list adds revocations and lifts none; an older version \
                 than the last one is refused.";
    Entry::new("warrants", "take_revocation_list", about)
        .takes::<RevocationListRequest>()
        .writes::<WarrantRootView>(&DONE)
        .tagged()
        .matching()
        .refuses(&[LimitReached, StateConflict])
}

pub(super) fn list_warrant_revocations() -> Entry {
    Entry::new("warrants", "list_warrant_revocations", "Lists revocations of warrants.")
        .page::<WarrantRevocationRow>()
}

pub(super) fn revoke_warrant() -> Entry {
    let about = "Revokes a warrant, and with it each warrant that was delegated from it. \
                 A second revocation changes nothing.";
    Entry::new("warrants", "revoke_warrant", about)
        .takes::<RevokeWarrant>()
        .writes::<WarrantRevocation>(&CREATED_OR_KEPT)
        .refuses(&[LimitReached])
}

pub(super) fn read_warrant_revocation() -> Entry {
    Entry::new("warrants", "read_warrant_revocation", "Returns the revocation of a warrant.")
        .answers::<WarrantRevocation>()
}
