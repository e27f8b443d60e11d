import { describe, expect, it } from 'vitest';
import { type Visitor, visitService } from './visitor.ts';

const SECRET = 's3cret-0123456789abcdef';
const withTokens = (...tokens: string[]) => visitService(`[service]\ntokens = ${tokens.join(',')}\n`);
const isIn = async ({ get }: Visitor) => (await get()).text.includes('What is enforced');

describe('a form of another site', () => {
  const SAME = [
    { 'Sec-Fetch-Site': 'same-origin' },
    { 'Sec-Fetch-Site': 'none' },
    // A proxy may have another name than the service; the browser knows.
    { 'Sec-Fetch-Site': 'same-origin', Origin: 'https://policy.example.org' },
  ];
  const OTHER = [
    { 'Sec-Fetch-Site': 'cross-site' },
    { 'Sec-Fetch-Site': 'same-site' },
    { Origin: 'https://evil.example.org' },
    { Origin: 'null' },
    { Origin: 'http://127.0.0.1' },
    { Origin: 'http://127.0.0.1.evil.example.org' },
  ];

  it.for(['/login', '/logout'])('is refused at %s, and has no effect', async (path) => {
    const visit = await withTokens(SECRET);
    await visit.send('/login', { token: SECRET });
    for (const headers of OTHER) {
      const { status, html, headers: answered } = await visit.send(path, { token: SECRET }, headers);
      expect({ headers, status, cookie: answered.get('Set-Cookie') }).toEqual({
        ...{ headers, status: 403, cookie: null },
      });
      expect(JSON.parse(html)).toEqual({ message: 'expected a form of this page, not of another site' });
    }
    expect(await isIn(visit)).toBe(true);
  });

  it('is refused where no token is asked for, too', async () => {
    const { send } = await visitService('');
    expect((await send('/login', { token: 'x' }, { 'Sec-Fetch-Site': 'cross-site' })).status).toBe(403);
  });

  it('is told from one of the page itself', async () => {
    const { send, url } = await withTokens(SECRET);
    for (const headers of [...SAME, { Origin: url }, {}]) {
      expect((await send('/login', { token: SECRET }, headers)).status, JSON.stringify(headers)).toBe(303);
    }
  });
});
