// Does operations as fast as some clients can, on demand: the same orders and answers, line by line, as
// tests/bench/worker.py. The operation is a workflow of DBOS, named after the key, with one transaction of a datasource.
import { createInterface } from 'node:readline';
import { randomUUID } from 'node:crypto';
import { DBOS } from '@dbos-inc/dbos-sdk';
import { PostgresDataSource } from '@dbos-inc/postgres-datasource';

const WARM_UP = 12;
const part = Object.fromEntries([...process.argv[2].matchAll(/(\w+)='?([^\s']+)'?/g)].map((m) => [m[1], m[2]]));
const url = `postgresql://${part.user}:${encodeURIComponent(part.password)}@${part.host}:${part.port}/${part.dbname}`;
const connection = { host: part.host, port: Number(part.port), user: part.user, password: part.password,
  database: part.dbname, max: 32, onnotice: () => {} };

DBOS.setConfig({ name: 'bench', systemDatabaseUrl: url, systemDatabasePoolSize: 32, runAdminServer: false,
  logLevel: 'error' });
const source = new PostgresDataSource('orders', connection);
const pay = DBOS.registerWorkflow(async () => source.runTransaction(async () => {
  await PostgresDataSource.client`insert into orders (amount, note) values (1, 'benchmark')`;
  return { id: 1234567, amount: 1 };
}, { name: 'insert', isolationLevel: 'READ COMMITTED' }), { name: 'pay' });

async function once(name) {
  const handle = await DBOS.startWorkflow(pay, { workflowID: name })();
  await handle.getResult();
}

async function measure({ clients, seconds }) {
  const took = [];
  let speed = 0;
  await Promise.all(Array.from({ length: clients }, async () => {
    for (let n = 0; n < WARM_UP; n += 1) await once(randomUUID());
  }));
  await Promise.all(Array.from({ length: clients }, async () => {
    const began = performance.now();
    let now = began;
    let done = 0;
    while (now - began < seconds * 1000) {
      await once(randomUUID());
      took.push(performance.now() - now);
      now = performance.now();
      done += 1;
    }
    speed += (done / (now - began)) * 1000;
  }));
  took.sort((a, b) => a - b);
  return { speed, operations: took.length, p50: took[took.length >> 1], p99: took[Math.floor(took.length * 0.99)] };
}

await PostgresDataSource.initializeDBOSSchema(connection);
await DBOS.launch();
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await measure(JSON.parse(line))));
}
process.exit(0);
