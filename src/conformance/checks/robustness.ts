/** What is no request must not bring the service down, nor be allowed. */
import type { Check, Finding, Run } from '../check.ts';
import { expectAnswerTo, expectComplaint } from '../expectations.ts';
import { SOURCE } from '../sources.ts';
import { askAgain } from './alive.ts';

const PROTOCOL =
  'Blazar sends JSON. Of anything else the service says so with a status below 500, since the mistake is not its own, and an unreadable question is not answered with yes. Then it goes on.';
const SOURCES = [SOURCE.clientErrors, SOURCE.keepInMind];

/** Bodies by what they are. */
const BODIES = {
  'invalid-json': { 'a body that is no JSON': '{"context": {', 'a body that is text': 'lease=run-7' },
  'empty-body': { 'an empty body': '' },
  'not-an-object': { 'the JSON null': 'null', 'a list': '[]', 'a text in JSON': '"lease"' },
} as const satisfies Readonly<Record<string, Readonly<Record<string, string>>>>;

const TITLES: Readonly<Record<keyof typeof BODIES, string>> = {
  'invalid-json': 'invalid JSON is neither allowed nor a fault, and the service goes on',
  'empty-body': 'an empty body is neither allowed nor a fault, and the service goes on',
  'not-an-object': 'JSON that is no object is neither allowed nor a fault, and the service goes on',
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
