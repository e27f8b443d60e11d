/** Loads what only a worker needs. */
import type { DecisionLogObserver } from '../../decisions/log.ts';
import type { Logger } from '../../logger.ts';
import type { Readiness } from '../openapi/bodies.ts';
import type { ServiceOptions } from '../options.ts';
import type { SentLog } from './sent-log.ts';
import type { PartOf, ServicePart } from './service-part.ts';
import type { WorkerLink } from './worker-link.ts';

export type { ServicePart };

export async function startPart(link: WorkerLink, parts: PartOf): Promise<ServicePart> {
  return (await import('./service-part.ts')).startPart(link, parts);
}

/** Of all workers. `own`: of this one. */
export async function askReadiness(link: WorkerLink, own: Readiness): Promise<Readiness> {
  const { readOthersReadiness, wholeReadiness } = await import('./whole-readiness.ts');
  return wholeReadiness(own, readOthersReadiness(await link.ask('readiness')));
}

/** The decision log of a worker; `undefined` = decisions are not logged. */
export async function openSentLog(
  { decision_log, decision_log_when_full }: ServiceOptions,
  logger: Logger,
  observer: DecisionLogObserver,
): Promise<SentLog | undefined> {
  const { SentLog: Log } = await import('./sent-log.ts');
  const { LOG_DESCRIPTOR } = await import('./messages.ts');
  return decision_log === undefined
    ? undefined
    : new Log(LOG_DESCRIPTOR, decision_log_when_full, logger, observer);
}
