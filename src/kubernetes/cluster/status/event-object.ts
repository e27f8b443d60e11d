/** Events as `kubectl describe` shows them. Source: Kubernetes API, core/v1, Event. */
import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { COMPONENT } from './contract.ts';
import { shownText } from './text.ts';
import { seconds } from './written-status.ts';

export const MINUTE_MS = 60_000;
/** Names have at most 253 characters, of which a dot and the hash take 17. */
const MOST_OF_NAME = 230;

/** The object that an event is about. */
export interface Involved {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  /** `undefined` = the object has none. */
  readonly namespace: string | undefined;
}

export interface EventDraft {
  readonly involved: Involved;
  /** Of the event: that of the object, or `default` for an object without one. */
  readonly namespace: string;
  readonly reason: string;
  readonly message: string;
  readonly at: Date;
}

/**
 * core/v1 and not events.k8s.io/v1: every kubectl shows when it happened. The name is the same for all replicas within a minute of the
 * clock, so that the API server accepts one of them.
 */
export function eventObject({ involved, namespace, reason, message, at }: EventDraft): object {
  const minute = Math.floor(at.getTime() / MINUTE_MS);
  const hash = createHash('sha256').update(`${involved.uid} ${reason} ${minute}`).digest('hex').slice(0, 16);
  const time = seconds(at);
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${nameStart(involved.name)}.${hash}`, namespace },
    involvedObject: involved,
    type: 'Warning',
    reason,
    message: shownText(message),
    count: 1,
    firstTimestamp: time,
    lastTimestamp: time,
    source: { component: COMPONENT },
    reportingComponent: COMPONENT,
    reportingInstance: hostname(),
  };
}

function nameStart(name: string): string {
  return name.slice(0, MOST_OF_NAME).replace(/[.-]+$/, '');
}
