import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Deadline } from '../../../../src/base/deadline.ts';
import { ApiError, ApiUnreachableError } from '../../../../src/kubernetes/cluster/api/contract.ts';
import { REVIEWS_PATH, type ReviewOutcome } from '../../../../src/kubernetes/cluster/live/access-review.ts';
import type { UseHint } from '../../../../src/kubernetes/cluster/live/rbac-hint.ts';
import {
  ReviewedPermissions,
  type ReviewedPermissionsOptions,
} from '../../../../src/kubernetes/cluster/live/reviewed-permissions.ts';
import {
  type Account,
  SourceUnavailableError,
  serviceAccount,
} from '../../../../src/kubernetes/policies/access.ts';
import { type ReviewServer, reviewServer } from './review-server.ts';

const SOON = { timeout: 120_000, interval: 5 };

const LIN = serviceAccount('team', 'lin');
const FEW = ['gold', 'iron', 'silver'];
const MANY = Array.from({ length: 40 }, (_, index) => `policy-${index}`);

let server: ReviewServer;
let clock: number;
const opened: ReviewedPermissions[] = [];

beforeEach(() => {
  server = reviewServer();
  clock = 0;
});
afterEach(() => {
  for (const one of opened.splice(0)) {
    one.close();
  }
});

function permissions(options: Partial<ReviewedPermissionsOptions> = {}): ReviewedPermissions {
  const one = new ReviewedPermissions({
    client: server.client,
    rights: 'auto',
    now: () => clock,
    ...options,
  });
  opened.push(one);
  return one;
}

const mayUse = (...names: string[]) => {
  server.mayUse = ({ name }) => names.includes(name);
};
const askedNames = () => server.asked.splice(0).map(({ name }) => name.replace(/^any-.*/, 'any'));

/** It is not known already. */
async function expectAsked(usable: ReturnType<ReviewedPermissions['usable']>): Promise<void> {
  expect(usable).toBeInstanceOf(Promise);
  await usable;
}

function hint(candidates: UseHint['candidates']): UseHint & { version: number; at: number } {
  const one = { version: 0, at: Number.NEGATIVE_INFINITY, candidates, changedAt: () => one.at };
  return one;
}

describe('a review', () => {
  it('asks about the use of a policy by the account of a pod, in the namespace of the pod', async () => {
    const request = vi.spyOn(server.client, 'request');
    await permissions().usable(LIN, ['gold']);
    expect(request).toHaveBeenCalledExactlyOnceWith({
      method: 'POST',
      path: REVIEWS_PATH,
      body: {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SubjectAccessReview',
        spec: {
          user: 'system:serviceaccount:team:lin',
          groups: ['system:serviceaccounts', 'system:serviceaccounts:team', 'system:authenticated'],
          resourceAttributes: {
            verb: 'use',
            group: 'scheduling.blazar-enforcement',
            resource: 'schedulingpolicies',
            name: 'gold',
            namespace: 'team',
          },
        },
      },
      signal: expect.any(AbortSignal),
    });
  });

  it.each([
    ['allowed', { allowed: true }, ['gold']],
    ['not allowed', { allowed: false, reason: 'no' }, []],
    ['denied', { allowed: false, denied: true }, []],
    ['allowed and denied', { allowed: true, denied: true }, []],
    ['allowed, with an error', { allowed: true, evaluationError: 'no connection' }, ['gold']],
    ['not allowed, with a missing role', { allowed: false, reason: 'RBAC: a role is missing' }, []],
  ])('that is %s counts as Kubernetes counts it', async (_, status, expected) => {
    server.respond = async (review) => server.answer(review, status);
    expect(await permissions().usable(LIN, ['gold'])).toEqual(expected);
  });

  const spec = { user: LIN.user, resourceAttributes: { name: 'gold' } };
  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['text', 'yes'],
    ['another kind', { kind: 'Status', spec, status: { allowed: true } }],
    ['allowed as a text', { kind: 'SubjectAccessReview', spec, status: { allowed: 'true' } }],
    // As tried on kube-apiserver 1.20, with a webhook for authorization that did not answer.
    [
      'the error of an authorizer',
      { kind: 'SubjectAccessReview', spec, status: { allowed: false, evaluationError: 'no connection' } },
    ],
    [
      'another account',
      { kind: 'SubjectAccessReview', spec: { ...spec, user: 'root' }, status: { allowed: true } },
    ],
    [
      'another policy',
      {
        kind: 'SubjectAccessReview',
        spec: { ...spec, resourceAttributes: { name: 'iron' } },
        status: { allowed: true },
      },
    ],
  ])('answered with %s is a failure', async (_, answer) => {
    server.respond = async () => answer;
    await expect(permissions().usable(LIN, ['gold'])).rejects.toThrow(SourceUnavailableError);
  });

  it.each([
    [new ApiError(403, 'Forbidden', 'cannot create subjectaccessreviews'), /403 Forbidden: cannot create/],
    [new ApiUnreachableError('connect ECONNREFUSED'), /ECONNREFUSED/],
    [new Error('secret'), /does not say which scheduling policies .*lin may use: the review failed$/],
  ])('that fails with %s says so, with the cause', async (cause, message) => {
    server.respond = async () => {
      throw cause;
    };
    const failed = permissions().usable(LIN, ['gold']);
    await expect(failed).rejects.toThrow(message);
    await expect(failed).rejects.toMatchObject({ name: 'SourceUnavailableError', cause });
  });
});

describe('few policies', () => {
  it('are asked about one by one after a review about all of them', async () => {
    mayUse('silver', 'gold');
    expect(await permissions().usable(LIN, FEW)).toEqual(['gold', 'silver']);
    expect(askedNames()).toEqual(['', 'gold', 'iron', 'silver']);
  });

  it('cost two reviews for an account that may use all of them', async () => {
    server.mayUse = () => true;
    expect(await permissions().usable(LIN, FEW)).toBe(FEW);
    expect(askedNames()).toEqual(['', 'any']);
  });

  it('are not all of them for a role with an empty resource name', async () => {
    mayUse('', 'gold');
    expect(await permissions().usable(LIN, FEW)).toEqual(['gold']);
    expect(askedNames()).toEqual(['', 'any', 'gold', 'iron', 'silver']);
  });
});

describe('many policies', () => {
  it('are asked about only where roles and bindings name them', async () => {
    mayUse('policy-3', 'policy-8');
    const one = permissions({ hint: hint(() => ['policy-3', 'policy-7']) });
    expect(await one.usable(LIN, MANY)).toEqual(['policy-3']);
    expect(askedNames()).toEqual(['', 'policy-3', 'policy-7']);
  });

  it('are all asked about when roles and bindings are not known', async () => {
    mayUse('policy-3', 'policy-8');
    const one = permissions({ hint: hint(() => undefined) });
    expect(await one.usable(LIN, MANY)).toEqual(['policy-3', 'policy-8']);
    expect(askedNames()).toHaveLength(41);
  });

  it('are all asked about with rights = every, since an authorizer may deny single ones', async () => {
    server.mayUse = ({ name }) => name !== 'policy-9';
    const one = permissions({ rights: 'every', hint: hint(() => []) });
    expect(await one.usable(LIN, MANY)).toEqual(MANY.filter((name) => name !== 'policy-9'));
    expect(askedNames()).toEqual(MANY);
  });

  it('are asked about 16 at a time for one account and 64 in all', async () => {
    let running = 0;
    let most = 0;
    server.respond = async (review) => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      return server.answer(review, { allowed: false });
    };
    const one = permissions({ rights: 'every' });
    await one.usable(LIN, MANY);
    expect(most).toBe(16);
    await Promise.all(
      ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => one.usable(serviceAccount('x', name), MANY)),
    );
    expect(most).toBe(64);
  });
});

describe('an answer', () => {
  it('is given again for 10 s without a promise, as the same array', async () => {
    mayUse('gold');
    const one = permissions();
    const first = await one.usable(LIN, FEW);
    server.asked.length = 0;
    clock = 6999;
    expect(one.usable(serviceAccount('team', 'lin'), FEW)).toBe(first);
    expect(server.asked).toEqual([]);
  });

  it('is fetched anew from 7 s on while the old one is used, for no longer than 10 s', async () => {
    mayUse('gold');
    const one = permissions();
    const first = await one.usable(LIN, FEW);
    clock = 7000;
    expect(one.usable(LIN, FEW)).toBe(first);
    await vi.waitFor(() => expect(server.asked).toHaveLength(8), SOON);
    await new Promise((resolve) => setTimeout(resolve, 5));
    clock = 16_999;
    expect(one.usable(LIN, FEW)).toBe(first);
    clock = 17_000;
    await expectAsked(one.usable(LIN, FEW));
  });

  it('that arrives after 10 s is a failure', async () => {
    server.respond = async (review) => {
      clock += 10_000;
      return server.answer(review, { allowed: true });
    };
    await expect(permissions().usable(LIN, ['gold'])).rejects.toThrow(SourceUnavailableError);
  });

  it('is fetched once for all who ask meanwhile', async () => {
    mayUse('gold');
    const one = permissions();
    const answers = await Promise.all(Array.from({ length: 50 }, () => one.usable(LIN, FEW)));
    expect(new Set(answers)).toHaveLength(1);
    expect(askedNames()).toHaveLength(4);
  });

  it('is another one for another namespace, other groups or another user', async () => {
    server.mayUse = ({ user, groups, namespace }) =>
      user === 'a' && groups.join() === 'b' && namespace === 'c';
    const one = permissions();
    const usable = (account: Account) => one.usable(account, ['gold']);
    expect(await usable({ user: 'a', groups: ['b'], namespace: 'c' })).toEqual(['gold']);
    expect(await usable({ user: 'a', groups: ['b'] })).toEqual([]);
    expect(await usable({ user: 'a', groups: ['b'], namespace: '' })).toEqual([]);
    expect(await usable({ user: 'a', groups: [], namespace: 'c' })).toEqual([]);
    expect(await usable({ user: 'a/1:b', groups: [], namespace: 'c' })).toEqual([]);
    expect(await usable({ user: 'a', groups: ['b', ''], namespace: 'c' })).toEqual([]);
  });

  it('for a new policy costs one review, and expires with the first ones', async () => {
    mayUse('gold', 'zinc');
    const one = permissions();
    await one.usable(LIN, FEW);
    askedNames();
    clock = 4000;
    expect(await one.usable(LIN, [...FEW, 'zinc'])).toEqual(['gold', 'zinc']);
    expect(askedNames()).toEqual(['zinc']);
    clock = 10_000;
    expect(await one.usable(LIN, [...FEW, 'zinc'])).toEqual(['gold', 'zinc']);
    expect(askedNames()).toEqual(['', 'gold', 'iron', 'silver', 'zinc']);
  });

  it('remains when policies go, or others have the same names', async () => {
    mayUse('gold', 'silver');
    const one = permissions();
    const first = await one.usable(LIN, FEW);
    expect(one.usable(LIN, [...FEW])).toBe(first);
    expect(one.usable(LIN, ['gold', 'iron'])).toEqual(['gold']);
    expect(one.usable(LIN, ['iron'])).toEqual([]);
  });

  it('is not kept where it is too large', async () => {
    server.mayUse = ({ name }) => name !== '' && name !== 'iron';
    const one = permissions({ names: 2 });
    expect(await one.usable(LIN, FEW)).toEqual(['gold', 'silver']);
    await expectAsked(one.usable(LIN, FEW));
  });
});

describe('a changed binding', () => {
  it('ends what was answered before it', async () => {
    mayUse('gold');
    const bindings = hint(() => undefined);
    const one = permissions({ hint: bindings });
    clock = 100;
    await one.usable(LIN, FEW);
    mayUse('iron');
    clock = 200;
    Object.assign(bindings, { version: 1, at: 200 });
    expect(await one.usable(LIN, FEW)).toEqual(['iron']);
  });

  it('of somebody else ends nothing', async () => {
    const bindings = hint(() => undefined);
    const one = permissions({ hint: bindings });
    await one.usable(LIN, FEW);
    bindings.version = 1;
    expect(one.usable(LIN, FEW)).toEqual([]);
  });

  it('lets answers live for 1 s at first, since an authorizer may not know it yet', async () => {
    const bindings = hint(() => undefined);
    const one = permissions({ hint: bindings });
    clock = 200;
    Object.assign(bindings, { version: 1, at: 200 });
    clock = 201;
    await one.usable(LIN, FEW);
    // It was not told of yet when the round began, or is told of once more.
    bindings.version = 2;
    clock = 1199;
    expect(one.usable(LIN, FEW)).toEqual([]);
    clock = 1200;
    await expectAsked(one.usable(LIN, FEW));
  });
});

describe('a failure', () => {
  it('of one review is one of the whole answer, and starts no more of them', async () => {
    server.respond = async (review) => {
      if (review.name === 'policy-3') {
        throw new ApiError(500, 'InternalError', 'broken');
      }
      await new Promise((resolve) => setImmediate(resolve));
      return server.answer(review, { allowed: true });
    };
    await expect(permissions({ rights: 'every' }).usable(LIN, MANY)).rejects.toThrow(/500/);
    expect(server.asked).toHaveLength(16);
  });

  it('is not kept, but for 1 s in which nothing is asked', async () => {
    const { respond } = server;
    server.respond = async () => {
      throw new ApiUnreachableError('away');
    };
    const one = permissions();
    await expect(one.usable(LIN, FEW)).rejects.toThrow('away');
    clock = 999;
    await expect(one.usable(LIN, FEW)).rejects.toThrow('away');
    expect(server.asked).toHaveLength(1);
    server.respond = respond;
    expect(await one.usable(serviceAccount('team', 'other'), FEW)).toEqual([]);
    clock = 1000;
    expect(await one.usable(LIN, FEW)).toEqual([]);
  });

  it('is what the end of the wait is: nothing more is asked, and the next one is asked anew', async () => {
    let signal: AbortSignal | undefined;
    server.respond = (_, request) => {
      signal = request.signal;
      return new Promise(() => undefined);
    };
    const one = permissions();
    const deadline = new Deadline(0.02);
    await expect(one.usable(LIN, FEW, deadline)).rejects.toMatchObject({
      name: 'SourceUnavailableError',
      message: expect.stringContaining('https://10.0.0.1:6443 did not say in time'),
    });
    deadline.end();
    expect(signal?.aborted).toBe(true);
    mayUse('gold');
    server.respond = async (review) => server.answer(review, { allowed: server.mayUse(review) });
    expect(await one.usable(LIN, FEW)).toEqual(['gold']);
  });

  it('of one who waits less leaves the others waiting', async () => {
    const open: (() => void)[] = [];
    server.respond = async (review) => {
      await new Promise<void>((resolve) => open.push(resolve));
      return server.answer(review, { allowed: true });
    };
    const one = permissions();
    const patient = one.usable(LIN, ['gold']);
    const deadline = new Deadline(0.01);
    await expect(one.usable(LIN, ['gold'], deadline)).rejects.toThrow(SourceUnavailableError);
    deadline.end();
    for (const answer of open) {
      answer();
    }
    expect(await patient).toEqual(['gold']);
    expect(server.asked).toHaveLength(1);
  });

  it('is what the end of the service is', async () => {
    server.respond = () => new Promise(() => undefined);
    const one = permissions();
    const waiting = one.usable(LIN, FEW);
    one.close();
    await expect(waiting).rejects.toThrow(SourceUnavailableError);
    await expect(one.usable(LIN, FEW)).rejects.toThrow(SourceUnavailableError);
  });
});

it('what is asked and answered is counted', async () => {
  const reviewed: ReviewOutcome[] = [];
  const answered: string[] = [];
  mayUse('gold');
  const one = permissions({
    observer: {
      reviewed: (outcome, seconds) => {
        expect(seconds).toBeGreaterThanOrEqual(0);
        reviewed.push(outcome);
      },
      answered: (how) => answered.push(how),
    },
  });
  await one.usable(LIN, FEW);
  one.usable(LIN, FEW);
  server.respond = async () => {
    throw new Error('broken');
  };
  clock = 10_000;
  await expect(one.usable(LIN, FEW)).rejects.toThrow(SourceUnavailableError);
  expect(reviewed).toEqual(['denied', 'allowed', 'denied', 'denied', 'failed']);
  expect(answered).toEqual(['asked', 'cached', 'failed']);
});
