/** What a service adds when it is one of several workers: connections from the primary, and one worker that serves people. */
import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import type { RecentDecisions } from '../../decisions/recent.ts';
import type { SkypilotParts } from '../generation.ts';
import type { HandedConnections } from '../listener.ts';
import { BLAZAR_ENDPOINTS, kubernetesPathOf } from '../own-paths.ts';
import { servesSkypilot } from '../skypilot.ts';
import { Desk } from './desk.ts';
import type { WorkerLink } from './worker-link.ts';
import { followOthers, readOthers, writeRecents } from './worker-recents.ts';

/** The part of a service that this needs. */
export interface PartOf {
  readonly answer: RequestListener;
  readonly current: () => { readonly skypilot: SkypilotParts };
  readonly recorder: { readonly recent: RecentDecisions };
}

export interface ServicePart {
  readonly answer: RequestListener;
  readonly handed: HandedConnections;
  /** A connection that the primary has accepted. */
  take(socket: Socket): void;
  /** The latest decisions of this worker. */
  recents(): string;
  /** Finishes what other workers have passed on. */
  close(graceMs: number): Promise<void>;
}

/** Requests of protocols, which every worker answers. */
const OF_PROTOCOLS: ReadonlySet<string> = new Set([
  ...['/', '/v1/'].flatMap((prefix) => BLAZAR_ENDPOINTS.map((name) => prefix + name)),
  '/healthz',
]);

export async function startPart(
  link: WorkerLink,
  { answer, current, recorder: { recent } }: PartOf,
): Promise<ServicePart> {
  const desk = await Desk.open({
    ownPath: link.ownPath,
    isDesk: () => link.isDesk,
    deskPath: () => link.deskPath,
    isForEach: (path) =>
      OF_PROTOCOLS.has(path) ||
      kubernetesPathOf(path) !== undefined ||
      servesSkypilot(current().skypilot, path),
    answer,
    tell: link.followed.tell.bind(link.followed),
    prepare: () => readOthers(recent, link),
  });
  const endFollowing = followOthers(recent, link);
  let take = (socket: Socket): void => void socket.destroy();
  const hear = (taker: (socket: Socket) => void): void => {
    take = taker;
  };
  return {
    answer: desk.answer,
    handed: { url: link.place.url, hear },
    take: (socket) => take(socket),
    recents: () => writeRecents(recent.own()),
    close: async (graceMs) => {
      endFollowing();
      await desk.close(graceMs);
    },
  };
}
