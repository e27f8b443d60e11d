import { describe } from 'vitest';
import { testJudgements } from './judgements.ts';

describe('the tolerations of the proposal', () => {
  testJudgements(`
== fine-grained
- example 7
> tolerations: [{key: other_key, operator: Exists, effect: NoExecute, tolerationSeconds: 60}]
> tolerations: [{key: mykey, operator: Equal, value: other, effect: NoSchedule}]
! tolerations[0]: expected one that is allowed, got "mykey" Equal "other", "NoSchedule" (scheduling policy example)
> tolerations: [{key: mykey, operator: Equal, value: value}]
! tolerations[0]: expected one that is allowed, got "mykey" Equal "value", every effect (scheduling policy example)
> tolerations: [{key: mykey, operator: Exists, effect: NoSchedule}]
! tolerations[0]: expected one that is allowed, got "mykey" with any value, "NoSchedule" (scheduling policy example)
> tolerations: [{key: other_key, effect: NoExecute}]
! tolerations[0]: expected one that is allowed, got "other_key" Equal "", "NoExecute" (scheduling policy example)
> tolerations: [{key: "", operator: Exists, effect: ""}]
! tolerations[0]: expected one that is allowed, got every key with any value, every effect (scheduling policy example)
`);
});

describe('a toleration', () => {
  testJudgements(`
== is rejected if no policy mentions tolerations, and optional
- {}
> tolerations: [{key: gpu, operator: Exists}]
! tolerations[0]: expected nothing, got "gpu" with any value, every effect (no scheduling policy of the account mentions it)
- none
> {}
> tolerations:
> tolerations: []
== is named by its position
- allowed: {tolerations: [{keys: [gpu]}]}
> tolerations: [{key: gpu, value: a}, {key: x}, {key: gpu, value: b}, {key: y}]
! tolerations[1]: expected one that is allowed, got "x" Equal "", every effect (scheduling policy a)
! tolerations[3]: expected one that is allowed, got "y" Equal "", every effect (scheduling policy a)
`);
});

describe('default tolerations', () => {
  const NOT_READY =
    'key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300';
  const UNREACHABLE = NOT_READY.replace('not-ready', 'unreachable');
  const ADDED =
    '{key: mykey, operator: Equal, value: value, effect: NoSchedule}, {key: mykey, operator: Equal, value: other_value, effect: NoSchedule}, {key: other_key, operator: Exists, effect: NoExecute}';

  testJudgements(`
== are added where a pod has none, one for each value
- example 11
> {}
= tolerations: [${ADDED}]
== are not added twice
- default: {tolerations: [{${UNREACHABLE}}, {key: gpu}]}
> tolerations: [{${NOT_READY}}, {${UNREACHABLE}}]
= tolerations: [{${NOT_READY}}, {${UNREACHABLE}}, {key: gpu}]
- default: {tolerations: [{key: gpu, values: [a, b, a]}, {key: gpu, value: b}]}
> {}
= tolerations: [{key: gpu, value: a}, {key: gpu, value: b}]
`);
});

describe('required tolerations', () => {
  const GPU = 'tolerations: [{keys: [gpu], operators: [Exists], effects: [NoSchedule]}]';
  const gpu = '{key: gpu, operator: Exists, effect: NoSchedule}';

  testJudgements(`
== must be present, and are allowed
- required: {${GPU}}
> tolerations: [${gpu}]
> tolerations: []
! tolerations: expected gpu Exists, NoSchedule, which is required (scheduling policy a)
x tolerations:
== are met by one that satisfies one of them
- required: {tolerations: [{keys: [gpu]}, {keys: [spot], operators: [Equal], values: ["1"]}]}
> tolerations: [{key: spot, value: "1"}]
> tolerations: [${gpu}]
> tolerations: [{key: spot, value: "2"}]
! tolerations[0]: expected one that is allowed, got "spot" Equal "2", every effect (scheduling policy a)
! tolerations: expected gpu, any effect or spot Equal 1, any effect, which is required (scheduling policy a)
`);
});
