/** The policy service for all tests of a file; the caller closes it. */
import { type Service, startService } from '../../src/server/service.ts';
import { valuesOnly } from './files.ts';
import { recordingLogger } from './logger.ts';

export function startedService(
  values: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
): Promise<Service> {
  return startService(valuesOnly(values), { logger: recordingLogger() });
}
