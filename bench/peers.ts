/**
 * Implements the same rule in other engines: leases up to a limit that depends on the project, and one exempt
 * project.
 */
import { type CreateRequest, UsageEnforcement } from '../src/index.ts';
import { casbin, cedar, seconds } from './engines.ts';
import type { Comparison, Subject, Suite } from './harness/suite.ts';
import { CAPTURED_SECONDS, capturedRequests, withLease } from './requests.ts';

const GENERAL_LIMIT = CAPTURED_SECONDS;
const LARGE_PROJECT = '9a1c5b1f5d7a4c0c8a6f0d6b7f3e2d10';
const LARGE_LIMIT = 604_800;
const EXEMPT_PROJECT = '3d9b1f0c6a774f3fb1d5b0a1c2e4f697';

/** Decides a request in the engine's own format: conversions for the bench are not timed. */
type Answer = boolean | { readonly allowed: boolean };

/** An engine with the rule. */
type Decide = (request: CreateRequest) => Answer | Promise<Answer>;

const engines: Readonly<Record<string, () => Promise<Decide>>> = {
  async 'blazar-enforcement'() {
    const enforcement = await UsageEnforcement.load({
      environment: {},
      values: {
        enforcement: {
          enabled_filters: ['MaxLeaseDurationFilter'],
          max_lease_duration: GENERAL_LIMIT,
          max_lease_duration_project_limits: { [LARGE_PROJECT]: LARGE_LIMIT },
          max_lease_duration_exempt_project_ids: [EXEMPT_PROJECT],
        },
      },
    });
    return (request) => enforcement.checkCreate(request);
  },

  'cedar-wasm': () =>
    cedar(`
      permit (principal == Project::"${EXEMPT_PROJECT}", action, resource);
      permit (principal, action, resource) when {
        context.end - context.start <=
          (if principal == Project::"${LARGE_PROJECT}" then ${LARGE_LIMIT} else ${GENERAL_LIMIT})
      };`),
  ...casbin(casbinEnforcer),
};

async function casbinEnforcer() {
  const { newEnforcer, newModelFromString, StringAdapter } = await import('casbin');
  const model = newModelFromString(`
    [request_definition]
    r = context, lease
    [policy_definition]
    p = project, limit
    [policy_effect]
    e = some(where (p.eft == allow))
    [matchers]
    m = p.project == limitedAs(r.context.project_id) && (p.limit == "-1" || seconds(r.lease) <= p.limit)
  `);
  const policies = `
    p, ${EXEMPT_PROJECT}, -1
    p, ${LARGE_PROJECT}, ${LARGE_LIMIT}
    p, *, ${GENERAL_LIMIT}
  `;
  const enforcer = await newEnforcer(model, new StringAdapter(policies));
  await enforcer.addFunction('limitedAs', (project: string) =>
    project === EXEMPT_PROJECT || project === LARGE_PROJECT ? project : '*',
  );
  await enforcer.addFunction(
    'seconds',
    (lease: CreateRequest['lease']) => seconds(lease.end_date) - seconds(lease.start_date),
  );
  return enforcer;
}

function requestsThatAre(allowed: boolean): CreateRequest[] {
  const end_date = '2027-12-31T00:00:00';
  return capturedRequests().map((request) => (allowed ? request : withLease(request, { end_date })));
}

async function subject(engine: string, allowed: boolean): Promise<Subject> {
  const decide = await engines[engine]?.();
  if (decide === undefined) {
    throw new Error(`there is no engine ${engine}`);
  }
  await proveRule(decide);
  const requests = requestsThatAre(allowed);
  return {
    operations: requests.length,
    async batch() {
      for (const request of requests) {
        const answer = decide(request);
        if (isAllowed(answer instanceof Promise ? await answer : answer) !== allowed) {
          throw new Error(`${engine}: expected allowed = ${allowed}`);
        }
      }
    },
  };
}

function isAllowed(answer: Answer): boolean {
  return typeof answer === 'boolean' ? answer : answer.allowed;
}

/** Verifies that all engines implement the whole rule. */
async function proveRule(decide: Decide): Promise<void> {
  const [request] = capturedRequests();
  if (request === undefined) {
    throw new Error('there is no request');
  }
  const cases = [
    { project: request.context.project_id, end_date: '2026-12-03T09:00:00', allowed: true },
    { project: request.context.project_id, end_date: '2026-12-03T09:00:01', allowed: false },
    { project: LARGE_PROJECT, end_date: '2026-12-08T09:00:00', allowed: true },
    { project: LARGE_PROJECT, end_date: '2026-12-08T09:00:01', allowed: false },
    { project: EXEMPT_PROJECT, end_date: '2027-12-01T09:00:00', allowed: true },
  ];
  for (const { project, end_date, allowed } of cases) {
    const context = { ...request.context, project_id: project };
    if (isAllowed(await decide({ ...withLease(request, { end_date }), context })) !== allowed) {
      throw new Error(`expected allowed = ${allowed} for ${project} until ${end_date}`);
    }
  }
}

const ANSWERS = ['allowed', 'rejected'] as const;

export const suite: Suite = {
  name: 'peers',
  file: import.meta.url,
  rounds: 9,
  turnMilliseconds: 60,
  subjects: Object.fromEntries(
    Object.keys(engines).flatMap((engine) =>
      ANSWERS.map((answer) => [`${engine}, ${answer}`, () => subject(engine, answer === 'allowed')]),
    ),
  ),
  comparisons: Object.keys(engines)
    .filter((engine) => engine !== 'blazar-enforcement')
    .flatMap((engine) =>
      ANSWERS.map(
        (answer): Comparison => ({
          name: `${engine}, ${answer}`,
          measured: `blazar-enforcement, ${answer}`,
          comparedWith: `${engine}, ${answer}`,
          of: 'rate',
          // The target compares with the method in casbin's documentation, and with a promise, since ours
          // returns one.
          ...(engine !== 'casbin, enforceSync' && { target: { atLeast: 5 } }),
        }),
      ),
    ),
  notes: [
    'The rule: the maximum length of a lease depends on its project, with a general limit for the others; one project is exempt. Every engine is verified with five requests before it is timed. It decides on the parsed request with dates as strings, on 64 different days.',
    'cedar-wasm: its policy set is parsed beforehand (preparsePolicySet, statefulIsAuthorized, no schema, no entities), and both dates are converted to numbers outside, because its own datetime type is slower. Most of the time goes into passing the request to WebAssembly and the result back.',
    'casbin: ABAC, limits as policies, two functions in the matcher, one enforcer for all. `enforce` is the call that its documentation teaches; enforceSync does the same without promises. A limit in the matcher would save the search through the policies, a third of the time; a single function for everything would leave nothing for casbin to do.',
    'The other engines return a boolean. Ours validates the request, and returns the reason, the time of each filter and the lease; a rejection has its durations in words.',
  ],
};
