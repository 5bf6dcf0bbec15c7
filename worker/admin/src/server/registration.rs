//! How a server is registered, and how its registration is changed.

use gateward_core::field::{Millis, Name, present};
use gateward_core::problem::Problem;
use gateward_core::registry::upstream::Upstream;
use gateward_core::registry::{ChangeEvent, ServerKind, ServerTrust};
use gateward_core::shield::{Category, Mode, Modes};
use gateward_core::sql::administration::Statement;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{MAX_SERVERS, ManifestSource, ServerRow, conclude, existing, load};
use crate::change::{At, Count, Loaded, Outcome, Write};
use crate::manifest::{Finding, ToolManifest};
use crate::refusal::{limit_reached, name_taken};
use crate::shield::modes;
use crate::states::States;
use crate::upstream;

/// Adds the members of [`super::ChangedServer`] to the answer.
fn with_findings(mut outcome: Outcome, source: ManifestSource<'_>) -> Outcome {
    let findings = |of: fn(&ToolManifest) -> &Vec<Finding>| {
        source.listing().map_or(json!([]), |listing| json!(of(listing)))
    };
    let answer = match &mut outcome {
        Outcome::Unchanged(answer) => answer,
        Outcome::Changed(change) => &mut change.answer,
        Outcome::NeedsApproval(_) => return outcome,
    };
    answer.body.insert("skipped_tools".to_owned(), findings(|listing| &listing.skipped));
    let unsatisfiable = findings(|listing| &listing.unsatisfiable);
    answer.body.insert("unsatisfiable_schemas".to_owned(), unsatisfiable);
    let instructions = source.listing().and_then(|listing| listing.instructions.as_deref());
    answer.body.insert("instructions".to_owned(), json!(instructions));
    outcome
}

/// Registers a server. If it exists, it is updated; its states stay.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerRequest {
    server: Name,
    kind: ServerKind,
    #[serde(default)]
    trust: ServerTrust,
    /// Where its traffic goes. A server of the kind `mcp` is then asked for its tools, which are
    /// registered with it.
    #[schema(value_type = Option<Upstream>)]
    upstream: Option<Box<RawValue>>,
    /// The server's tools, in the form of MCP's `tools/list` result. If given, the server is not
    /// asked.
    #[schema(value_type = Option<Object>)]
    manifest: Option<Box<RawValue>>,
    /// The shield's mode of each category of findings. If left out, a registered server keeps its modes; null leaves
    /// them to the tenant.
    #[serde(default, deserialize_with = "modes")]
    #[schema(value_type = Option<BTreeMap<Category, Mode>>)]
    shield: Option<Option<Modes>>,
    /// Whether the shield also reads what the server returns. If left out, a registered server keeps its value; of a
    /// new server it is false.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = bool, required = false)]
    inspects_results: Option<bool>,
}

/// [`ServerRequest`], with its parts parsed.
pub struct CreateServer {
    request: ServerRequest,
    upstream: Option<Upstream>,
    manifest: Option<ToolManifest>,
}

impl CreateServer {
    /// # Errors
    ///
    /// `invalid_field`.
    pub fn new(request: ServerRequest, local_targets: bool) -> Result<Self, Problem> {
        let given = request.upstream.as_deref();
        let upstream = given.map(|given| upstream::patched(None, given, local_targets));
        let manifest = request.manifest.as_deref().map(ToolManifest::of_manifest);
        Ok(Self { upstream: upstream.transpose()?, manifest: manifest.transpose()?, request })
    }

    /// The server as it is, and as it will be.
    fn row(&self, at: &At<'_>, loaded: &Loaded) -> Result<(Option<ServerRow>, ServerRow), Problem> {
        let (kind, trust) = (self.request.kind, self.request.trust);
        let before: Option<ServerRow> = loaded.record()?;
        upstream::check_kind(kind, self.upstream.as_ref())?;
        let upstream = self.upstream.clone();
        let row = match &before {
            Some(row) if row.deleted => return Err(name_taken("server", true)),
            Some(row) => ServerRow {
                kind,
                trust,
                upstream,
                shield: self.request.shield.unwrap_or(row.shield),
                inspects_results: self.request.inspects_results.unwrap_or(row.inspects_results),
                ..row.clone()
            },
            None => {
                if loaded.extra::<Count>()?.count >= MAX_SERVERS {
                    return Err(limit_reached("servers", MAX_SERVERS));
                }
                ServerRow {
                    server: self.request.server.to_string(),
                    kind,
                    trust,
                    states: States::PENDING,
                    manifest_sha256: None,
                    instructions_sha256: None,
                    upstream,
                    shield: self.request.shield.flatten(),
                    inspects_results: self.request.inspects_results.unwrap_or(false),
                    deleted: false,
                    revision: 0,
                    created_at_ms: Millis(at.now_ms),
                    updated_at_ms: Millis(at.now_ms),
                }
            }
        };
        Ok((before, row))
    }
}

impl Write for CreateServer {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.request.server, ManifestSource::new(self.manifest.as_ref(), at).listing())
    }

    fn discovers(&self, at: &At<'_>, loaded: &Loaded) -> Result<Option<Upstream>, Problem> {
        let (_, row) = self.row(at, loaded)?;
        let asks = row.lists_tools() && self.manifest.is_none();
        Ok(row.upstream.filter(|_| asks))
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let (before, row) = self.row(at, loaded)?;
        let source = ManifestSource::new(self.manifest.as_ref(), at);
        let event =
            if before.is_none() { ChangeEvent::ServerCreated } else { ChangeEvent::ServerChanged };
        let concluded = conclude(at, loaded, before.as_ref(), row, source, event)?;
        Ok(with_findings(concluded, source))
    }
}

/// A change of a server; members that are left out stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerPatch {
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = ServerKind, required = false)]
    kind: Option<ServerKind>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = ServerTrust, required = false)]
    trust: Option<ServerTrust>,
    /// A JSON Merge Patch (RFC 7396) of the upstream; null removes it. A server of the kind `mcp`
    /// is then asked for its tools, as when it is registered.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Object>)]
    upstream: Option<Option<Box<RawValue>>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Object, required = false)]
    manifest: Option<Box<RawValue>>,
    /// Replaces all modes; null leaves them to the tenant.
    #[serde(default, deserialize_with = "modes")]
    #[schema(value_type = Option<BTreeMap<Category, Mode>>)]
    shield: Option<Option<Modes>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = bool, required = false)]
    inspects_results: Option<bool>,
}

/// [`ServerPatch`] of one server.
pub struct PatchServer {
    server: Name,
    patch: ServerPatch,
    manifest: Option<ToolManifest>,
    local_targets: bool,
}

impl PatchServer {
    /// # Errors
    ///
    /// `invalid_field`.
    pub fn new(server: Name, patch: ServerPatch, local_targets: bool) -> Result<Self, Problem> {
        let manifest = patch.manifest.as_deref().map(ToolManifest::of_manifest).transpose()?;
        Ok(Self { server, patch, manifest, local_targets })
    }

    /// The server as it is, and as it will be.
    fn row(&self, at: &At<'_>, loaded: &Loaded) -> Result<(ServerRow, ServerRow), Problem> {
        let before = existing(at, loaded)?;
        let mut row = before.clone();
        row.kind = self.patch.kind.unwrap_or(row.kind);
        row.trust = self.patch.trust.unwrap_or(row.trust);
        row.shield = self.patch.shield.unwrap_or(row.shield);
        row.inspects_results = self.patch.inspects_results.unwrap_or(row.inspects_results);
        if let Some(patch) = &self.patch.upstream {
            let known = row.upstream.as_ref();
            let patch = patch.as_deref();
            let after = patch.map(|patch| upstream::patched(known, patch, self.local_targets));
            row.upstream = after.transpose()?;
        }
        upstream::check_kind(row.kind, row.upstream.as_ref())?;
        Ok((before, row))
    }
}

impl Write for PatchServer {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.server, ManifestSource::new(self.manifest.as_ref(), at).listing())
    }

    fn discovers(&self, at: &At<'_>, loaded: &Loaded) -> Result<Option<Upstream>, Problem> {
        let (_, row) = self.row(at, loaded)?;
        // A change of the trust alone does not ask the server.
        let asks = (self.patch.upstream.is_some() || self.patch.kind.is_some())
            && row.lists_tools()
            && self.manifest.is_none();
        Ok(row.upstream.filter(|_| asks))
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let (before, row) = self.row(at, loaded)?;
        let source = ManifestSource::new(self.manifest.as_ref(), at);
        let concluded =
            conclude(at, loaded, Some(&before), row, source, ChangeEvent::ServerChanged)?;
        Ok(with_findings(concluded, source))
    }
}
