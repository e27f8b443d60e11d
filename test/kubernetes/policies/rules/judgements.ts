/**
 * Tables of pods and what policies say about them. A case begins with `== its name`. `- ` is the spec of a policy: of `a`, `b`, …, or
 * `example 15` of the proposal, or `none`. `> ` is the spec of a pod, and each `! ` after it a reason why it is refused; `!` alone is
 * a reason of any wording, and `x ` a pod that is refused for one such reason. `= ` is what its spec has after the review.
 */
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import type { MergeStrategy } from '../../../../src/kubernetes/policies/merge.ts';
import { pod, policy, proposalPolicies, reasonsOf, review } from '../../../support/scheduling-policies.ts';

interface Judgement {
  readonly policies: readonly string[];
  readonly asked: string;
  readonly reasons: string[];
  becomes?: string;
}

export function testJudgements(cases: string, strategy: MergeStrategy = 'deep'): void {
  const texts = cases.split(/^== /m).slice(1);
  it.each(texts.map((text) => [text.slice(0, text.indexOf('\n')), text.slice(text.indexOf('\n') + 1)]))(
    '%s',
    (_, text) => {
      for (const { policies: specs, asked, reasons, becomes } of judgementsIn(text)) {
        const reviewed = review(specs.flatMap(policiesOf), pod(asked), strategy);
        expect(reasonsOf(reviewed), asked).toEqual(reasons.map((one) => one || expect.any(String)));
        expect(reviewed.allowed, asked).toBe(reasons.length === 0);
        expect(reviewed.pod.spec, asked).toEqual(parse(becomes ?? asked));
      }
    },
  );
}

function judgementsIn(text: string): Judgement[] {
  const judgements: Judgement[] = [];
  let policies: string[] = [];
  let before = '';
  for (const line of text.trim().split('\n')) {
    const [mark = '', rest] = [line.charAt(0), line.slice(2)];
    const last = judgements.at(-1);
    if (mark === '-') {
      policies = before === '-' ? [...policies, rest] : [rest];
    } else if (mark === '>' || mark === 'x') {
      judgements.push({ policies, asked: rest, reasons: mark === 'x' ? [''] : [] });
    } else if (mark === '!' && last !== undefined) {
      last.reasons.push(rest);
    } else if (mark === '=' && last !== undefined) {
      last.becomes = rest;
    } else {
      throw new Error(`no line of such a table: ${line}`);
    }
    before = mark;
  }
  expect(judgements).not.toEqual([]);
  return judgements;
}

function policiesOf(spec: string, index: number) {
  const [, number] = /^example (\d+)$/.exec(spec) ?? [];
  if (number !== undefined) {
    return proposalPolicies(Number(number));
  }
  return spec === 'none' ? [] : [policy('abcd'.charAt(index), spec)];
}
