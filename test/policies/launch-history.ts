/** Random histories of launches, and what must hold of them. */
import fc from 'fast-check';
import { expect } from 'vitest';
import { type LabSetup, openLab } from './charging.ts';

const GRACE = 1800;
const HOLD = 7200;
const NAMES = ['one', 'two', 'three'] as const;

interface Launch {
  readonly name: string;
  readonly user: string;
  readonly gpus: number;
}

/** What befalls a lab. `asked`: a launch that SkyPilot asks about, and that begins so many seconds later, or never. */
type Step =
  | (Launch & { readonly kind: 'asked'; readonly later: number | null })
  | (Launch & { readonly kind: 'wild' })
  | { readonly kind: 'stop' | 'start' | 'down'; readonly name: string }
  | { readonly kind: 'pass'; readonly seconds: number }
  | { readonly kind: 'poll' | 'failing' };

const name = fc.constantFrom(...NAMES);
const gpus = fc.integer({ min: 1, max: 4 });
const user = fc.constantFrom('a1b2c3d4', 'ffff0000');

export const histories = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('asked' as const),
        name,
        user,
        gpus,
        later: fc.option(fc.integer({ min: 0, max: GRACE })),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('wild' as const), name, user, gpus }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('stop', 'start', 'down'), name }) },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('pass' as const),
        seconds: fc.integer({ min: 1, max: 5000 }),
      }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('poll', 'failing') }) },
  ),
  { minLength: 5, maxLength: 30 },
) as fc.Arbitrary<Step[]>;

const BUDGET = 20;

/** Plays a history, and compares the ledger with what SkyPilot really did. */
export async function play(history: readonly Step[], setup: LabSetup = {}): Promise<void> {
  const options = { usage_budget_hold: HOLD, usage_budget_grace: GRACE };
  const lab = await openLab({ ...setup, budget: String(BUDGET), options });
  let reported = false;
  const used = () => lab.api.used('ml', ({ accelerators }) => accelerators?.A100 ?? 0) / 3600;
  const launch = ({ name, user, gpus }: Launch) =>
    lab.api.launch({ name, workspace: 'ml', user, accelerators: { A100: gpus } });
  const poll = async () => {
    const { changes } = await lab.poll();
    expect(changes.filter(({ error }) => error !== undefined)).toEqual([]);
    reported ||= changes.some(({ settlement }) => settlement?.exceeded !== undefined);
    // What was used is charged, and beyond the budget nothing is used without a word.
    const taken = await lab.taken();
    const truth = used();
    expect(taken).toBeGreaterThanOrEqual(truth - 1e-9);
    expect(reported || truth <= BUDGET).toBe(true);
  };
  try {
    for (const step of history) {
      switch (step.kind) {
        case 'asked': {
          const { name: cluster, user } = step;
          const { allowed, failed } = await lab.ask({ user, cluster, gpus: `A100:${step.gpus}` });
          expect(failed).toBe(false);
          if (allowed && step.later !== null) {
            lab.pass(step.later);
            launch(step);
          }
          break;
        }
        case 'wild':
          launch(step);
          break;
        case 'pass':
          lab.pass(step.seconds);
          break;
        case 'poll':
          await poll();
          break;
        case 'failing':
          lab.api.disturb = (response) => response.writeHead(503).end().writableEnded;
          await expect(lab.poll()).rejects.toThrow();
          lab.api.disturb = undefined;
          break;
        default:
          lab.api[step.kind](step.name);
      }
    }
    for (const one of NAMES) {
      lab.api.down(one);
    }
    lab.pass(HOLD + GRACE);
    await poll();
    await lab.verify();
    expect(await lab.taken()).toBeCloseTo(used(), 9);
  } finally {
    await lab.close();
  }
}
