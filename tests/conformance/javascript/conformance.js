// Speaks the line protocol of the conformance suite: see ../README.md.

import { createInterface } from 'node:readline';
import pg from 'pg';
import { IdemError, atomic, call, newToken, query } from './idem.js';
import { refund } from './refund.js';

const INTERVAL = 1186;
pg.types.setTypeParser(INTERVAL, (text) => text);

class Failure extends Error {}

const sessions = new Map();

const actions = {
  async open({ session, user }) {
    const client = new pg.Client({ user });
    client.on('error', (error) => console.error(`session ${session}: ${error.message}`));
    await client.connect();
    sessions.set(session, client);
  },
  async close({ session }) {
    await sessions.get(session).end();
    sessions.delete(session);
  },
  async token() {
    return { token: newToken() };
  },
  async begin({ isolation }, client) {
    await query(client, isolation ? `begin isolation level ${isolation}` : 'begin');
  },
  async commit(_, client) {
    await query(client, 'commit');
  },
  async rollback(_, client) {
    await query(client, 'rollback');
  },
  async execute({ sql }, client) {
    await query(client, sql);
  },
  async call(request, client) {
    return { rows: await call(client, request.function, request.arguments) };
  },
  async atomic({ request, work }, client) {
    const { scope, key_header: keyHeader, method, path, body, content_type: contentType, policy } = request;
    return answered(
      atomic(client, { scope, keyHeader, method, path, body, contentType, policy }, async () => {
        await client.query(work.sql);
        if (work.fail) throw new Failure();
        return work;
      }),
    );
  },
  async refund({ scope, key_header: keyHeader, body }, client) {
    return answered(refund(client, scope, keyHeader, body));
  },
};

async function answered(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof Failure) return { failed: true };
    throw error;
  }
}

function described(error) {
  if (!(error instanceof IdemError)) {
    if (!error.code) throw error;
    return { sqlstate: error.code, code: null, kind: null };
  }
  const kind = error.name.replace(/(?<!^)[A-Z]/g, '_$&').toLowerCase();
  return { sqlstate: error.sqlstate, code: error.code, kind };
}

// JSON.stringify has called Buffer's toJSON before it comes here
const encode = (_, value) =>
  value?.type === 'Buffer' ? { bytes: Buffer.from(value.data).toString('hex') } : value;
const decode = (_, value) => (typeof value?.bytes === 'string' ? Buffer.from(value.bytes, 'hex') : value);

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const request = JSON.parse(line, decode);
  let answer;
  try {
    answer = (await actions[request.do](request, sessions.get(request.session))) ?? {};
  } catch (error) {
    answer = { error: described(error) };
  }
  process.stdout.write(`${JSON.stringify(answer, encode)}\n`);
}
for (const client of sessions.values()) await client.end();
