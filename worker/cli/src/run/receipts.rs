//! The commands of `gateward receipts`: they list, show and verify receipts.

use gateward_admin::api::receipts::ReceiptEnds;
use serde_json::{Value, from_str};

use crate::arguments::ROWS_MAX;
use crate::chain::{self, Chain, Found, ReceiptPage, VerifyReceipts};
use crate::commands::RECEIPT;
use crate::failure::Failure;
use crate::request::Request;
use crate::runner::{Runner, print};
use crate::table;

impl Runner {
    pub(super) fn list_receipts(&self, lane: u16, from: u64, limit: u32) -> Result<u8, Failure> {
        let mut list = ReceiptPage { receipts: Vec::new(), next_from: Some(from) };
        loop {
            let rows = u32::try_from(list.receipts.len()).unwrap_or(limit);
            let Some(from) = list.next_from.filter(|_| rows < limit) else { break };
            let page = self.client.send(&chain::page(lane, from, limit - rows))?;
            let page = ReceiptPage::parse(&page.text)?;
            list.next_from = page.next_from;
            list.receipts.extend(page.receipts);
        }
        if list.next_from.is_some() && limit == ROWS_MAX {
            eprintln!("gateward: the list has more than these {limit} rows");
        }
        let unreadable = |_| Failure::other("the answer is not a list of receipts");
        if self.json {
            return print(&serde_json::to_string(&list).map_err(unreadable)?).map(|()| 0);
        }
        let values = list.receipts.iter().map(|receipt| from_str(receipt.get()));
        let values: Vec<Value> = values.collect::<Result<_, _>>().map_err(unreadable)?;
        print(&table::list(RECEIPT, &values)).map(|()| 0)
    }

    pub(super) fn show_receipt(&self, request: &Request) -> Result<u8, Failure> {
        let answer = self.client.send(request)?;
        if self.json {
            return print(answer.text.trim()).map(|()| 0);
        }
        print(&chain::shown(&answer.text)?)?;
        let receipt = chain::stored(&answer.text)?;
        chain::verify_one(&receipt)
            .map_err(|problem| Failure::Other(format!("receipt {}: {problem}", receipt.seq)))?;
        Ok(0)
    }

    /// Verifies one lane's receipts, or those of all lanes of the tenant.
    pub(super) fn verify_receipts(&self, verify: &VerifyReceipts) -> Result<u8, Failure> {
        let mut found = Vec::new();
        for lane in verify.lane.map_or(0..=u16::MAX, |lane| lane..=lane) {
            match self.verify_lane(verify, lane) {
                // Past the tenant's last lane.
                Err(failure) if failure.is("not_found") && verify.lane.is_none() && lane > 0 => {
                    break;
                }
                result => found.push(result?),
            }
            if let Some(found) = found.last().filter(|_| !self.json) {
                print(&found.line())?;
            }
        }
        if self.json {
            print(&serde_json::json!({ "lanes": found }).to_string())?;
        }
        match found.iter().find(|found| !found.verified) {
            Some(_) => Err(Failure::other("at least one receipt is not what its lane sealed")),
            None => Ok(0),
        }
    }

    fn verify_lane(&self, verify: &VerifyReceipts, lane: u16) -> Result<Found, Failure> {
        let ends = || -> Result<ReceiptEnds, Failure> {
            let answer = self.client.send(&chain::ends(lane))?;
            from_str(&answer.text)
                .map_err(|_| Failure::other("the answer does not have the ends of a chain"))
        };
        let page = |from, rows| -> Result<ReceiptPage, Failure> {
            ReceiptPage::parse(&self.client.send(&chain::page(lane, from, rows))?.text)
        };
        let before = |seq| {
            let page = page(seq, 1)?;
            let receipt = page.receipts.first().map(|receipt| chain::stored(receipt.get()));
            match receipt.transpose()?.filter(|receipt| receipt.seq == seq) {
                Some(receipt) => Ok(receipt.receipt_hash),
                None => Err(Failure::Other(format!("lane {lane}: receipt {seq} is missing"))),
            }
        };
        let mut chain = Chain::begin(verify, ends()?, before)?;
        while let Some((from, rows)) = chain.wants() {
            chain.take(&page(from, rows)?)?;
        }
        if let Some(last) = chain.last() {
            let answer = self.client.send(&chain::anchor(lane, last))?;
            let last = from_str(&answer.text);
            chain.anchor(last.map_err(|_| Failure::other("the answer is not a verification"))?);
        }
        let found = chain.found();
        // Retention deletes the oldest receipts, perhaps while they are read.
        if let Some(broken_at) = found.broken_at
            && ends()?.pruned_through.is_some_and(|pruned| pruned.seq >= broken_at)
        {
            let message = "the tenant's retention deleted receipts meanwhile: verify again";
            return Err(Failure::Other(format!("lane {lane}: {message}")));
        }
        Ok(found)
    }
}
