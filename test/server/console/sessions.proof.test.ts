import { expect, it } from 'vitest';
import { visitor, visitService } from './visitor.ts';

it('keeps a thousand sessions at most: the oldest gives way', async () => {
  const visit = await visitService('[service]\ntokens = s3cret\n');
  await visit.send('/login', { token: 's3cret' });
  expect((await visit.get('/')).status).toBe(200);
  const others = Array.from({ length: 1000 }, () => visitor(visit.url));
  for (const other of others) {
    await other.send('/login', { token: 's3cret' });
  }
  expect((await visit.get('/')).status).toBe(401);
  expect((await others[0]?.get('/'))?.status).toBe(200);
});
