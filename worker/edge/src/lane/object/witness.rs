//! Witnesses: the lane that keeps the tenant's head log has its checkpoints cosigned.

use futures_util::future::join_all;
use gateward_core::bounds::HEAD_LANE;
use gateward_core::lane::{LogName, TreeHead, Witness};
use gateward_core::log::Event;
use gateward_core::target::Target;
use gateward_core::tlog::Note;
use gateward_core::tlog::witness::{add_checkpoint, conflict, cosignatures};

use super::publish::left_ms;
use super::state::{Failure, GateLane};
use crate::d1::logs::{self, StoredCheckpoint};
use crate::io;
use crate::limits::WITNESS_MS;
use crate::settings::Settings;
use crate::wait::settled;

/// Bytes of a witness's answer: some signatures, of which the longest have 5 KB.
const MAX_WITNESS_BYTES: u32 = 16 * 1_024;

/// The pause after a witness failed. An attempt can keep the head log from publishing for twice [`WITNESS_MS`]. The
/// pause is a few times as long as an attempt.
const WITNESS_RETRY_MS: u64 = 30_000;

impl GateLane {
    /// Has the newest checkpoint of the head log cosigned by each witness that has not done it yet. Returns when witnesses
    /// that failed are asked again.
    pub(super) async fn ask_witnesses(&self, settings: &Settings) -> Option<u64> {
        match self.ask_witnesses_if_due(settings).await {
            Ok(again_ms) => again_ms,
            Err(Failure(why)) => {
                self.log(Event::WitnessFailed, &why);
                Some(io::now_ms() + WITNESS_RETRY_MS)
            }
        }
    }

    async fn ask_witnesses_if_due(&self, settings: &Settings) -> Result<Option<u64>, Failure> {
        let Some(log) = self.log_name()?.filter(|log| log.lane == HEAD_LANE) else {
            return Ok(None);
        };
        let Some(tree) = self.with_lane(|lane, _| Ok(lane.published()))? else { return Ok(None) };
        let (size, again_ms) = self.witnessed.get();
        let waits = again_ms.is_none_or(|at_ms| left_ms(at_ms, WITNESS_RETRY_MS) > 0);
        if settings.witnesses.is_empty() || (size == tree.size && waits) {
            return Ok(again_ms);
        }
        // Before D1 is read. No other checkpoint is published meanwhile, so that this one is not replaced before its
        // cosignatures are there.
        self.is_witnessing.set(true);
        let asked = self.ask_witnesses_of(settings, &log, tree).await;
        self.is_witnessing.set(false);
        let again_ms = (!asked?).then(|| io::now_ms() + WITNESS_RETRY_MS);
        self.witnessed.set((tree.size, again_ms));
        Ok(again_ms)
    }

    /// Returns whether all witnesses have cosigned the tree.
    async fn ask_witnesses_of(
        &self,
        settings: &Settings,
        log: &LogName,
        tree: TreeHead,
    ) -> Result<bool, Failure> {
        let Some(keys) = &settings.log_keys else { return Ok(true) };
        let stored = logs::checkpoint(&self.env, log).await?;
        let Some(stored) = stored.filter(|it| keys.open(log, &it.note) == Some(tree)) else {
            return Err(Failure("D1 does not have the newest checkpoint".to_owned()));
        };
        let asked = join_all(settings.witnesses.iter().map(|witness| async {
            let cosigned = self.cosigned(settings, witness, &stored, tree).await;
            cosigned.map_err(|Failure(why)| {
                self.log(Event::WitnessFailed, &format!("`{}`: {why}", witness.key.name()));
            })
        }));
        let asked = asked.await;
        let all = asked.iter().all(Result::is_ok);
        let lines: String = asked.into_iter().flatten().collect();
        if lines != stored.cosignatures || !stored.cosigned.is_empty() {
            logs::cosign(&self.env, log, &stored.note, &lines).await?;
        }
        Ok(all)
    }

    /// A witness's line for a checkpoint: the one that D1 has, or a new one.
    async fn cosigned(
        &self,
        settings: &Settings,
        witness: &Witness,
        stored: &StoredCheckpoint,
        tree: TreeHead,
    ) -> Result<String, Failure> {
        let text = Note::parse(&stored.note).map_err(|error| Failure(error.to_string()))?.text;
        let known = cosignatures(&stored.cosignatures, text, std::slice::from_ref(&witness.key));
        match known.into_iter().next() {
            Some(known) => Ok(known.line),
            None => self.ask_witness(settings, witness, &stored.note, tree).await,
        }
    }

    /// Asks the witness to cosign a checkpoint, and returns the line with its cosignature. If the witness answers that
    /// it last cosigned a tree of another size than the lane expected, the lane asks once more, with a proof from that
    /// size.
    async fn ask_witness(
        &self,
        settings: &Settings,
        witness: &Witness,
        note: &str,
        tree: TreeHead,
    ) -> Result<String, Failure> {
        let target =
            Target::parse(&format!("{}/add-checkpoint", witness.url), settings.local_targets);
        let target = target.map_err(|must| Failure(format!("its address {must}")))?;
        let text = Note::parse(note).map_err(|error| Failure(error.to_string()))?.text;
        let mut known = self.with_lane(|_, storage| witness.cosigned(storage))?;
        for _ in 0..2 {
            let proof = self.with_lane(|lane, storage| lane.consistency(storage, known, tree))?;
            let proof = proof.ok_or_else(|| {
                Failure(format!("it cosigned a tree of {known} leaves, which cannot be proved"))
            })?;
            let body = add_checkpoint(known, &proof, note);
            let answer = ask(&target, &body).await?;
            let (status, said) = answer.split_once('\n').unwrap_or((&answer, ""));
            match status {
                "200" => {
                    let cosigned = cosignatures(said, text, std::slice::from_ref(&witness.key));
                    let Some(cosigned) = cosigned.into_iter().next() else {
                        return Err(Failure("its cosignature does not hold".to_owned()));
                    };
                    self.with_lane(|_, storage| witness.note_cosigned(storage, tree.size))?;
                    return Ok(cosigned.line);
                }
                "409" => {
                    known = conflict(said).filter(|size| *size <= tree.size).ok_or_else(|| {
                        Failure("it cosigned a tree that the log does not have".to_owned())
                    })?;
                }
                _ => return Err(Failure(format!("it answered {status}"))),
            }
        }
        Err(Failure("it does not say which tree it cosigned".to_owned()))
    }
}

async fn ask(target: &Target, body: &str) -> Result<String, Failure> {
    const FIELDS: &str = "content-type\ntext/plain; charset=utf-8\nuser-agent\ngateward\n";
    let sent = io::ask(target.as_str(), FIELDS, body, MAX_WITNESS_BYTES, WITNESS_MS);
    let answer = settled(sent).await;
    let answer = answer.map_err(|error| Failure::from(worker::Error::from(error)))?;
    answer.as_string().ok_or_else(|| Failure("its answer is not text".to_owned()))
}
