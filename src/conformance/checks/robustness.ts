/** An invalid request must neither bring the service down nor be allowed. */
import type { Check, Finding, Run } from '../check.ts';
import { expectAnswerTo, expectComplaint } from '../expectations.ts';
import { SOURCE } from '../sources.ts';
import { askAgain } from './alive.ts';

const PROTOCOL =
  'Blazar sends JSON objects. The service answers anything else with a status below 500, because the mistake is not its own, and never allows a request that it cannot read. It keeps running.';
const SOURCES = [SOURCE.clientErrors, SOURCE.keepInMind];

/** Bodies by what they are. */
const BODIES = {
  'invalid-json': { 'a body that is not JSON': '{"context": {', 'a body that is text': 'lease=run-7' },
  'empty-body': { 'an empty body': '' },
  'not-an-object': { 'the JSON null': 'null', 'a list': '[]', 'a text in JSON': '"lease"' },
} as const satisfies Readonly<Record<string, Readonly<Record<string, string>>>>;

const TITLES: Readonly<Record<keyof typeof BODIES, string>> = {
  'invalid-json': 'invalid JSON is not allowed, causes no server error, and does not stop the service',
  'empty-body': 'an empty body is not allowed, causes no server error, and does not stop the service',
  'not-an-object':
    'JSON that is not an object is not allowed, causes no server error, and does not stop the service',
};

export const robustnessChecks: readonly Check[] = (Object.keys(BODIES) as (keyof typeof BODIES)[]).map(
  (id) => ({
    id,
    title: TITLES[id],
    protocol: PROTOCOL,
    sources: SOURCES,
    needs: [],
    run: (run) => goesOn(run, BODIES[id]),
  }),
);

async function goesOn(run: Run, bodies: Readonly<Record<string, string>>): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const operation of run.target.operations) {
    for (const [what, body] of Object.entries(bodies)) {
      findings.push(...expectComplaint(await run.target.send({ operation, what, body })));
    }
  }
  return [...findings, ...expectAnswerTo(await askAgain(run))];
}
