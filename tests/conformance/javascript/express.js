// The refunds endpoint as a handler of Express.

import express from 'express';
import { refund } from './refund.js';

// `pool` is a pg.Pool; `clientOf` says whose request it is: never let the caller name a scope freely.
export function refunds(pool, clientOf) {
  const app = express.Router();
  // the body as it was received: the database compares it
  app.post('/refunds', express.raw({ type: () => true }), async (req, res) => {
    const client = await pool.connect();
    try {
      const body = Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0);
      const answer = await refund(client, clientOf(req), req.get('Idempotency-Key'), body);
      for (const [name, value] of answer.headers ?? []) res.append(name, value);
      res.status(answer.status).end(answer.body);
    } finally {
      client.release();
    }
  });
  return app;
}
