//! Idempotency keys decided in Postgres, for tokio-postgres. Copy this file into your project.

use std::fmt;
use tokio_postgres::types::{Json, ToSql};
use tokio_postgres::{Client, GenericClient, Row, Transaction};
use uuid::Uuid;

/// One attempt.
pub struct Request<'a> {
    pub scope: &'a str,
    pub key_header: Option<&'a str>,
    pub method: &'a str,
    pub path: &'a str,
    pub body: Option<&'a [u8]>,
    pub content_type: Option<&'a str>,
    pub policy: Option<&'a str>,
}

/// What every attempt is sent.
#[derive(Debug)]
pub struct Answer {
    pub status: i32,
    pub headers: Option<Vec<(String, String)>>,
    pub body: Option<Vec<u8>>,
}

/// Either there is an answer to send, or the work is to be done, and then `Started::complete`.
pub enum Outcome<'c> {
    Answered(Answer),
    Started(Started<'c>),
}

/// A reservation, and the transaction for its work: dropped, it is rolled back and the key is free.
pub struct Started<'c> {
    pub transaction: Transaction<'c>,
    pub(crate) scope: String,
    pub(crate) key: Option<String>,
    pub(crate) token: Option<Uuid>,
}

/// What a program got wrong, by SQLSTATE. Other errors stay those of the driver.
#[derive(Debug)]
pub enum Error {
    KeyInvalid(Report),
    LostReservation(Report),
    NoSuchReservation(Report),
    WrongMode(Report),
    NotCompleted(Report),
    NoSuchPolicy(Report),
    LimitExceeded(Report),
    Postgres(tokio_postgres::Error),
}

/// The driver's error, with message, hint and SQLSTATE.
#[derive(Debug)]
pub struct Report(pub tokio_postgres::Error);

/// Begins a transaction with a reservation. After SQLSTATE 40001, here or later, begin again.
pub async fn atomic<'c>(client: &'c mut Client, request: &Request<'_>) -> Result<Outcome<'c>, Error> {
    let transaction = client.transaction().await?;
    let token = new_token();
    let arguments: [(&str, &(dyn ToSql + Sync)); 8] = [
        ("scope", &request.scope),
        ("key_header", &request.key_header),
        ("method", &request.method),
        ("path", &request.path),
        ("body", &request.body),
        ("content_type", &request.content_type),
        ("policy", &request.policy),
        ("token", &token),
    ];
    let row = call(&transaction, "http_reserve", &arguments).await?.remove(0);
    if let Some(status) = row.try_get("status")? {
        transaction.rollback().await?;
        let headers = row.try_get::<_, Option<Json<_>>>("headers")?.map(|Json(headers)| headers);
        return Ok(Outcome::Answered(Answer { status, headers, body: row.try_get("body")? }));
    }
    let (key, token) = (row.try_get("key")?, row.try_get("token")?);
    Ok(Outcome::Started(Started { transaction, scope: request.scope.into(), key, token }))
}

impl Started<'_> {
    /// Stores the answer and commits it together with the work, unless the answer says that nothing was changed.
    pub async fn complete(self, answer: Answer) -> Result<Answer, Error> {
        let arguments: [(&str, &(dyn ToSql + Sync)); 6] = [
            ("scope", &self.scope),
            ("key", &self.key),
            ("token", &self.token),
            ("status", &answer.status),
            ("headers", &answer.headers.as_ref().map(Json)),
            ("body", &answer.body),
        ];
        let row = call(&self.transaction, "http_complete", &arguments).await?.remove(0);
        match row.try_get("http_complete")? {
            "rollback" | "repeated" => self.transaction.rollback().await?,
            _ => self.transaction.commit().await?,
        }
        Ok(answer)
    }
}

/// A random UUID by which one attempt is known.
pub fn new_token() -> Uuid {
    Uuid::new_v4()
}

/// Calls a function of schema idem and returns its rows.
pub async fn call<C: GenericClient>(
    client: &C,
    function: &str,
    arguments: &[(&str, &(dyn ToSql + Sync))],
) -> Result<Vec<Row>, Error> {
    let named = arguments.iter().enumerate().map(|(at, (name, _))| format!("{name} => ${}", at + 1));
    let named = named.collect::<Vec<_>>().join(", ");
    let values: Vec<_> = arguments.iter().map(|(_, value)| *value).collect();
    Ok(client.query(&format!("select * from idem.{function}({named})"), &values).await?)
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        let kind = match error.code().map(|state| state.code()) {
            Some("IK001") => Error::KeyInvalid,
            Some("IK002") => Error::LostReservation,
            Some("IK003") => Error::NoSuchReservation,
            Some("IK004") => Error::WrongMode,
            Some("IK005") => Error::NotCompleted,
            Some("IK006") => Error::NoSuchPolicy,
            Some("IK007") => Error::LimitExceeded,
            _ => return Error::Postgres(error),
        };
        kind(Report(error))
    }
}

impl Report {
    pub fn code(&self) -> Option<String> {
        let detail: serde_json::Value = serde_json::from_str(self.0.as_db_error()?.detail()?).ok()?;
        Some(detail["code"].as_str()?.to_owned())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "idem: {self:?}")
    }
}

impl std::error::Error for Error {}
