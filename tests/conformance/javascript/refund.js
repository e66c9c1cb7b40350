// A refund, however often it is asked for.

import { atomic } from './idem.js';

const INSERT = 'insert into refunds ("order", amount) values ($1, $2) returning id::int';

// ten lines:
export function refund(client, scope, keyHeader, body) {
  const request = { scope, keyHeader, method: 'POST', path: '/refunds', body, contentType: 'application/json' };
  return atomic(client, request, async () => {
    const { order, amount } = JSON.parse(body);
    if (!(amount > 0)) return { status: 422, body: '{"error": "amount"}' };
    const { id } = (await client.query(INSERT, [order, amount])).rows[0];
    const headers = [['Location', `/refunds/${id}`], ['Content-Type', 'application/json']];
    return { status: 201, headers, body: JSON.stringify({ id, order, amount }) };
  });
}
// end of ten lines
