//! The endpoint POST /refunds.

use crate::idem::{atomic, Answer, Outcome, Request};
use serde_json::Value;
use std::error::Error;
use tokio_postgres::{Client, Transaction};

const INSERT: &str = r#"insert into refunds ("order", amount) values ($1, $2) returning id"#;
const JSON: &str = "application/json";

/// Answers one request; the scope is the client that asks, as the server knows it.
pub async fn refund(
    client: &mut Client,
    scope: &str,
    key_header: Option<&str>,
    body: &[u8],
) -> Result<Answer, Box<dyn Error>> {
    let (method, path, content_type) = ("POST", "/refunds", Some(JSON));
    let request = Request { scope, key_header, method, path, body: Some(body), content_type, policy: None };
    // ten lines:
    match atomic(client, &request).await? {
        Outcome::Answered(answer) => Ok(answer),
        Outcome::Started(started) => {
            let answer = insert(&started.transaction, body).await?; // what fails rolls back
            Ok(started.complete(answer).await?)
        }
    }
    // end of ten lines
}

async fn insert(transaction: &Transaction<'_>, body: &[u8]) -> Result<Answer, Box<dyn Error>> {
    let asked: Value = serde_json::from_slice(body)?;
    let (order, amount) = (asked["order"].as_str(), asked["amount"].as_f64().unwrap_or(0.0) as i32);
    if amount <= 0 {
        return Ok(Answer { status: 422, headers: None, body: Some(br#"{"error": "amount"}"#.to_vec()) });
    }
    let id: i64 = transaction.query_one(INSERT, &[&order, &amount]).await?.get(0);
    let headers = vec![("Location".into(), format!("/refunds/{id}")), ("Content-Type".into(), JSON.into())];
    let body = format!(r#"{{"id": {id}, "order": {}, "amount": {amount}}}"#, asked["order"]);
    Ok(Answer { status: 201, headers: Some(headers), body: Some(body.into_bytes()) })
}
