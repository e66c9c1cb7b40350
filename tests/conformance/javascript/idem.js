// Idempotency keys decided in Postgres, for node-postgres. Copy this file into your project.
//
//   const answer = await atomic(client, request, async (client, reservation) => ({ status, headers, body }));
//
// `client` is a pg.Client, or what pool.connect() has given, outside a transaction.

import { randomUUID } from 'node:crypto';

// An error of a program, recognised by its SQLSTATE. `code` says more, `hint` says what to do.
export class IdemError extends Error {
  constructor(error) {
    super(error.message, { cause: error });
    this.name = this.constructor.name;
    this.sqlstate = error.code;
    this.code = detailOf(error).code ?? null;
    this.hint = error.hint;
  }
}

export class KeyInvalid extends IdemError {} // scope or key not acceptable
export class LostReservation extends IdemError {} // another attempt owns the key, or it has another answer
export class NoSuchReservation extends IdemError {} // nothing is reserved under this key
export class WrongMode extends IdemError {} // the call does not fit the mode or the transaction
export class NotCompleted extends IdemError {} // at COMMIT: an atomic reservation had no answer
export class NoSuchPolicy extends IdemError {}
export class LimitExceeded extends IdemError {}

const KINDS = {
  IK001: KeyInvalid,
  IK002: LostReservation,
  IK003: NoSuchReservation,
  IK004: WrongMode,
  IK005: NotCompleted,
  IK006: NoSuchPolicy,
  IK007: LimitExceeded,
};

const TRIES = 5;
const JSON_ARGUMENTS = new Set(['headers', 'fields', 'state', 'args']);

// A token for one attempt. Send it with reserve, so that the call can be repeated if its answer is lost.
export const newToken = () => randomUUID();

// Call a function of the schema idem: call(client, 'lookup', { scope, key }). Undefined arguments keep their defaults.
export async function call(client, name, args = {}) {
  const given = Object.entries(args).filter(([, value]) => value !== undefined);
  const named = given.map(([argument], index) => `${argument} => $${index + 1}`);
  const values = given.map(([argument, value]) => (JSON_ARGUMENTS.has(argument) ? json(value) : value));
  const { rows } = await query(client, `select * from idem.${name}(${named.join(', ')})`, values);
  return rows;
}

// Run a query or a COMMIT; errors of ours become IdemError, others stay what pg made of them.
export async function query(client, text, values) {
  try {
    return await client.query(text, values);
  } catch (error) {
    const Kind = KINDS[error.code];
    throw Kind ? new Kind(error) : error;
  }
}

// Answer one request once. The request has scope, keyHeader, method, path, body, contentType and policy. `work` is
// called for the first attempt alone, inside its transaction; its answer commits together with what it wrote, and
// every later attempt gets it again, its body as the same bytes. What it throws rolls back and is thrown on.
// Where Postgres asks for that (40001) the transaction is begun again.
export async function atomic(client, request, work) {
  for (let tried = 1; ; tried++) {
    try {
      return await attempt(client, request, work);
    } catch (error) {
      if (error.code !== '40001' || tried === TRIES) throw error;
    }
  }
}

async function attempt(client, request, work) {
  await client.query('begin');
  try {
    const [reservation] = await call(client, 'http_reserve', {
      scope: request.scope,
      key_header: request.keyHeader ?? null,
      method: request.method,
      path: request.path,
      body: request.body ?? null,
      content_type: request.contentType ?? null,
      token: newToken(),
      policy: request.policy,
    });
    if (reservation.status !== null) {
      await client.query('rollback');
      return { status: reservation.status, headers: reservation.headers, body: reservation.body };
    }
    const answer = await work(client, reservation);
    const { status, headers = null } = answer;
    const body = answer.body == null ? null : Buffer.from(answer.body);
    const [{ http_complete: verdict }] = await call(client, 'http_complete', {
      scope: request.scope,
      key: reservation.key,
      token: reservation.token,
      status,
      headers,
      body,
    });
    await query(client, ['rollback', 'repeated'].includes(verdict) ? 'rollback' : 'commit');
    return { status, headers, body };
  } catch (error) {
    await client.query('rollback').catch(() => {}); // without a connection the server does it
    throw error;
  }
}

function json(value) {
  return value === null || typeof value === 'string' ? value : JSON.stringify(value);
}

function detailOf(error) {
  try {
    return JSON.parse(error.detail ?? '{}');
  } catch {
    return {};
  }
}
