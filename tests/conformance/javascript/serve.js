// Serves the endpoint for the tests: node serve.js express|fastify. Prints the port once it listens.

import express from 'express';
import fastify from 'fastify';
import pg from 'pg';
import * as onExpress from './express.js';
import * as onFastify from './fastify.js';

const pool = new pg.Pool({ max: 10 });
pool.on('error', (error) => console.error(error.message));
const clientOf = (request) => `shop:${request.headers['x-client']}`;

async function listen(framework) {
  if (framework === 'fastify') {
    const app = fastify();
    app.register(onFastify.refunds(pool, clientOf));
    await app.listen({ host: '127.0.0.1', port: 0 });
    return app.server;
  }
  const app = express();
  app.use(onExpress.refunds(pool, clientOf));
  const server = app.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return server;
}

const server = await listen(process.argv[2]);
console.log(server.address().port);
