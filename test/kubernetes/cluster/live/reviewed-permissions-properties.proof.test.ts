/** Random grants, times and failures: an answer is never older than 10 s, and was true when its review was sent. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { UseHint } from '../../../../src/kubernetes/cluster/live/rbac-hint.ts';
import { ReviewedPermissions } from '../../../../src/kubernetes/cluster/live/reviewed-permissions.ts';
import { SourceUnavailableError, serviceAccount } from '../../../../src/kubernetes/policies/access.ts';
import { reviewServer } from './review-server.ts';

const LIN = serviceAccount('team', 'lin');
const LIFETIME = 10_000;
const NAMES = ['gold', 'iron', 'silver', 'tin'];
const MANY = [...NAMES, ...Array.from({ length: 40 }, (_, index) => `policy-${index}`)];
const LISTS = [NAMES.slice(0, 1), NAMES, [...NAMES], MANY];

const step = fc.record({
  /** Before the question, in milliseconds. */
  passes: fc.oneof(fc.constantFrom(0, 1), fc.nat(3000), fc.nat(12_000)),
  toggles: fc.option(fc.constantFrom('gold', 'iron', 'all')),
  isTold: fc.boolean(),
  fails: fc.integer({ min: 1, max: 8 }).map((number) => number === 1),
  /** Each review. */
  takes: fc.constantFrom(0, 0, 0, 1, 100, 1500),
  list: fc.constantFrom(...LISTS),
});

it('an answer was true within the last 10 s, whatever changes, lasts or fails', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 10, maxLength: 40 }),
      fc.constantFrom<'auto' | 'every'>('auto', 'every'),
      fc.boolean(),
      async (steps, rights, withHint) => {
        let clock = 0;
        let fails = false;
        let takes = 0;
        let failedAt = Number.NEGATIVE_INFINITY;
        const granted = new Set<string>();
        /** Since when each is as it is, and as it was before. */
        const history: { readonly at: number; readonly granted: ReadonlySet<string> }[] = [
          { at: Number.NEGATIVE_INFINITY, granted: new Set() },
        ];
        const server = reviewServer();
        server.respond = async (review) => {
          const allowed = granted.has('all') || granted.has(review.name);
          const isFailed = fails;
          await Promise.resolve();
          clock += takes;
          if (isFailed) {
            failedAt = clock;
            throw new Error('failed');
          }
          return server.answer(review, { allowed });
        };
        const told = { at: Number.NEGATIVE_INFINITY, version: 0 };
        const hint: UseHint = {
          get version() {
            return told.version;
          },
          candidates: (_, names) => (granted.has('all') ? names : names.filter((name) => granted.has(name))),
          changedAt: () => told.at,
        };
        const one = new ReviewedPermissions({
          client: server.client,
          rights,
          hint: withHint ? hint : undefined,
          now: () => clock,
        });
        for (const { passes, toggles, isTold, list, ...faults } of steps) {
          // What goes on aside is done before time passes.
          await new Promise((resolve) => setImmediate(resolve));
          ({ fails, takes } = faults);
          clock += passes;
          if (toggles !== null) {
            if (!granted.delete(toggles)) {
              granted.add(toggles);
            }
            history.push({ at: clock, granted: new Set(granted) });
            if (isTold) {
              Object.assign(told, { at: clock, version: told.version + 1 });
            }
          }
          let usable: readonly string[];
          let answeredAt = clock;
          try {
            const answer = one.usable(LIN, list);
            if (answer instanceof Promise) {
              usable = await answer;
              answeredAt = clock;
            } else {
              usable = answer;
            }
          } catch (error) {
            expect(error).toBeInstanceOf(SourceUnavailableError);
            // Something has failed lately, or took too long.
            expect(failedAt > clock - 1001 || takes > 0).toBe(true);
            failedAt = takes > 0 ? clock : failedAt;
            continue;
          }
          const then = history.filter(
            (_, index) => (history[index + 1]?.at ?? answeredAt) > answeredAt - LIFETIME,
          );
          const was = (name: string, allowed: boolean) =>
            then.some((moment) => (moment.granted.has('all') || moment.granted.has(name)) === allowed);
          expect(usable.filter((name) => !was(name, true))).toEqual([]);
          const others = list.filter((name) => !usable.includes(name));
          expect(others.filter((name) => !was(name, false))).toEqual([]);
        }
        one.close();
      },
    ),
    { numRuns: 120 },
  );
});
