import { describe, expect, it } from 'vitest';
import { Findings, type Judged } from '../../../../src/kubernetes/cluster/scan/findings.ts';

const judged = (parts: Partial<Judged>): Judged => ({
  source: 'pod',
  namespace: 'shop',
  name: 'web',
  owner: undefined,
  user: 'u',
  policies: [],
  reasons: [],
  ...parts,
});
const because = (expectation: string) => [{ field: 'f', expectation, policies: [] }];
const owner = { kind: 'Job', name: 'sum' };

describe('findings', () => {
  it('have one refusal for pods of an owner with the same reasons, and names of the first', () => {
    const findings = new Findings();
    for (let number = 0; number < 500; number += 1) {
      findings.add(judged({ name: `p${number}`, owner, reasons: because(number % 2 === 0 ? 'a' : 'b') }));
    }
    expect(findings.refusals.map(({ count, names }) => ({ count, names }))).toEqual([
      { count: 250, names: ['p0', 'p2', 'p4', 'p6', 'p8'] },
      { count: 250, names: ['p1', 'p3', 'p5', 'p7', 'p9'] },
    ]);
  });

  it('count what they do not list', () => {
    const findings = new Findings(2);
    for (let number = 0; number < 10; number += 1) {
      findings.add(judged({ name: `p${number}`, reasons: because('a') }));
      findings.add(judged({ name: 'p0', owner, reasons: because(`reason ${number}`) }));
    }
    for (let number = 0; number < 30; number += 1) {
      findings.add(judged({ owner, reasons: because(`other ${number}`) }));
    }
    expect(findings.owners).toHaveLength(2);
    expect(findings.counts).toMatchObject({ pods: 50, refusedPods: 50 });
    const listed = findings.refusals.reduce((sum, { count }) => sum + count, 0);
    expect(listed + findings.unlisted).toBe(50);
  });
});
