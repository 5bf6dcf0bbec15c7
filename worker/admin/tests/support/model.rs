//! The registry as an administrator thinks of it: what each list should show, by plain rules.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use gateward_core::credential::token::secret_hash;
use gateward_core::id::rfc3339;
use gateward_core::problem::ProblemCode::{
    self, Forbidden, InvalidField, NameTaken, NotFound, PreconditionFailed, StateConflict,
};
use gateward_core::registry::{Loaded, Settings};
use gateward_core::warrant::revocation::RevocationList;
use gateward_core::warrant::text::decode as base64;
use serde_json::{Map, Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::registry::{Ask, Effect};
use super::{START_MS, TENANT};

/// How long ended credentials are kept, in milliseconds: 90 days.
const KEPT_MS: u64 = 90 * 24 * 60 * 60 * 1_000;

/// How long a warrant stays revoked: 91 days.
const REVOKED_MS: u64 = 91 * 24 * 60 * 60 * 1_000;

fn revocation(id: &str, root_key: &Json, reason: &str, now_ms: u64) -> Json {
    json!({
        "warrant_id": id, "root_key": root_key, "reason": reason, "revoked_by": "ada",
        "revoked_at": rfc3339(now_ms), "expires_at": rfc3339(now_ms + REVOKED_MS),
    })
}

type Records = BTreeMap<String, Json>;

/// Records as the API shows them, by name. They lack what follows from other records or from the
/// time: an agent's groups, its status, and whether a credential has expired.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Model {
    pub epoch: u64,
    now_ms: u64,
    /// With its limits.
    tenant: Json,
    agents: Records,
    groups: Records,
    administrators: Records,
    /// Group, kind and member.
    members: BTreeSet<(String, String, String)>,
    credentials: Records,
    secrets: BTreeMap<String, String>,
    /// For a credential that replaced another one: the first of those that were rotated into it.
    first_keys: BTreeMap<String, String>,
    servers: Records,
    /// By `server/tool`.
    tools: Records,
    bans: Records,
    warrant_roots: Records,
    /// By the warrant's id and the root's key.
    warrant_revocations: Records,
    /// Version and hash of the last list of each root, by the root's key.
    lists: BTreeMap<String, (u64, String)>,
    /// What deleting answered, by path, such as `agents/a`.
    deleted: Records,
}

impl Model {
    pub fn new() -> Self {
        let own = json!({
            "tenant": TENANT, "status": "active", "lanes": 1,
            "rows_per_day": null, "bytes_per_day": null, "retention_days": null,
            "destinations": null, "revision": 1,
            "created_at": rfc3339(START_MS), "updated_at": rfc3339(START_MS),
        });
        let tenant = super::with(json!(Settings::default()), own);
        let ada = json!({
            "administrator": "ada", "created_by": "_bootstrap", "first": true,
            "created_at": rfc3339(START_MS),
        });
        let administrators = Records::from([("ada".to_owned(), ada)]);
        Self { epoch: 1, tenant, administrators, ..Self::default() }
    }

    /// Carries out the request, and returns the record that the answer should have. Ids and secrets
    /// are taken from the real answer, which is null if there was none.
    pub fn ask(
        &mut self,
        ask: &Ask,
        path: &str,
        now_ms: u64,
        answer: &Json,
    ) -> Result<(Effect, Json), ProblemCode> {
        self.now_ms = now_ms;
        if ask.body.get("surplus").is_some() {
            return Err(InvalidField);
        }
        let body = ask.body.as_object().cloned().unwrap_or_default();
        let path: Vec<&str> = path.split('/').skip(2).collect();
        // Administrators, groups, members and bans have no revision that could be matched.
        let unmatched =
            matches!(path[0], "administrators" | "groups" | "bans") && ask.method != "POST";
        if unmatched && ask.if_match.as_ref().is_some_and(|tags| tags != "*") {
            return Err(PreconditionFailed);
        }
        match (ask.method, path.as_slice()) {
            ("DELETE", [list, name]) if self.deleted.contains_key(&format!("{list}/{name}")) => {
                Ok((Effect::Unchanged, self.deleted[&format!("{list}/{name}")].clone()))
            }

            ("PATCH", ["settings"] | ["tenants", TENANT]) => {
                check_match(ask, &self.tenant)?;
                let mut after = self.tenant.clone();
                merge(&mut after, body);
                let effect = match after == self.tenant {
                    true => Effect::Unchanged,
                    false => Effect::Changed,
                };
                if effect == Effect::Changed {
                    self.epoch += 1;
                    after["revision"] = json!(self.epoch);
                    after["updated_at"] = json!(rfc3339(now_ms));
                    self.tenant = after;
                }
                let view = if path[0] == "settings" { self.limits() } else { self.tenant() };
                Ok((effect, view))
            }

            ("POST", ["agents"]) => {
                let name = text(&body["agent"]);
                self.free(&self.agents, "agents", &name)?;
                self.free_key(&name, body.get("public_key"))?;
                let mut agent = json!({
                    "agent": name, "lane": 0, "frozen": false, "quarantined": false,
                    "revoked": false, "risk_tier": "low", "allowed_tools": null,
                    "public_key": null, "warrant_required": false, "taint": null,
                    "warrant_locator": null,
                });
                merge(&mut agent, body);
                self.settle("agents", &name, agent)
            }
            ("PATCH", ["agents", name]) => {
                let mut agent = self.matched(ask, "agents", name)?;
                self.free_key(name, body.get("public_key"))?;
                merge(&mut agent, body);
                self.settle("agents", name, agent)
            }
            ("DELETE", ["agents", name]) => {
                let agent = self.matched(ask, "agents", name)?;
                self.members.retain(|(_, kind, member)| kind != "agent" || member != name);
                let deleted = self.delete("agents", name, self.agent(&agent));
                for credential in self.credentials.values_mut() {
                    if credential["agent"] == *name && credential["status"] == "active" {
                        revoke(credential, self.epoch, now_ms);
                    }
                }
                Ok(deleted)
            }
            ("POST", ["agents", name, action]) => {
                let mut agent = self.matched(ask, "agents", name)?;
                if agent["revoked"] == true && *action != "revoke" {
                    return Err(StateConflict);
                }
                match *action {
                    "freeze" => agent["frozen"] = json!(true),
                    "unfreeze" => agent["frozen"] = json!(false),
                    "quarantine" => agent["quarantined"] = json!(true),
                    "restore" => agent["quarantined"] = json!(false),
                    "revoke" => agent["revoked"] = json!(true),
                    "untaint" => {}
                    other => panic!("{other}"),
                }
                // Whether its lane lifts anything is not known here.
                if matches!(*action, "restore" | "untaint") {
                    return Ok((Effect::Changed, self.put("agents", name, agent)));
                }
                self.settle("agents", name, agent)
            }

            ("POST", ["groups"]) => {
                let name = text(&body["group"]);
                self.free(&self.groups, "groups", &name)?;
                let group =
                    json!({"group": name, "protected": false, "created_at": rfc3339(now_ms)});
                self.groups.insert(name, group.clone());
                self.epoch += 1;
                Ok((Effect::Created, group))
            }
            ("DELETE", ["groups", name]) => {
                let view = self.groups.get(*name).ok_or(NotFound)?.clone();
                self.groups.remove(*name);
                self.deleted.insert(format!("groups/{name}"), view.clone());
                self.epoch += 1;
                let (out, stay) =
                    std::mem::take(&mut self.members).into_iter().partition(|(of, ..)| of == name);
                self.members = stay;
                self.touch(&out);
                Ok((Effect::Changed, view))
            }
            (method, ["groups", group, "members", kind, member]) => {
                self.groups.get(*group).ok_or(NotFound)?;
                let kind = kind.trim_end_matches('s');
                let exists = match kind {
                    "agent" => self.agents.contains_key(*member),
                    _ => self.administrators.contains_key(*member),
                };
                let key = ((*group).to_owned(), kind.to_owned(), (*member).to_owned());
                let view = json!({"group": group, "kind": kind, "member": member});
                if !exists && !self.members.contains(&key) {
                    return Err(NotFound);
                }
                let changed = match method {
                    "PUT" => self.members.insert(key.clone()),
                    _ => self.members.remove(&key),
                };
                if !changed {
                    return Ok((Effect::Unchanged, view));
                }
                self.epoch += 1;
                self.touch(&BTreeSet::from([key]));
                Ok((Effect::Changed, view))
            }

            ("POST", ["administrators"]) => {
                let name = text(&body["administrator"]);
                self.free(&self.administrators, "administrators", &name)?;
                let administrator = json!({
                    "administrator": name, "created_by": "ada", "first": false,
                    "created_at": rfc3339(now_ms),
                });
                self.administrators.insert(name, administrator.clone());
                self.epoch += 1;
                Ok((Effect::Created, administrator))
            }
            ("DELETE", ["administrators", name]) => {
                let view = self.administrators.remove(*name).ok_or(NotFound)?;
                self.deleted.insert(format!("administrators/{name}"), view.clone());
                self.epoch += 1;
                self.members.retain(|(_, kind, member)| kind != "administrator" || member != name);
                for credential in self.credentials.values_mut() {
                    if credential["administrator"] == *name && credential["status"] == "active" {
                        revoke(credential, self.epoch, now_ms);
                    }
                }
                Ok((Effect::Changed, view))
            }

            ("POST", ["credentials"]) => self.issue(body, answer),
            ("POST", ["credentials", key_id, "rotate"]) => {
                let mut old = self.matched(ask, "credentials", key_id)?;
                if credential_status(&old, now_ms) != "active" {
                    return Err(StateConflict);
                }
                if let Some(agent) = old["agent"].as_str()
                    && self.agents.get(agent).is_none_or(|agent| agent["revoked"] == true)
                {
                    return Err(StateConflict);
                }
                if old["administrator"].is_string() && old["administrator"] != "ada" {
                    return Err(Forbidden);
                }
                let issued = self.issued(old.clone(), answer);
                let first = self.first_keys.get(*key_id).cloned();
                let first = first.unwrap_or_else(|| (*key_id).to_owned());
                self.first_keys.insert(text(&answer["key_id"]), first);
                let overlap_s = body.get("overlap_s").map_or(86_400, |s| s.as_u64().unwrap());
                let ends = rfc3339(now_ms + overlap_s * 1_000);
                old["expires_at"] = json!(sooner(&old["expires_at"], ends));
                old["revision"] = json!(self.epoch);
                self.credentials.insert((*key_id).to_owned(), old);
                Ok(issued)
            }
            ("POST", ["credentials", key_id, "revoke"]) => {
                let mut credential = self.matched(ask, "credentials", key_id)?;
                if credential["status"] == "revoked" {
                    return Ok((Effect::Unchanged, credential));
                }
                self.epoch += 1;
                revoke(&mut credential, self.epoch, now_ms);
                self.credentials.insert((*key_id).to_owned(), credential.clone());
                Ok((Effect::Changed, credential))
            }

            ("POST", ["servers"]) => {
                let name = text(&body["server"]);
                let mut server = match self.servers.get(&name) {
                    Some(server) => server.clone(),
                    None => {
                        self.free(&self.servers, "servers", &name)?;
                        pending(json!({
                            "server": name, "manifest_sha256": null, "instructions_sha256": null,
                            "shield": null, "inspects_results": false,
                        }))
                    }
                };
                server["upstream"] = Json::Null;
                server["trust"] = json!("untrusted");
                self.take(&name, server, body)
            }
            ("PATCH", ["servers", name]) => {
                let server = self.matched(ask, "servers", name)?;
                self.take(name, server, body)
            }
            ("DELETE", ["servers", name]) => {
                let server = self.matched(ask, "servers", name)?;
                Ok(self.delete("servers", name, server))
            }
            ("POST", ["servers", name, "tools"]) => {
                self.servers.get(*name).ok_or(NotFound)?;
                let id = format!("{name}/{}", text(&body["tool"]));
                let nothing = json!({
                    "server": name, "egress": false, "input_schema": null,
                    "argument_roles": null, "reach": "outside", "result_trust": null, "cost": null,
                    "warrant_required": false, "min_clearance": null, "shield": null,
                    "definition_sha256": null,
                });
                let new = || pending(nothing);
                let mut tool = self.tools.get(&id).cloned().unwrap_or_else(new);
                tool["canary"] = json!(false);
                tool["tainted"] = json!("require_approval");
                tool["approval_ttl_s"] = Json::Null;
                merge(&mut tool, body);
                self.settle("tools", &id, tool)
            }
            ("PATCH", ["servers", server, "tools", tool]) => {
                self.servers.get(*server).ok_or(NotFound)?;
                let id = format!("{server}/{}", tool.replace("%2F", "/"));
                let mut tool = self.matched(ask, "tools", &id)?;
                merge(&mut tool, body);
                self.settle("tools", &id, tool)
            }
            ("POST", ["servers", name, action]) => {
                let mut server = self.matched(ask, "servers", name)?;
                act(&mut server, action);
                self.settle("servers", name, server)
            }
            ("POST", ["servers", server, "tools", tool, action]) => {
                self.servers.get(*server).ok_or(NotFound)?;
                let id = format!("{server}/{}", tool.replace("%2F", "/"));
                let mut tool = self.matched(ask, "tools", &id)?;
                act(&mut tool, action);
                self.settle("tools", &id, tool)
            }

            ("POST", ["bans"]) => {
                if body.get("expires_at").is_some_and(|at| at.as_str() <= Some(&rfc3339(now_ms))) {
                    return Err(InvalidField);
                }
                let mut ban = json!({"reason": "", "expires_at": null, "created_by": "ada"});
                merge(&mut ban, body);
                ban["ban_id"] = answer["ban_id"].clone();
                ban["created_at"] = json!(rfc3339(now_ms));
                // Expired ones are deleted.
                self.bans.retain(|_, ban| !past(&ban["expires_at"], now_ms));
                self.bans.insert(text(&ban["ban_id"]), ban.clone());
                self.epoch += 1;
                Ok((Effect::Created, ban))
            }
            ("DELETE", ["bans", id]) => {
                let ban = self.bans.remove(*id).ok_or(NotFound)?;
                self.epoch += 1;
                Ok((Effect::Changed, ban))
            }

            ("POST", ["warrant-roots"]) => {
                let name = text(&body["root_id"]);
                self.free(&self.warrant_roots, "warrant-roots", &name)?;
                if self.warrant_roots.values().any(|root| root["public_key"] == body["public_key"])
                {
                    return Err(StateConflict);
                }
                // It continues with the list of a deleted root that had the same key.
                let list = self.lists.get(&text(&body["public_key"])).map(|(version, _)| version);
                let mut root = json!({
                    "root_id": name, "description": null, "allowed_servers": null,
                    "status": "active", "created_by": "ada", "revocation_list_version": list,
                });
                merge(&mut root, body);
                self.settle("warrant-roots", &name, root)
            }
            ("PATCH", ["warrant-roots", name]) => {
                let mut root = self.matched(ask, "warrant-roots", name)?;
                merge(&mut root, body);
                self.settle("warrant-roots", name, root)
            }
            ("PUT", ["warrant-roots", name, "revocation-list"]) => {
                let mut root = self.matched(ask, "warrant-roots", name)?;
                let list = base64(body["list"].as_str().unwrap()).unwrap();
                let list = RevocationList::read(&list).unwrap();
                if root["public_key"] != json!(list.issuer) {
                    return Err(InvalidField);
                }
                let hash = hex::encode(list.ids_sha256);
                let key = text(&root["public_key"]);
                let before = self.lists.get(&key);
                match before.map(|(version, before)| (version.cmp(&list.version), *before == hash))
                {
                    Some((Ordering::Greater, _) | (Ordering::Equal, false)) => {
                        return Err(StateConflict);
                    }
                    Some((Ordering::Equal, true)) => return Ok((Effect::Unchanged, root)),
                    _ => {}
                }
                self.lists.insert(key, (list.version, hash));
                self.warrant_revocations.retain(|_, known| !past(&known["expires_at"], now_ms));
                for id in list.revoked {
                    let reason = format!("on list {} of the root {name}", list.version);
                    let key = &root["public_key"];
                    let added = revocation(&id.to_string(), key, &reason, now_ms);
                    let expires_at = added["expires_at"].clone();
                    let of_root = format!("{id}{}", text(key));
                    self.warrant_revocations.entry(of_root).or_insert(added)["expires_at"] =
                        expires_at;
                }
                root["revocation_list_version"] = json!(list.version);
                self.settle("warrant-roots", name, root)
            }
            ("DELETE", ["warrant-roots", name]) => {
                let root = self.matched(ask, "warrant-roots", name)?;
                self.warrant_roots.remove(*name);
                self.epoch += 1;
                Ok((Effect::Changed, root))
            }
            ("POST", ["warrant-revocations"]) => {
                let given = text(&body["warrant_id"]);
                let id = given.trim_start_matches("tnu_wrt_").replace('-', "");
                // Expired ones are deleted only when another one is created.
                if let Some(known) = self.warrant_revocations.get(&id)
                    && !past(&known["expires_at"], now_ms)
                {
                    return Ok((Effect::Unchanged, known.clone()));
                }
                self.warrant_revocations.retain(|_, known| !past(&known["expires_at"], now_ms));
                let reason = body.get("reason").map_or("", |it| it.as_str().unwrap());
                let revocation = revocation(&id, &Json::Null, reason, now_ms);
                self.warrant_revocations.insert(id, revocation.clone());
                self.epoch += 1;
                Ok((Effect::Created, revocation))
            }
            other => panic!("{other:?}"),
        }
    }

    fn records(&mut self, list: &str) -> &mut Records {
        match list {
            "agents" => &mut self.agents,
            "credentials" => &mut self.credentials,
            "servers" => &mut self.servers,
            "tools" => &mut self.tools,
            "warrant-roots" => &mut self.warrant_roots,
            other => panic!("{other}"),
        }
    }

    /// A name that exists, or existed before, cannot be used. A public key names one agent.
    fn free_key(&self, name: &str, key: Option<&Json>) -> Result<(), ProblemCode> {
        let Some(key) = key.filter(|key| !key.is_null()) else { return Ok(()) };
        let has_key =
            |(other, agent): (&String, &Json)| other != name && agent["public_key"] == *key;
        if self.agents.iter().any(has_key) { Err(StateConflict) } else { Ok(()) }
    }

    fn free(&self, records: &Records, list: &str, name: &str) -> Result<(), ProblemCode> {
        let taken =
            records.contains_key(name) || self.deleted.contains_key(&format!("{list}/{name}"));
        if taken { Err(NameTaken) } else { Ok(()) }
    }

    /// The existing record, if `If-Match` matches it.
    fn matched(&mut self, ask: &Ask, list: &str, name: &str) -> Result<Json, ProblemCode> {
        let record = self.records(list).get(name).cloned().ok_or(NotFound)?;
        check_match(ask, &record)?;
        Ok(record)
    }

    /// It is a change only if something differs.
    fn settle(
        &mut self,
        list: &str,
        name: &str,
        record: Json,
    ) -> Result<(Effect, Json), ProblemCode> {
        let effect = match self.records(list).get(name) {
            Some(before) if *before == record => return Ok((Effect::Unchanged, self.view(record))),
            Some(_) => Effect::Changed,
            None => Effect::Created,
        };
        Ok((effect, self.put(list, name, record)))
    }

    /// Stores the record as the API shows it from then on.
    fn put(&mut self, list: &str, name: &str, mut record: Json) -> Json {
        self.epoch += 1;
        let now = json!(rfc3339(self.now_ms));
        if record.get("created_at").is_none() {
            record["created_at"] = now.clone();
        }
        record["revision"] = json!(self.epoch);
        record["updated_at"] = now;
        self.records(list).insert(name.to_owned(), record.clone());
        self.view(record)
    }

    fn delete(&mut self, list: &str, name: &str, record: Json) -> (Effect, Json) {
        let mut view = self.put(list, name, record);
        view["status"] = json!("deleted");
        self.records(list).remove(name);
        self.deleted.insert(format!("{list}/{name}"), view.clone());
        (Effect::Changed, view)
    }

    /// Groups are a part of an agent.
    fn touch(&mut self, members: &BTreeSet<(String, String, String)>) {
        for (_, kind, member) in members {
            if kind == "agent"
                && let Some(agent) = self.agents.get_mut(member)
            {
                agent["revision"] = json!(self.epoch);
                agent["updated_at"] = json!(rfc3339(self.now_ms));
            }
        }
    }

    /// A changed manifest quarantines the server, and its tools wait for approval.
    fn take(
        &mut self,
        name: &str,
        mut server: Json,
        mut body: Map<String, Json>,
    ) -> Result<(Effect, Json), ProblemCode> {
        let manifest = body.remove("manifest");
        merge(&mut server, body);
        let Some(manifest) = manifest else { return self.settle("servers", name, server) };
        // They have one member each, so they are already canonical.
        let hash = json!(hex::encode(Sha256::digest(manifest.to_string())));
        let known = std::mem::replace(&mut server["manifest_sha256"], hash.clone());
        if known.is_null() || known == hash {
            return self.settle("servers", name, server);
        }
        server["quarantined"] = json!(true);
        let settled = self.settle("servers", name, server);
        for tool in self.tools.values_mut() {
            if tool["server"] == name {
                tool["approved"] = json!(false);
                tool["revision"] = json!(self.epoch);
                tool["updated_at"] = json!(rfc3339(self.now_ms));
            }
        }
        settled
    }

    fn issue(
        &mut self,
        body: Map<String, Json>,
        answer: &Json,
    ) -> Result<(Effect, Json), ProblemCode> {
        if body.get("expires_at").is_some_and(|at| past(at, self.now_ms)) {
            return Err(InvalidField);
        }
        let mut credential = json!({
            "agent": null, "administrator": null, "scopes": ["tools:read", "tools:write"],
            "expires_at": null, "max_source_trust": "unknown", "allowed_servers": null,
            "allowed_tools": null, "allowed_networks": null, "signed": false,
            "assigns_runs": false,
        });
        merge(&mut credential, body);
        if let Some(agent) = credential["agent"].as_str() {
            match self.agents.get(agent) {
                None => return Err(InvalidField),
                Some(agent) if agent["revoked"] == true => return Err(StateConflict),
                Some(_) => {}
            }
        }
        if let Some(administrator) = credential["administrator"].as_str()
            && !self.administrators.contains_key(administrator)
        {
            return Err(InvalidField);
        }
        Ok(self.issued(credential, answer))
    }

    fn issued(&mut self, mut credential: Json, answer: &Json) -> (Effect, Json) {
        self.epoch += 1;
        let key_id = text(&answer["key_id"]);
        credential["key_id"] = json!(key_id);
        credential["status"] = json!("active");
        credential["issued_by"] = json!("ada");
        credential["issuer_key_id"] = json!("k0");
        credential["revision"] = json!(self.epoch);
        credential["created_at"] = json!(rfc3339(self.now_ms));
        let secret = text(&answer["token"]).rsplit('.').nth(1).unwrap().to_owned();
        let secret = hex::encode(secret_hash(&secret));
        // Those that ended long ago are deleted.
        let long_ago = self.now_ms - KEPT_MS - 1;
        self.credentials.retain(|_, credential| !past(&credential["expires_at"], long_ago));
        self.secrets.insert(key_id.clone(), secret);
        self.credentials.insert(key_id, credential.clone());
        (Effect::Created, credential)
    }

    /// An agent, a server, a tool or a root of warrants as it is shown.
    fn view(&self, record: Json) -> Json {
        if record.get("root_id").is_some() {
            return record;
        }
        if record.get("lane").is_some() { self.agent(&record) } else { standing(&record) }
    }

    fn agent(&self, agent: &Json) -> Json {
        let mut view = agent.clone();
        let mine = |(_, kind, member): &&(String, String, String)| {
            kind == "agent" && agent["agent"] == *member
        };
        let groups: Vec<&str> =
            self.members.iter().filter(mine).map(|(group, ..)| group.as_str()).collect();
        view["groups"] = json!(groups);
        view["registered_risk_tier"] = view["risk_tier"].clone();
        view["status"] = json!(match agent {
            agent if agent["revoked"] == true => "revoked",
            agent if agent["quarantined"] == true => "quarantined",
            agent if agent["frozen"] == true => "frozen",
            _ => "active",
        });
        view
    }

    /// Every list, by its path.
    pub fn lists(&self, now_ms: u64) -> BTreeMap<String, Vec<Json>> {
        let credential = |credential: &Json| {
            let mut view = credential.clone();
            view["status"] = json!(credential_status(credential, now_ms));
            view
        };
        let agents = self.agents.values().map(|agent| self.agent(agent)).collect();
        let mut lists = BTreeMap::from([
            ("/v1/agents".to_owned(), agents),
            ("/v1/groups".to_owned(), self.groups.values().cloned().collect()),
            ("/v1/administrators".to_owned(), self.administrators.values().cloned().collect()),
            ("/v1/credentials".to_owned(), self.credentials.values().map(credential).collect()),
            ("/v1/servers".to_owned(), self.servers.values().map(standing).collect()),
            ("/v1/bans".to_owned(), self.bans.values().cloned().collect()),
            ("/v1/warrant-roots".to_owned(), self.warrant_roots.values().cloned().collect()),
            (
                "/v1/warrant-revocations".to_owned(),
                self.warrant_revocations.values().cloned().collect(),
            ),
        ]);
        for name in self.groups.keys() {
            let members = self.members.iter().filter(|(group, ..)| group == name);
            let view = |(group, kind, member): &(String, String, String)| json!({"group": group, "kind": kind, "member": member});
            lists.insert(format!("/v1/groups/{name}/members"), members.map(view).collect());
        }
        for name in self.servers.keys() {
            let tools = self.tools.values().filter(|tool| tool["server"] == *name);
            lists.insert(format!("/v1/servers/{name}/tools"), tools.map(standing).collect());
        }
        lists
    }

    pub fn limits(&self) -> Json {
        without(
            &self.tenant,
            &[
                "tenant",
                "status",
                "lanes",
                "rows_per_day",
                "bytes_per_day",
                "retention_days",
                "destinations",
                "created_at",
                "updated_at",
            ],
        )
    }

    pub fn tenant(&self) -> Json {
        let limits = self.limits();
        let limits = limits.as_object().unwrap().keys().filter(|name| *name != "revision");
        without(&self.tenant, &limits.map(String::as_str).collect::<Vec<_>>())
    }

    /// What a lane should read for a call.
    pub fn load(&self, agent: &str, key_id: &str, (server, tool): (&str, &str)) -> Loaded {
        let mut tenant = self.tenant.clone();
        tenant["epoch"] = json!(self.epoch);
        let credential = self.credentials.get(key_id).map(|credential| {
            let mut record = credential.clone();
            record["secret_sha256"] = json!(self.secrets[key_id]);
            record["first_key_id"] = json!(self.first_keys.get(key_id));
            record["expires_at_ms"] = millis(&credential["expires_at"]);
            record
        });
        let tool = self.tools.get(&format!("{server}/{tool}")).map(|tool| {
            let mut record = standing(tool);
            for flag in ["mutates", "egress", "canary", "warrant_required"] {
                record[flag] = json!(u8::from(record[flag] == true));
            }
            record
        });
        let server = self.servers.get(server).map(|server| {
            let mut record = standing(server);
            record["inspects_results"] = json!(u8::from(server["inspects_results"] == true));
            record
        });
        let agent = self.agents.get(agent).map(|agent| {
            let mut record = self.agent(agent);
            record["warrant_required"] = json!(u8::from(agent["warrant_required"] == true));
            record
        });
        let roots = self.warrant_roots.values().filter(|root| root["status"] == "active");
        let root = |root: &Json| {
            json!({"id": root["root_id"], "public_key": root["public_key"],
                "allowed_servers": root["allowed_servers"]})
        };
        let revoked = self.warrant_revocations.values();
        let revoked = revoked.filter(|known| !past(&known["expires_at"], self.now_ms));
        let bans = self.bans.values().filter(|ban| !past(&ban["expires_at"], self.now_ms));
        let ban = |ban: &Json| {
            let expires_at_ms = millis(&ban["expires_at"]);
            json!({"kind": ban["kind"], "subject": ban["subject"], "expires_at_ms": expires_at_ms})
        };
        serde_json::from_value(json!({
            "tenant": tenant,
            "agent": agent,
            "credential": credential,
            "server": server,
            "tool": tool,
            "bans": bans.map(ban).collect::<Vec<_>>(),
            "warrants": {
                "roots": roots.map(root).collect::<Vec<_>>(),
                "revoked": revoked
                    .map(|known| [&known["warrant_id"], &known["root_key"]])
                    .collect::<Vec<_>>(),
            },
        }))
        .unwrap()
    }
}

fn text(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn without(record: &Json, names: &[&str]) -> Json {
    let fields = record.as_object().unwrap().clone().into_iter();
    fields.filter(|(name, _)| !names.contains(&name.as_str())).collect()
}

fn merge(into: &mut Json, from: Map<String, Json>) {
    from.into_iter().for_each(|(name, value)| into[name] = value);
}

fn check_match(ask: &Ask, record: &Json) -> Result<(), ProblemCode> {
    let own = format!("\"{}\"", record["revision"]);
    let lets = |tags: &String| tags.split(", ").any(|tag| tag == "*" || tag == own);
    if ask.if_match.as_ref().is_none_or(lets) { Ok(()) } else { Err(PreconditionFailed) }
}

fn pending(mut record: Json) -> Json {
    for flag in ["approved", "disabled", "quarantined"] {
        record[flag] = json!(false);
    }
    record
}

fn act(record: &mut Json, action: &str) {
    match action {
        "approve" => record["approved"] = json!(true),
        "disable" => record["disabled"] = json!(true),
        "quarantine" => record["quarantined"] = json!(true),
        "restore" => {
            record["disabled"] = json!(false);
            record["quarantined"] = json!(false);
        }
        other => panic!("{other}"),
    }
}

/// A server or tool with its status.
fn standing(record: &Json) -> Json {
    let mut view = record.clone();
    view["status"] = json!(match record {
        record if record["quarantined"] == true => "quarantined",
        record if record["disabled"] == true => "disabled",
        record if record["approved"] == false => "pending",
        _ => "active",
    });
    view
}

fn credential_status(credential: &Json, now_ms: u64) -> &'static str {
    match credential {
        credential if credential["status"] == "revoked" => "revoked",
        credential if past(&credential["expires_at"], now_ms) => "expired",
        _ => "active",
    }
}

fn revoke(credential: &mut Json, epoch: u64, now_ms: u64) {
    credential["status"] = json!("revoked");
    credential["revision"] = json!(epoch);
    credential["expires_at"] = json!(sooner(&credential["expires_at"], rfc3339(now_ms)));
}

/// Times of one form sort as texts.
fn sooner(time: &Json, than: String) -> String {
    time.as_str().map_or(than.clone(), |time| than.min(time.to_owned()))
}

/// Whether there is an end, and it has passed.
fn past(end: &Json, now_ms: u64) -> bool {
    end.as_str().is_some_and(|end| *end <= *rfc3339(now_ms))
}

fn millis(time: &Json) -> Json {
    json!(time.as_str().map(|time| gateward_core::field::parse_time(time).unwrap()))
}
