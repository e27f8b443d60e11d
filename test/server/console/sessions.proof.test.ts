/** A thousand logins with one token end no session of another one. */
import { expect, it } from 'vitest';
import { visitor, visitService } from './visitor.ts';

it('a reader who logs in a thousand times ends no session but the newest of the same token', async () => {
  const operator = await visitService(
    '[service]\noperator_tokens = op-1-0123456789abcdef\nreader_tokens = read-1-0123456789abcdef,read-2-0123456789abcdef\n',
  );
  const [first, other] = [visitor(operator.url), visitor(operator.url)];
  await operator.send('/login', { token: 'op-1-0123456789abcdef' });
  await first.send('/login', { token: 'read-1-0123456789abcdef' });
  await other.send('/login', { token: 'read-2-0123456789abcdef' });
  const flood = Array.from({ length: 1001 }, () => visitor(operator.url));
  for (const one of flood) {
    await one.send('/login', { token: 'read-1-0123456789abcdef' });
  }
  const status = async (visit?: ReturnType<typeof visitor>) => (await visit?.get('/'))?.status;
  expect([await status(operator), await status(first), await status(other)]).toEqual([200, 200, 200]);
  expect([await status(flood.at(-2)), await status(flood.at(-1))]).toEqual([401, 200]);
});
