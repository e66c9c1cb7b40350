// The refunds endpoint as a plugin of Fastify.

import { refund } from './refund.js';

// `pool` is a pg.Pool; `clientOf` says whose request it is: never let the caller name a scope freely.
export function refunds(pool, clientOf) {
  return async (app) => {
    // the body as it was received: the database compares it
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', { parseAs: 'buffer' }, (_, body, done) => done(null, body));
    app.post('/refunds', async (request, reply) => {
      const client = await pool.connect();
      try {
        const body = request.body ?? Buffer.alloc(0);
        const answer = await refund(client, clientOf(request), request.headers['idempotency-key'], body);
        for (const [name, value] of answer.headers ?? []) reply.header(name, value);
        return reply.code(answer.status).send(answer.body ?? undefined);
      } finally {
        client.release();
      }
    });
  };
}
