/** The objects of an exported policy, and the places of a pod's fields in them. */
import {
  ACCOUNT_FIELDS,
  DAEMON_SET_CONTROLLER,
  MIRROR,
  SCHEDULING_FIELDS,
} from '../admission/pod-admission.ts';
import { AFFINITY_TIMES } from '../policies/documents/policy-schema.ts';
import { PLACES, type Place } from '../policies/rules/expression-rules.ts';
import { IS_NODE_NAME, termsAt } from './affinity-conditions.ts';
import { and, atom, type Cel, every, FALSE, listOf, literal, not, or, relation, some } from './cel.ts';
import { isExactly } from './toleration-conditions.ts';

const [REQUIRED] = AFFINITY_TIMES;

/** `bindings` have no pod: they name a node. */
export const SUBJECTS = ['pods', 'daemonsets', 'bindings'] as const;
export type Subject = (typeof SUBJECTS)[number];

export interface Variable {
  readonly name: string;
  readonly expression: string;
}

export interface ClusterTolerations {
  readonly systemTolerations: readonly string[];
  readonly daemonSetTolerations: readonly string[];
}

const SPEC = { pods: 'object.spec', daemonsets: 'object.spec.template.spec' } as const;
type WithPod = keyof typeof SPEC;

export function serviceAccountVariable(subject: WithPod): Variable {
  const [name, older] = ACCOUNT_FIELDS.map((field) => `${SPEC[subject]}.${field}`) as [string, string];
  const isSaid = (field: string) => `has(${field}) && ${field} != ''`;
  return {
    name: 'serviceAccount',
    expression: `${isSaid(name)} ? ${name} : ${isSaid(older)} ? ${older} : 'default'`,
  };
}

/** The parts of a pod that rules use. Each one may use only those before it. */
export function podVariables(
  subject: WithPod,
  { systemTolerations, daemonSetTolerations }: ClusterTolerations,
): Variable[] {
  const spec = SPEC[subject];
  const field = (name: string, none: string) => ({
    name,
    expression: `has(${spec}.${name}) ? ${spec}.${name} : ${none}`,
  });
  const isPod = subject === 'pods';
  return [
    field('schedulerName', "''"),
    field('priorityClassName', "''"),
    isPod ? newNodeName(spec) : field('nodeName', "''"),
    field('nodeSelector', '{}'),
    field('topologySpreadConstraints', '[]'),
    { name: 'affinity', expression: `has(${spec}.affinity) ? dyn(${spec}.affinity) : dyn({})` },
    { name: 'isForOneNode', expression: isPod ? isForOneNode().text : 'false' },
    ...PLACES.map(termsVariable),
    { name: 'isOfTemplate', expression: isOfTemplate().text },
    {
      name: 'tolerations',
      expression: `(has(${spec}.tolerations) ? ${spec}.tolerations : []).filter(t, ${
        not(or(isExactly(systemTolerations), isPod ? isOfDaemonSet(daemonSetTolerations) : FALSE)).text
      })`,
    },
  ];
}

/** A node assigned by a scheduler was not requested. */
function newNodeName(spec: string): Variable {
  const isOld = `request.operation == 'UPDATE' && has(oldObject.spec.nodeName) && oldObject.spec.nodeName == ${spec}.nodeName`;
  return {
    name: 'nodeName',
    expression: `has(${spec}.nodeName) && !(${isOld}) ? ${spec}.nodeName : ''`,
  };
}

const IS_BY_CONTROLLER = relation(`request.userInfo.username == ${literal(DAEMON_SET_CONTROLLER)}`);

/** The DaemonSet controller wrote the affinity, or it is unchanged since. */
function isForOneNode(): Cel {
  const before = '(has(oldObject.spec.affinity) ? dyn(oldObject.spec.affinity) : dyn({}))';
  return or(
    IS_BY_CONTROLLER,
    and(relation("request.operation == 'UPDATE'"), relation(`variables.affinity == ${before}`)),
  );
}

function isOfDaemonSet(written: readonly string[]): Cel {
  return and(
    isExactly(written),
    or(
      IS_BY_CONTROLLER,
      and(
        relation("request.operation == 'UPDATE'"),
        atom('has(oldObject.spec.tolerations)'),
        some('oldObject.spec.tolerations', 'before', relation('before == t')),
      ),
    ),
  );
}

function termsVariable(place: Place): Variable {
  const { kind, time } = place;
  const ofKind = `variables.affinity.${kind}`;
  const ofTime = `${ofKind}.${time}`;
  const there = [`has(${ofKind})`, `has(${ofTime})`];
  const name = termsAt(place).replace('variables.', '');
  if (kind !== 'nodeAffinity') {
    return { name, expression: `${there.join(' && ')} ? ${ofTime} : []` };
  }
  return time === REQUIRED
    ? {
        name,
        expression: `${[...there, `has(${ofTime}.nodeSelectorTerms)`].join(' && ')} ? ${ofTime}.nodeSelectorTerms : []`,
      }
    : { name, expression: `${there.join(' && ')} ? ${ofTime}.map(p, p.preference) : []` };
}

/** Whether the DaemonSet controller replaced the template's required affinity by the node's name. */
function isOfTemplate(): Cel {
  const terms = termsAt({ kind: 'nodeAffinity', time: REQUIRED });
  const isName = and(
    or(not(atom('has(t.matchExpressions)')), relation('t.matchExpressions.size() == 0')),
    atom('has(t.matchFields)'),
    relation('t.matchFields.size() == 1'),
    every('t.matchFields', 'e', IS_NODE_NAME),
  );
  return and(atom('variables.isForOneNode'), relation(`${terms}.size() > 0`), every(terms, 't', isName));
}

export interface MatchCondition {
  readonly name: string;
  readonly expression: string;
}

/** The requests that need no policy. */
export function matchConditions(subject: Subject, schedulers: readonly string[]): MatchCondition[] {
  if (subject === 'bindings') {
    const isScheduler = relation(`request.userInfo.username in ${listOf(schedulers)}`);
    return [{ name: 'not-by-a-scheduler', expression: not(isScheduler).text }];
  }
  const changes = [...SCHEDULING_FIELDS, ...ACCOUNT_FIELDS].map((field) => changed(SPEC[subject], field));
  const canMove = {
    name: 'can-move-a-pod',
    expression: or(relation("request.operation != 'UPDATE'"), ...changes).text,
  };
  return subject === 'pods' ? [canMove, NOT_A_MIRROR] : [canMove];
}

function changed(spec: string, field: string): Cel {
  const now = `${spec}.${field}`;
  const before = `${spec.replace('object', 'oldObject')}.${field}`;
  return or(
    relation(`has(${now}) != has(${before})`),
    and(atom(`has(${now})`), relation(`${now} != ${before}`)),
  );
}

/** The kubelet reports a static pod, which runs whatever the answer. Others cannot create one for its node. */
export const NOT_A_MIRROR: MatchCondition = {
  name: 'not-reported-by-the-kubelet',
  expression: not(
    and(
      atom('has(object.metadata.annotations)'),
      relation(`${literal(MIRROR)} in object.metadata.annotations`),
      atom('has(object.spec.nodeName)'),
      relation("request.userInfo.username == 'system:node:' + object.spec.nodeName"),
      atom('has(request.userInfo.groups)'),
      relation("'system:nodes' in request.userInfo.groups"),
    ),
  ).text,
};
