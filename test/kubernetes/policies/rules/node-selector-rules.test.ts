import { describe, expect, it } from 'vitest';
import { reasonsFor } from '../../../support/scheduling-policies.ts';
import { testJudgements } from './judgements.ts';

const ARCH = 'beta.kubernetes.io/arch';
const REGION = 'failure-domain.beta.kubernetes.io/region';

describe('the complete policy of the proposal', () => {
  testJudgements(`
== refuses all else, and names each label that is wrong
- example 15
> nodeSelector: {${ARCH}: ""}
! nodeSelector ${ARCH}: expected amd64 or arm64, got "" (scheduling policy example)
> nodeSelector: {rack: "7"}
! nodeSelector rack: expected nothing, got "7"; allowed labels: ${ARCH}, disk and ${REGION} (scheduling policy example)
> nodeSelector: {${ARCH}: x, disk: y}
! nodeSelector ${ARCH}: expected amd64 or arm64, got "x" (scheduling policy example)
! nodeSelector disk: expected ssd or hdd, got "y" (scheduling policy example)
`);
});

describe('node selectors that are allowed', () => {
  testJudgements(`
== are rejected if no policy mentions them
- {}
> nodeSelector: {disk: ssd}
! nodeSelector disk: expected nothing, got "ssd" (no scheduling policy of the account mentions it)
`);

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'do not hold what every object has: %s',
    (label) => {
      const nodeSelector = JSON.parse(`{"${label}": "x"}`) as unknown;
      expect(reasonsFor({ nodeSelector }, 'allowed: {nodeSelectors: {disk: [ssd]}}')).toEqual([
        `nodeSelector ${label}: expected nothing, got "x"; allowed labels: disk (scheduling policy a)`,
      ]);
      expect(reasonsFor({ nodeSelector }, 'allowed: {nodeSelectors: {}}')).toEqual([]);
    },
  );
});

describe('node selectors that are required', () => {
  testJudgements(`
== are each reported by name if missing
- required: {nodeSelectors: {disk: [ssd, hdd], zone: []}}
> {}
! nodeSelector disk: expected ssd or hdd, got nothing (scheduling policy a)
! nodeSelector zone: expected a value, got nothing (scheduling policy a)
== allow no other label, and the message names the policy that requires
- required: {nodeSelectors: {disk: [ssd]}}
> nodeSelector: {disk: ssd, rack: "7"}
! nodeSelector rack: expected nothing, got "7"; allowed labels: disk (scheduling policy a)
`);
});
