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

describe('a document is refused', () => {
  testMistakes(`
=s with a spec of null, or of another type
#! spec: expected a mapping, got null
---
@SchedulingPolicy {name: b}
spec: []
#! spec: expected a mapping, got an empty list
== of another version
apiVersion: v1
#! apiVersion: expected one of extensions/v1alpha1, scheduling.blazar-enforcement/v1alpha1, extensions/valpha1, got "v1"
kind: SchedulingPolicy
spec: {}
---
apiVersion: rbac.authorization.k8s.io/v1beta1
#! apiVersion: expected rbac.authorization.k8s.io/v1, got "rbac.authorization.k8s.io/v1beta1"
kind: ClusterRole
metadata: {name: c}
---
kind: ClusterRole
#! apiVersion: expected rbac.authorization.k8s.io/v1
metadata: {name: d}
== of a kind that is not read
kind: SchedulingPolcy
#! kind: expected one of SchedulingPolicy, Role, ClusterRole, RoleBinding, ClusterRoleBinding, List, got "SchedulingPolcy"; the nearest right name is "SchedulingPolicy"
---
kind: [a]
#! kind: expected one of SchedulingPolicy, Role, ClusterRole, RoleBinding, ClusterRoleBinding, List, got a list of 1
== that is no mapping
- a
#! expected a mapping with kind
---
~
#! expected a mapping with kind
== of RBAC in the spelling of the draft
apiVersion: rbac.authorization.k8s.io/v1
#! kind: expected a string
Kind: ClusterRole
#! Kind: unknown field; the nearest right name is "kind"
metadata: {name: a}
=s that says something twice, since of these only the last would count
  required: {schedulerNames: [a]}
  required:
#! required: duplicate key
    nodeSelectors: {a: [b], "a": [c]}
#! a: duplicate key
== whose name is none
kind: SchedulingPolicy
spec: {}
metadata: {name: 123}
#! metadata.name: expected a string, got 123
---
@ClusterRole {name: ""}
#! metadata.name: expected a name, got ""
---
kind: SchedulingPolicy
metadata: []
#! metadata: expected a mapping, got an empty list
spec: {}
---
kind: SchedulingPolicy
spec: []
#! spec: expected a mapping, got an empty list
metadata: {name: b}
== in a list, and the others are read
kind: List
items:
- kind: SchedulingPolicy
  metadata: {name: a}
  spec: {x: 1}
#! spec.x: unknown field
- kind: SchedulingPolicy
  metadata: {name: a}
#! metadata.name: duplicate name: a SchedulingPolicy of this name is defined at p.yaml:3
  spec:
    required: {schedulerNames: []}
#! spec.required.schedulerNames: expected at least one name, because nothing satisfies an empty list, got an empty list
== that is a list without items
kind: List
items:
#! items: expected a list
== twice
@SchedulingPolicy {name: a}
spec:
  allowed: {}
---
# 6
@SchedulingPolicy {name: a}
#! metadata.name: duplicate name: a SchedulingPolicy of this name is defined at p.yaml:1
spec:
  allowed: {}
---
@ClusterRole {name: a}
---
@ClusterRole {name: a}
#! metadata.name: duplicate name: a ClusterRole of this name is defined at p.yaml:13
== twice without a name, since both have that of the file
kind: SchedulingPolicy
spec: {}
---
Kind: SchedulingPolicy
#! metadata.name: duplicate name: a SchedulingPolicy of this name is defined at p.yaml:1
spec: {}
`);
});

describe('a role or a binding is refused', () => {
  testMistakes(`
== without a name or a namespace
apiVersion: rbac.authorization.k8s.io/v1
#! metadata.name: expected a name
kind: Role
rules: []
---
@Role {name: a}
#! metadata.namespace: expected a namespace, because a Role is namespaced
---
@RoleBinding {name: a, namespace: ""}
#! metadata.namespace: expected a namespace, because a RoleBinding is namespaced
roleRef: {kind: Role, name: a}
== with rules of other types
@ClusterRole {name: a}
rules:
- apiGroups: extensions
#! rules[0].apiGroups: expected a list, got "extensions"
  resource: [a]
#! rules[0].resource: unknown field; the nearest right name is "resources"
  verbs: [1]
#! rules[0].verbs[0]: expected a string, got 1
- use
#! rules[1]: expected a mapping, got "use"
---
@ClusterRole {name: b}
rules: {}
#! rules: expected a list, got an empty mapping
rule: []
#! rule: unknown field; the nearest right name is "rules"
== with subjects that are none
@ClusterRoleBinding {name: a}
roleRef: {kind: ClusterRole, name: a}
subjects:
- {kind: user, name: a}
#! subjects[0].kind: expected one of ServiceAccount, User, Group, got "user"
- {kind: User, name: ""}
#! subjects[1].name: expected a non-empty string, got ""
- {kind: Group, name: a, apiGroup: ""}
#! subjects[2].apiGroup: expected rbac.authorization.k8s.io, got ""
- {kind: ServiceAccount, name: a}
#! subjects[3].namespace: expected a string, because a service account is namespaced
- {kind: ServiceAccount, name: a, namespace: ""}
#! subjects[4].namespace: expected a namespace, got ""
== with no role that it can have
@ClusterRoleBinding {name: a}
roleRef: {kind: Role, name: ""}
#! roleRef.kind: expected ClusterRole, got "Role"
#! roleRef.name: expected a non-empty string, got ""
---
apiVersion: rbac.authorization.k8s.io/v1
#! roleRef: expected a mapping
kind: ClusterRoleBinding
metadata: {name: b}
---
@RoleBinding {name: c, namespace: d}
roleRef: {kind: clusterrole, name: a, apiGroup: x}
#! roleRef.apiGroup: expected rbac.authorization.k8s.io, got "x"
#! roleRef.kind: expected one of Role, ClusterRole, got "clusterrole"
`);
});

describe('a reference to nothing is a warning', () => {
  testMistakes(`
== a policy that is not there
@SchedulingPolicy {name: a}
spec:
  allowed: {}
---
@ClusterRole {name: reader}
rules:
- {apiGroups: [extensions], resources: [schedulingpolicies], resourceNames: [a, b,
#? rules[0].resourceNames[1]: there is no SchedulingPolicy "b"
  "*"]}
#? rules[0].resourceNames[2]: there is no SchedulingPolicy "*"; names have no wildcards: omit resourceNames to cover all policies
== a role that is not there
@RoleBinding {name: b, namespace: n}
roleRef: {kind: ClusterRole, name: reader}
#? roleRef.name: there is no ClusterRole "reader"
== a role of another kind or namespace
@ClusterRole {name: reader}
rules:
- {resources: [schedulingpolicies], resourceNames: []}
---
@Role {name: reader, namespace: other}
---
@RoleBinding {name: b, namespace: n}
roleRef: {kind: Role, name: reader}
#? roleRef.name: there is no Role "reader"
== but not a policy that is there and wrong
@SchedulingPolicy {name: a}
spec:
  x: 1
#! spec.x: unknown field
---
@ClusterRole {name: reader}
rules:
- {apiGroups: [extensions], resources: [schedulingpolicies], resourceNames: [a]}
`);
});
