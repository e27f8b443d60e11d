/** What the primary and its workers tell each other, over the channel of `node:child_process`. Both are the same version of this program. */
import type { Problem } from '../../errors.ts';
import type { CallEvent, FailedCalls } from '../../http/contract.ts';
import type { OpenedDoor } from '../opened-doors.ts';

/** What all workers must agree on before one of them uses it. */
export type Topic = 'configuration' | 'credentials';

/** What is asked of each worker, or of the primary for all of them. */
export type Question = 'metrics' | 'recent' | 'readiness';

/** What a worker says when it can answer requests. */
export interface Ready {
  /** Of the files that it has read. */
  readonly digest: string;
  /** The number of the configuration, as it was told. */
  readonly generation: number;
  readonly doors: readonly OpenedDoor[];
  readonly tokenForLeases: boolean;
}

/** What a worker has seen of a call to another service, for the circuit breakers of all. */
export interface CallSeen {
  readonly kind: 'call';
  readonly key: string;
  readonly event: CallEvent;
}

export type FromWorker =
  | CallSeen
  | ({ readonly kind: 'ready' } & Ready)
  | { readonly kind: 'beat' }
  /** A connection is its own now; nothing of it has been read before. */
  | { readonly kind: 'accepted'; readonly id: number }
  /** It finishes what is under way and ends, by itself. */
  | { readonly kind: 'leaving' }
  /** A file has changed. */
  | { readonly kind: 'changed'; readonly topic: Topic }
  | { readonly kind: 'prepared'; readonly round: number; readonly digest: string }
  | { readonly kind: 'refused'; readonly round: number; readonly problems: readonly Problem[] }
  /** The verdict of a round is carried out. */
  | { readonly kind: 'settled'; readonly round: number }
  | { readonly kind: 'ask'; readonly id: number; readonly question: Question }
  | { readonly kind: 'answer'; readonly id: number; readonly value: string };

export type ToWorker =
  | CallSeen
  /** With the socket. */
  | { readonly kind: 'connection'; readonly id: number }
  | { readonly kind: 'prepare'; readonly round: number; readonly topic: Topic }
  | { readonly kind: 'take'; readonly round: number }
  | { readonly kind: 'drop'; readonly round: number; readonly problems: readonly Problem[] }
  /** Who serves people. */
  | { readonly kind: 'desk'; readonly number: number; readonly path: string }
  | { readonly kind: 'ask'; readonly id: number; readonly question: Question }
  | { readonly kind: 'answer'; readonly id: number; readonly value: string }
  | { readonly kind: 'stop' };

/** What a worker is, as its primary has started it. */
export interface Place {
  /** 1 is the first. */
  readonly number: number;
  /** How many there are. */
  readonly of: number;
  /** The number of the configuration that the others use; 1 at the start. */
  readonly generation: number;
  /** `http://127.0.0.1:8642` */
  readonly url: string;
  /** A folder that only this user can read, for the sockets between workers. */
  readonly folder: string;
  /** Calls that the others have seen fail. */
  readonly failed: readonly (readonly [string, FailedCalls])[];
}

/** The variable with the place, as JSON. Only a process with a channel to its parent reads it. */
export const PLACE_VARIABLE = 'BLAZAR_ENFORCEMENT_WORKER';
/** The descriptor for lines of the decision log. */
export const LOG_DESCRIPTOR = 4;

/** Where a worker listens for requests of people that others have got. */
export function deskPath(folder: string, pid: number): string {
  return `${folder}/${pid}`;
}
