/** What is wrong with whole documents, with roles and bindings: word for word and with its line. */
import { describe } from 'vitest';
import { testMistakes } from './annotated-mistakes.ts';

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
