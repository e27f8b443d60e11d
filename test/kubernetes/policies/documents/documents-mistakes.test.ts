/** What is wrong with a policy, word for word and with its line. */
import { describe } from 'vitest';
import { testMistakes } from './annotated-mistakes.ts';

describe('a section of a policy is refused that has', () => {
  testMistakes(`
=s no required names
  required:
    schedulerNames: []
#! spec.required.schedulerNames: expected at least one name, because nothing satisfies an empty list, got an empty list
    priorityClassNames: []
#! spec.required.priorityClassNames: expected at least one name, because nothing satisfies an empty list, got an empty list
=s no required labels, and no required kinds of affinity
  required:
    nodeSelectors: {}
#! spec.required.nodeSelectors: expected at least one label, got an empty mapping
    affinities: {}
#! spec.required.affinities: expected at least one kind of affinity, got an empty mapping
=s both spellings of names
  required: {schedulerNames: [a],
    SchedulerNames: [a]}
#! spec.required.SchedulerNames: expected nothing, because schedulerNames is set too, got a list of 1
  allowed: {priorityClassNames: [], priorityClasseNames: []}
#! spec.allowed.priorityClasseNames: expected nothing, because priorityClassNames is set too, got an empty list
  default: {schedulerName: a, SchedulerName: a, priorityClassName: b, priorityClasseName: b}
#! spec.default.SchedulerName: expected nothing, because schedulerName is set too, got "a"
#! spec.default.priorityClasseName: expected nothing, because priorityClassName is set too, got "b"
=s both spellings of affinities
  allowed: {affinities: {}}
  allowedAffinities: {}
#! spec.allowedAffinities: expected nothing, because allowed.affinities is set too, got an empty mapping
=s what is no list
  required: {schedulerNames: a}
#! spec.required.schedulerNames: expected a list, got "a"
  allowed: {nodeSelectors: {a: b}}
#! spec.allowed.nodeSelectors.a: expected a list, got "b"
=s what is no text
  required: {schedulerNames: [1]}
#! spec.required.schedulerNames[0]: expected a string, got 1
  default: {nodeSelector: {a: yes, b: 012}}
#! spec.default.nodeSelector.a: expected a string, got true
#! spec.default.nodeSelector.b: expected a string, got 10
=s a label without a name
  allowed: {nodeSelectors: {"": [a]}}
#! spec.allowed.nodeSelectors: expected a label name, got ""
=s a word that is none of those
  allowed: {tolerations: [{operators: [exists],
#! spec.allowed.tolerations[0].operators[0]: expected one of Equal, Exists, Lt, Gt, got "exists"
    effects: [Noschedule]}]}
#! spec.allowed.tolerations[0].effects[0]: expected one of NoSchedule, PreferNoSchedule, NoExecute, got "Noschedule"
=s a long text
  allowed: {tolerations: [{effects: [xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx]}]}
#! spec.allowed.tolerations[0].effects[0]: expected one of NoSchedule, PreferNoSchedule, NoExecute, got "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"
`);
});

describe('a field that nobody knows', () => {
  testMistakes(`
=s has a nearest name
  reqired: {}
#! spec.reqired: unknown field; the nearest right name is "required"
  required: {schedulerName: [a]}
#! spec.required.schedulerName: unknown field; the nearest right name is "schedulerNames"
  default: {schedulerNames: a,
#! spec.default.schedulerNames: unknown field; the nearest right name is "schedulerName"
    affinities: {}}
#! spec.default.affinities: unknown field; the nearest right name is "affinity"
=s is not led to a spelling of the draft
  allowedAffinity: {}
#! spec.allowedAffinity: unknown field
  allowed: {priorityClasseName: [], schedulernames: []}
#! spec.allowed.priorityClasseName: unknown field; the nearest right name is "priorityClassNames"
#! spec.allowed.schedulernames: unknown field; the nearest right name is "schedulerNames"
== stands beside the spec
kind: SchedulingPolicy
Spec: {}
#! Spec: unknown field; the nearest right name is "spec"
spec: {}
states: {}
#! states: unknown field; the nearest right name is "status"
=s is a kind of affinity, nested too deep
  allowed:
    affinities:
      nodeAffinities:
        podAffinities: {}
#! spec.allowed.affinities.nodeAffinities.podAffinities: nested too deep: it belongs under spec.allowed.affinities
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - nodeAffinities: {}
#! spec.allowed.affinities.nodeAffinities.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].nodeAffinities: nested too deep: it belongs under spec.allowed.affinities
  allowedAffinities: {podAffinities: {podAntiAffinities: {}}}
#! spec.allowedAffinities.podAffinities.podAntiAffinities: nested too deep: it belongs under spec.allowedAffinities
#! spec.allowedAffinities: expected nothing, because allowed.affinities is set too, got a mapping
=s is finer than affinities to pods can be
  allowed: {affinities: {podAffinities: {preferredDuringSchedulingIgnoredDuringExecution: {labelSelector: {}}}}}
#! spec.allowed.affinities.podAffinities.preferredDuringSchedulingIgnoredDuringExecution.labelSelector: unknown field; only {} is possible here, and it allows everything
=s has a name that every object has
  constructor: 1
#! spec.constructor: unknown field
  allowed: {toString: 1, hasOwnProperty: 2}
#! spec.allowed.toString: unknown field
#! spec.allowed.hasOwnProperty: unknown field
== is "__proto__", wherever it is
kind: SchedulingPolicy
metadata: {name: a}
spec:
  allowed:
    nodeSelectors:
      __proto__: [a]
#! spec.allowed.nodeSelectors.__proto__: this key is not allowed
---
__proto__: {kind: Role}
#! __proto__: this key is not allowed
---
kind: List
items:
- {a: [{__proto__: 1}]}
#! items[0].a[0].__proto__: this key is not allowed
`);
});

describe('a default is refused that has other than one of its', () => {
  testMistakes(`
=s no values where the operator needs some
  default:
    affinity:
      nodeAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions:
            - {key: a, operator: In}
#! spec.default.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]: expected values, because the operator is In, got a mapping
            - {keys: [a], operators: [NotIn],
               values: []}
#! spec.default.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[1].values: expected values, because the operator is NotIn, got an empty list
            - {key: a, operator: Exists}
            - {key: a, operator: In, values: [""]}
=s keys and operators
  default:
    affinity:
      nodeAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions:
            - keys: [a, b]
#! spec.default.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].keys: expected exactly one key, because a default is added to the pod, got a list of 2
              operators: [In, NotIn]
#! spec.default.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operators: expected exactly one operator, because a default is added to the pod, got a list of 2
              values: [x]
            - operator: Exists
#! spec.default.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[1]: expected a mapping with key, got a mapping
            - keys: [a]
#! spec.default.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[2]: expected a mapping with operator, got a mapping
            - {key: a, operator: Exists,
              keys: [a],
#! spec.default.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[3].keys: expected nothing, because key is set too, got a list of 1
              operators: [Exists]}
#! spec.default.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[3].operators: expected nothing, because operator is set too, got a list of 1
            - {key: a, operator: Equal}
#! spec.default.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[4].operator: expected one of In, NotIn, Exists, DoesNotExist, Gt, Lt, got "Equal"
            - {key: "", operator: In, values: [1]}
#! spec.default.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[5].key: expected a non-empty string, got ""
#! spec.default.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[5].values[0]: expected a string, got 1
=s a toleration with both value and values
  default: {tolerations: [{key: a, value: b,
    values: [b]}]}
#! spec.default.tolerations[0].values: expected nothing, because value is set too, got a list of 1
=s values beside Exists
  default: {tolerations: [{operator: Exists, value: b}, {operator: Exists, values: [b]}]}
#! spec.default.tolerations[0].value: expected nothing, because the operator is Exists, got "b"
#! spec.default.tolerations[1].values: expected nothing, because the operator is Exists, got a list of 1
=s no values, no key, or other types
  default:
    tolerations:
    - values: []
#! spec.default.tolerations[0].values: expected at least one, got an empty list
    - key: ""
#! spec.default.tolerations[1].key: expected a non-empty string, got ""
    - tolerationSeconds: 1.5
#! spec.default.tolerations[2].tolerationSeconds: expected a whole number of seconds, got 1.5
    - {keys: [a], effects: []}
#! spec.default.tolerations[3].keys: unknown field; the nearest right name is "key"
#! spec.default.tolerations[3].effects: unknown field; the nearest right name is "effect"
=s affinities to pods without what they need
  default:
    affinity:
      podAffinity:
        requiredDuringSchedulingIgnoredDuringExecution: []
#! spec.default.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution: expected at least one, got an empty list
        preferredDuringSchedulingIgnoredDuringExecution:
        - {weight: 0, podAffinityTerm: {topologyKey: ""}}
#! spec.default.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: expected a weight from 1 to 100, got 0
#! spec.default.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey: expected a non-empty string, got ""
        - {weight: 101, podAffinityTerm: {}}
#! spec.default.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[1].weight: expected a weight from 1 to 100, got 101
#! spec.default.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[1].podAffinityTerm.topologyKey: expected a string
`);
});
