//! For an effect outside the database: it happens under a key of its own, between the commit of the reservation and the
//! transaction that the work and its answer share. What fails once it may have happened leaves the outcome unknown, which
//! the policy of the key decides.

use crate::idem::{call, new_token, Answer, Error, Request, Started};
use tokio_postgres::types::{Json, ToSql};
use tokio_postgres::{Client, IsolationLevel};
use uuid::Uuid;

/// Either there is an answer to send, or the effect is to happen.
pub enum Outcome {
    Answered(Answer),
    Leased(Lease),
}

/// A committed reservation. Ends by `begin` and `Started::complete`, or by `defer`.
pub struct Lease {
    /// None where nothing protects the request.
    pub downstream_key: Option<Uuid>,
    scope: String,
    key: Option<String>,
    token: Option<Uuid>,
}

/// Reserves, outside any transaction.
pub async fn leased(client: &Client, request: &Request<'_>) -> Result<Outcome, Error> {
    let token = new_token();
    let arguments: [(&str, &(dyn ToSql + Sync)); 9] = [
        ("scope", &request.scope),
        ("key_header", &request.key_header),
        ("method", &request.method),
        ("path", &request.path),
        ("body", &request.body),
        ("content_type", &request.content_type),
        ("policy", &request.policy),
        ("mode", &"leased"),
        ("token", &token),
    ];
    let row = call(client, "http_reserve", &arguments).await?.remove(0);
    if let Some(status) = row.try_get("status")? {
        let headers = row.try_get::<_, Option<Json<_>>>("headers")?.map(|Json(headers)| headers);
        return Ok(Outcome::Answered(Answer { status, headers, body: row.try_get("body")? }));
    }
    let (key, token, downstream_key) = (row.try_get("key")?, row.try_get("token")?, row.try_get("downstream_key")?);
    Ok(Outcome::Leased(Lease { downstream_key, scope: request.scope.into(), key, token }))
}

impl Lease {
    /// The effect has happened: begins the transaction that writes so.
    pub async fn begin<'c>(&self, client: &'c mut Client) -> Result<Started<'c>, Error> {
        let transaction = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start().await?;
        Ok(Started { transaction, scope: self.scope.clone(), key: self.key.clone(), token: self.token })
    }

    /// Nobody knows whether it has happened. A lease that is dropped instead ends by itself, later.
    pub async fn defer(self, client: &Client) -> Result<(), Error> {
        if self.key.is_some() {
            call(client, "defer", &[("scope", &self.scope), ("key", &self.key), ("token", &self.token)]).await?;
        }
        Ok(())
    }
}
