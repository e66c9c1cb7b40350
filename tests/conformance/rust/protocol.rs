//! The requests of the line protocol.

use crate::idem::{atomic, call, new_token, Answer, Error, Outcome, Request, Started};
use crate::leased;
use crate::refund::refund;
use crate::values::{argument, bytes, encoded, row, text};
use serde_json::{json, Value};
use std::collections::HashMap;
use std::env::var;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls};

pub type Sessions = HashMap<String, Client>;
type Answered = Result<Value, Error>;

pub async fn answer(sessions: &mut Sessions, asked: &Value) -> Value {
    perform(sessions, asked).await.unwrap_or_else(|error| json!({ "error": described(&error) }))
}

async fn perform(sessions: &mut Sessions, asked: &Value) -> Answered {
    let name = text(asked, "session").unwrap_or("");
    match text(asked, "do").unwrap() {
        "token" => return Ok(json!({ "token": new_token().to_string() })),
        "open" => {
            sessions.insert(name.into(), open(text(asked, "user").unwrap()).await?);
            return Ok(json!({}));
        }
        "close" => {
            sessions.remove(name);
            return Ok(json!({}));
        }
        _ => {}
    }
    let session = sessions.get_mut(name).unwrap();
    match text(asked, "do").unwrap() {
        "begin" => match text(asked, "isolation") {
            Some(isolation) => execute(session, &format!("begin isolation level {isolation}")).await,
            None => execute(session, "begin").await,
        },
        "execute" => execute(session, text(asked, "sql").unwrap()).await,
        "call" => called(session, asked).await,
        "atomic" => worked(session, &asked["request"], &asked["work"]).await,
        "leased" => lease(session, asked).await,
        "refund" => refunded(session, asked).await,
        end @ ("commit" | "rollback") => execute(session, end).await,
        other => panic!("cannot do {other}"),
    }
}

async fn open(user: &str) -> Result<Client, Error> {
    let mut config = Config::new();
    config.host(&var("PGHOST").unwrap()).port(var("PGPORT").unwrap().parse().unwrap());
    config.dbname(&var("PGDATABASE").unwrap()).user(user).password(var("PGPASSWORD").unwrap());
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn execute(session: &Client, sql: &str) -> Answered {
    session.batch_execute(sql).await?;
    Ok(json!({}))
}

async fn called(session: &Client, asked: &Value) -> Answered {
    let given: Vec<_> = asked["arguments"].as_object().unwrap().iter().map(|(name, v)| (name, argument(v))).collect();
    let arguments: Vec<(&str, &(dyn ToSql + Sync))> = given.iter().map(|(name, v)| (name.as_str(), v as _)).collect();
    let rows = call(session, text(asked, "function").unwrap(), &arguments).await?;
    Ok(json!({ "rows": rows.iter().map(row).collect::<Vec<_>>() }))
}

async fn worked(session: &mut Client, given: &Value, work: &Value) -> Answered {
    let body = bytes(&given["body"]);
    match atomic(session, &request(given, body.as_deref())).await? {
        Outcome::Answered(answer) => Ok(shown(&answer)),
        Outcome::Started(started) => completed(started, work).await,
    }
}

async fn lease(session: &mut Client, asked: &Value) -> Answered {
    let (body, effect) = (bytes(&asked["request"]["body"]), &asked["effect"]);
    let lease = match leased::leased(session, &request(&asked["request"], body.as_deref())).await? {
        leased::Outcome::Answered(answer) => return Ok(shown(&answer)),
        leased::Outcome::Leased(lease) => lease,
    };
    let key = lease.downstream_key.map(|key| key.to_string()).unwrap_or_default();
    session.batch_execute(&text(effect, "sql").unwrap().replace("{key}", &key)).await?;
    let mut answered = Ok(json!({ "failed": true }));
    if effect["fail"] != true {
        answered = completed(lease.begin(session).await?, &asked["work"]).await;
    }
    if answered.as_ref().map_or(true, |answer| answer["failed"] == true) {
        lease.defer(session).await?;
    }
    answered
}

fn request<'a>(given: &'a Value, body: Option<&'a [u8]>) -> Request<'a> {
    Request {
        scope: text(given, "scope").unwrap(),
        key_header: text(given, "key_header"),
        method: text(given, "method").unwrap(),
        path: text(given, "path").unwrap(),
        body,
        content_type: text(given, "content_type"),
        policy: text(given, "policy"),
    }
}

async fn completed(started: Started<'_>, work: &Value) -> Answered {
    started.transaction.batch_execute(text(work, "sql").unwrap()).await?;
    if work["fail"] == true {
        started.transaction.rollback().await?;
        return Ok(json!({ "failed": true }));
    }
    let headers = serde_json::from_value(work["headers"].clone()).unwrap();
    let answer = Answer { status: work["status"].as_i64().unwrap() as i32, headers, body: bytes(&work["body"]) };
    Ok(shown(&started.complete(answer).await?))
}

async fn refunded(session: &mut Client, asked: &Value) -> Answered {
    let body = bytes(&asked["body"]).unwrap();
    match refund(session, text(asked, "scope").unwrap(), text(asked, "key_header"), &body).await {
        Ok(answer) => Ok(shown(&answer)),
        Err(error) => Err(match error.downcast::<Error>() {
            Ok(ours) => *ours,
            Err(other) => Error::Postgres(*other.downcast().unwrap()),
        }),
    }
}

fn shown(answer: &Answer) -> Value {
    json!({ "status": answer.status, "headers": answer.headers, "body": answer.body.as_deref().map(encoded) })
}

fn described(error: &Error) -> Value {
    let (kind, report) = match error {
        Error::KeyInvalid(report) => ("key_invalid", report),
        Error::LostReservation(report) => ("lost_reservation", report),
        Error::NoSuchReservation(report) => ("no_such_reservation", report),
        Error::WrongMode(report) => ("wrong_mode", report),
        Error::NotCompleted(report) => ("not_completed", report),
        Error::NoSuchPolicy(report) => ("no_such_policy", report),
        Error::LimitExceeded(report) => ("limit_exceeded", report),
        Error::Postgres(error) => {
            let state = error.code().unwrap_or_else(|| panic!("{error}"));
            return json!({ "sqlstate": state.code(), "code": null, "kind": null });
        }
    };
    json!({ "sqlstate": report.0.code().unwrap().code(), "code": report.code(), "kind": kind })
}
