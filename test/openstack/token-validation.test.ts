import { describe, expect, it } from 'vitest';
import { createSharedServices } from '../../src/enforcement/services.ts';
import type { Keystone, ValidToken } from '../../src/openstack/contract.ts';
import { createKeystone } from '../../src/openstack/keystone.ts';
import { keystoneOptions } from '../../src/openstack/keystone-options.ts';
import {
  type TokenAnswer,
  TokenValidation,
  type ValidationSettings,
} from '../../src/openstack/token-validation.ts';
import { recordingLogger } from '../support/logger.ts';
import { ValidatingKeystone } from '../support/validating-keystone.ts';

const START = Date.parse('2026-11-22T08:00:00Z');
const SETTINGS: ValidationSettings = {
  cacheSeconds: 300,
  deadline: 60,
  mayAsk: ({ roles }) => roles.includes('service'),
};
const TOKEN = 'gAAAAAB-of-blazar';

class MovedClock {
  seconds = 0;
  now = () => new Date(START + this.seconds * 1000);
}

/** A validation beside a Keystone that knows `TOKEN`, and a clock that the test moves. */
async function validation(settings: Partial<ValidationSettings> = {}) {
  const clock = new MovedClock();
  const keystone = await ValidatingKeystone.start(clock);
  keystone.tokens.set(TOKEN, 'service').set('gAAAAAB-of-alice', 'member');
  const logger = recordingLogger();
  const outcomes: string[] = [];
  const options = keystoneOptions.parse({ ...keystone.account, timeout: 60 });
  const client = createKeystone(options, createSharedServices({ logger, clock }));
  const observer = { tokenValidated: (outcome: string) => void outcomes.push(outcome) };
  const tokens = new TokenValidation(client, { clock, logger, observer });
  const ask = (token = TOKEN, changed: Partial<ValidationSettings> = {}) =>
    tokens.ask(token, { ...SETTINGS, ...settings, ...changed });
  return { clock, keystone, logger, outcomes, tokens, ask };
}

/** Beside a Keystone that the test answers for itself, without a network in between. */
function validationOf(validate: Keystone['validate'], settings: Partial<ValidationSettings> = {}) {
  const clock = new MovedClock();
  const logger = recordingLogger();
  const tokens = new TokenValidation({ validate, close: async () => {} }, { clock, logger });
  const ask = (token = TOKEN, address?: string) => tokens.ask(token, { ...SETTINGS, ...settings }, address);
  return { clock, logger, tokens, ask };
}

const validToken = (expiresAt: number, roles = ['service']): ValidToken => ({
  expiresAt,
  user: { id: 'u', name: 'blazar', domain: 'Default' },
  project: { id: 'p', name: 'service', domain: 'Default' },
  roles,
});

describe('a token that Keystone knows', () => {
  it('is valid with user, project and roles, and is known at once the next time', async () => {
    const { keystone, outcomes, ask } = await validation();
    const token = {
      user: { name: 'blazar', domain: 'Default' },
      project: { name: 'service', domain: 'Default' },
      roles: expect.arrayContaining(['service', 'admin']),
      expiresAt: START + 3_600_000,
    };
    expect(await ask()).toMatchObject({ kind: 'valid', from: 'keystone', token });
    expect(ask()).toMatchObject({ kind: 'valid', from: 'cache', token });
    expect(keystone.asked).toEqual([TOKEN]);
    expect(outcomes).toEqual(['valid']);
  });

  it('is asked about again after token_cache_time, to the millisecond', async () => {
    const { clock, keystone, ask } = await validation();
    await ask();
    clock.seconds = 299.999;
    expect(ask()).toMatchObject({ from: 'cache' });
    clock.seconds = 300;
    expect(await ask()).toMatchObject({ kind: 'valid', from: 'keystone' });
    expect(keystone.asked.length).toBe(2);
    await ask(TOKEN, { cacheSeconds: 0 });
    expect(keystone.asked.length).toBe(3);
  });

  it('counts the cache time from the question, not from an answer that came late', async () => {
    const { clock, keystone, ask } = await validation();
    const release = keystone.hold();
    const first = ask();
    await keystone.untilAsked(1);
    clock.seconds = 100;
    release();
    expect(await first).toMatchObject({ kind: 'valid' });
    clock.seconds = 299;
    expect(ask()).toMatchObject({ from: 'cache' });
    clock.seconds = 300;
    expect(await ask()).toMatchObject({ from: 'keystone' });
  });

  it('stops within the cache time when it is revoked', async () => {
    const { clock, keystone, ask } = await validation();
    await ask();
    keystone.tokens.delete(TOKEN);
    clock.seconds = 299;
    expect(ask()).toMatchObject({ kind: 'valid' });
    clock.seconds = 300;
    expect(await ask()).toEqual({ kind: 'invalid', from: 'keystone' });
    expect(ask()).toEqual({ kind: 'invalid', from: 'cache' });
  });

  it('stops at its expiry, however long answers are kept', async () => {
    const { clock, keystone, ask } = await validation({ cacheSeconds: 86_400 });
    keystone.lifetimeSeconds = 60;
    await ask();
    clock.seconds = 59.999;
    expect(ask()).toMatchObject({ kind: 'valid', from: 'cache' });
    clock.seconds = 60;
    expect(ask()).toEqual({ kind: 'invalid', from: 'cache' });
    expect(keystone.asked.length).toBe(1);
  });

  it('is asked about again when the clock is set back: nobody knows how old the answer is', async () => {
    const { clock, keystone, ask } = await validation();
    await ask();
    clock.seconds = -3600;
    expect(await ask()).toMatchObject({ kind: 'valid', from: 'keystone' });
    expect(keystone.asked.length).toBe(2);
  });

  it('is invalid when it has expired, or its expiry is no time, whatever Keystone says', async () => {
    for (const expiresAt of [START, START - 1, Number.NaN]) {
      const { ask, tokens } = validationOf(async () => validToken(expiresAt));
      expect(await ask()).toEqual({ kind: 'invalid', from: 'keystone' });
      expect(tokens.sizes.valid).toBe(0);
    }
  });
});

describe('a token that Keystone does not know', () => {
  it('is invalid, without asking again for five seconds', async () => {
    const { clock, keystone, outcomes, ask } = await validation();
    expect(await ask('gAAAAAB-guess')).toEqual({ kind: 'invalid', from: 'keystone' });
    clock.seconds = 4.999;
    expect(ask('gAAAAAB-guess')).toEqual({ kind: 'invalid', from: 'cache' });
    expect(keystone.asked.length).toBe(1);
    expect(outcomes).toEqual(['invalid']);
    clock.seconds = 5;
    keystone.tokens.set('gAAAAAB-guess', 'service');
    expect(await ask('gAAAAAB-guess')).toMatchObject({ kind: 'valid', from: 'keystone' });
  });

  it.for([
    ...['', ' ', 'a b', 'a\nb', 'a\r\nX-Auth-Token: b', 'a\0', 'gÄÖ', 'a, b', '"a"'],
    'a'.repeat(4097),
    'a'.repeat(65_536),
  ])('is refused by its form, without asking: %j', async (token) => {
    const { keystone, ask } = await validation();
    expect(ask(token)).toEqual({ kind: 'invalid', from: 'form' });
    expect(keystone.asked).toEqual([]);
  });

  it('does not push out those that are known, however many come', async () => {
    const known = new Map([[TOKEN, validToken(START + 3_600_000)]]);
    const { ask, tokens } = validationOf(async (token) =>
      token.startsWith('of-user') ? validToken(START + 3_600_000, ['member']) : known.get(token),
    );
    await ask();
    for (let index = 0; index < 10_050; index += 1) {
      await ask(`guess-${index}`);
      await ask(`of-user-${index}`);
    }
    expect(tokens.sizes).toEqual({ valid: 10_001, unknown: 10_000 });
    expect(ask()).toMatchObject({ kind: 'valid', from: 'cache' });
  });
});

it('logs why Keystone failed, without the token', async () => {
  const { ask, logger } = validationOf(() => Promise.reject(new Error(`no answer about ${TOKEN}`)));
  expect(await ask()).toMatchObject({ kind: 'unavailable' });
  expect(logger.lines).toMatchObject([{ level: 'warn', fields: { error: 'no answer about (token)' } }]);
});

it('closes without waiting for Keystone, and without a word', async () => {
  const { keystone, logger, ask, tokens } = await validation();
  keystone.instead = () => {};
  const answer = ask();
  await keystone.untilAsked(1);
  await tokens.close();
  expect(await answer).toMatchObject({ kind: 'unavailable' });
  expect(logger.lines).toEqual([]);
});

describe('many requests', () => {
  it('with the same token cause one request to Keystone, and get its answer', async () => {
    const { keystone, ask } = await validation();
    const release = keystone.hold();
    const answers = Promise.all(Array.from({ length: 1000 }, () => ask()));
    await keystone.untilAsked(1);
    release();
    expect(new Set((await answers).map(({ kind }) => kind))).toEqual(new Set(['valid']));
    expect(keystone.asked).toEqual([TOKEN]);
  });

  it('with different tokens have 32 validated at the same time, 256 wait, and refuse the others', async () => {
    const waiting: (() => void)[] = [];
    const { ask, tokens, logger } = validationOf(
      () => new Promise((resolve) => waiting.push(() => resolve(validToken(START + 60_000)))),
    );
    const answers = Array.from({ length: 400 }, (_, index) => ask(`token-${index}`));
    const refused = answers.slice(288);
    expect(new Set(await Promise.all(refused))).toEqual(
      new Set([{ kind: 'unavailable', from: 'busy', reason: expect.stringMatching(/too many/) }]),
    );
    expect(waiting.length).toBe(32);
    expect(tokens.underWay).toBe(288);
    expect(logger.lines).toEqual([expect.objectContaining({ level: 'warn' })]);
    for (let done = 0; done < 288; done += 1) {
      waiting[done]?.();
      await answers[done];
    }
    expect((await Promise.all(answers.slice(0, 288))).every(({ kind }) => kind === 'valid')).toBe(true);
    expect(tokens.underWay).toBe(0);
  });

  it('with invented tokens from one client keep those of other clients waiting, and not out', async () => {
    const waiting: (() => void)[] = [];
    const { ask, tokens } = validationOf(
      (token) =>
        new Promise((resolve) =>
          waiting.push(() => resolve(token.startsWith('real') ? validToken(START + 60_000) : undefined)),
        ),
    );
    const invented = Array.from({ length: 400 }, (_, index) =>
      ask(`token-${index}`, `2001:db8::${index % 9}`),
    );
    const real = ['192.0.2.1', '2001:db8:0:1::1'].map((address) => ask(`real-${address.length}`, address));
    expect(await Promise.all([...invented.slice(286), ask('token-400', '2001:db8::')])).toEqual(
      Array.from({ length: 115 }, () => expect.objectContaining({ from: 'busy' })),
    );
    expect(tokens.underWay).toBe(288);
    for (let done = 0; done < 288; done += 1) {
      waiting[done]?.();
      await [...invented.slice(0, 286), ...real][done];
    }
    expect(await Promise.all(real)).toEqual(real.map(() => expect.objectContaining({ kind: 'valid' })));
  });

  it.for(['service', 'member'])(
    'with unknown tokens do not keep the known one of a %s from being validated again, or from ending',
    async (role) => {
      let isRevoked = false;
      let release = () => {};
      const held = new Promise<undefined>((resolve) => {
        release = () => resolve(undefined);
      });
      const { ask, clock } = validationOf(async (token) =>
        token !== TOKEN ? held : isRevoked ? undefined : validToken(START + 3_600_000, [role]),
      );
      await ask();
      const others = Array.from({ length: 400 }, (_, index) => ask(`token-${index}`));
      clock.seconds = 300;
      expect(await ask()).toMatchObject({ kind: 'valid', from: 'keystone' });
      isRevoked = true;
      clock.seconds = 600;
      expect(await ask()).toMatchObject({ kind: 'invalid', from: 'keystone' });
      release();
      expect((await Promise.all(others)).some(({ kind }) => kind === 'valid')).toBe(false);
    },
  );

  it('with known tokens keep none of them in use when too many wait', async () => {
    let release = () => {};
    let held: Promise<void> | undefined;
    const { ask, clock } = validationOf(async () => {
      await held;
      return validToken(START + 3_600_000, ['member']);
    });
    const tokens = Array.from({ length: 300 }, (_, index) => `token-${index}`);
    for (const token of tokens) {
      await ask(token);
    }
    held = new Promise((resolve) => {
      release = resolve;
    });
    clock.seconds = 300;
    const answers = tokens.map((token) => ask(token));
    expect(await answers[299]).toMatchObject({ kind: 'unavailable', from: 'busy' });
    release();
    expect(await answers[287]).toMatchObject({ kind: 'valid', from: 'keystone' });
  });
});

describe('while Keystone does not answer', () => {
  const instead = (answer: NonNullable<ValidatingKeystone['instead']>) => (keystone: ValidatingKeystone) => {
    keystone.instead = answer;
  };
  const sending = (status: number, body = '') =>
    instead((response) => void response.writeHead(status).end(body));
  const AWAY: Record<string, (keystone: ValidatingKeystone) => unknown> = {
    'is not there': (keystone) => keystone.stop(),
    'breaks the connection': instead((response) => void response.destroy()),
    'answers 500': sending(500),
    'answers 200 with the page of a proxy': sending(200, '<html>It works!</html>'),
    'answers 200 with JSON that is no token': sending(200, '{"token":{"roles":[{"name":"admin"}]}}'),
    'answers 200 without a body': sending(200),
    'answers 204': sending(204),
    'answers 404 for the page of a proxy': sending(404, '<html>Not Found</html>'),
    'answers about another token': instead(
      (response, { body }) => void response.setHeader('X-Subject-Token', 'another').end(JSON.stringify(body)),
    ),
    'refuses our account': sending(403, '{"error":{"code":403,"message":"You are not authorized"}}'),
    redirects: instead((response) => void response.writeHead(302, { Location: '/v3/auth/tokens' }).end()),
    'sends megabytes': sending(200, 'x'.repeat(3_000_000)),
  };

  it.for(Object.keys(AWAY))(
    'and %s, a known token goes on and an unknown one is unavailable',
    async (how) => {
      const { clock, keystone, outcomes, logger, ask } = await validation();
      await ask();
      await AWAY[how]?.(keystone);
      clock.seconds = 300;
      const unknown: TokenAnswer = {
        kind: 'unavailable',
        from: 'outage',
        reason: 'the token cannot be validated now, because Keystone does not answer; please try again',
      };
      expect(await ask('gAAAAAB-of-alice')).toEqual(unknown);
      expect(await ask()).toMatchObject({
        kind: 'valid',
        from: 'outage',
        token: { user: { name: 'blazar' } },
      });
      expect(outcomes).toContain('failed');
      expect(logger.lines.filter(({ level }) => level === 'warn').length).toBe(1);
      expect(JSON.stringify(logger.lines)).not.toContain('of-');
    },
  );

  it('a known token stops when it expires, and is then invalid, not unavailable', async () => {
    const { clock, keystone, ask } = await validation();
    await ask();
    await keystone.stop();
    clock.seconds = 3599;
    expect(await ask()).toMatchObject({ kind: 'valid', from: 'outage' });
    clock.seconds = 3600;
    expect(await ask()).toEqual({ kind: 'invalid', from: 'cache' });
  });

  it('known tokens do not wait for each other: after a failure they go on at once', async () => {
    const { clock, keystone, ask } = await validation();
    await ask();
    await ask('gAAAAAB-of-alice');
    await keystone.stop();
    clock.seconds = 300;
    await ask();
    expect(ask()).toMatchObject({ kind: 'valid', from: 'outage' });
    expect(ask('gAAAAAB-of-alice')).toMatchObject({ kind: 'valid', from: 'outage' });
  });

  it('a known token does not wait longer than half of the deadline', async () => {
    const { clock, keystone, ask } = await validation();
    await ask();
    const release = keystone.hold();
    clock.seconds = 300;
    const patient = ask();
    expect(await ask(TOKEN, { deadline: 0.1 })).toMatchObject({ kind: 'valid', from: 'outage' });
    release();
    expect(await patient).toMatchObject({ kind: 'valid', from: 'keystone' });
  });

  it('an unknown token is unavailable at the deadline, though Keystone answers later', async () => {
    const { keystone, ask } = await validation();
    const release = keystone.hold();
    expect(await ask(TOKEN, { deadline: 0.1 })).toMatchObject({ kind: 'unavailable', from: 'outage' });
    release();
  });

  it('one that gives up does not end the validation for the others', async () => {
    const { keystone, ask } = await validation();
    const release = keystone.hold();
    const patient = ask(TOKEN, { deadline: 5 });
    expect(await ask(TOKEN, { deadline: 0.05 })).toMatchObject({ kind: 'unavailable' });
    release();
    expect(await patient).toMatchObject({ kind: 'valid', from: 'keystone' });
    expect(keystone.asked).toEqual([TOKEN]);
  });

  /** Keystone is there again, and does not know a token any more with which somebody went on. */
  async function afterOutage() {
    const validating = await validation();
    const { clock, keystone, ask } = validating;
    await ask();
    await keystone.stop();
    clock.seconds = 300;
    await ask();
    await keystone.restart();
    keystone.tokens.delete(TOKEN);
    return validating;
  }

  it('and is there again: everything is validated as before, and the log says so once', async () => {
    const { clock, logger, ask } = await afterOutage();
    clock.seconds = 331;
    expect(await ask()).toEqual({ kind: 'invalid', from: 'keystone' });
    expect(logger.lines.map(({ message }) => message)).toEqual([
      'Keystone did not validate a token: only known tokens are accepted',
      'Keystone validates tokens again',
    ]);
  });

  it('an answer about a revoked token ends it, though no request has waited for that answer', async () => {
    const { ask, tokens } = await afterOutage();
    // Asked beside the request, which goes on.
    expect(ask()).toMatchObject({ kind: 'valid', from: 'outage' });
    await expect.poll(() => tokens.underWay).toBe(0);
    expect(ask()).toEqual({ kind: 'invalid', from: 'cache' });
  });
});
