/** Whatever is wrong with an external service, no lease gets through. Against real sockets. */
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { FAULTS } from '../../bench/faulty-services.ts';
import { createPhysicalHost, endActive, updateExtend } from '../support/requests.ts';
import { loadLibraries } from '../support/services.ts';
import { loadValues } from './loaded.ts';

// A second is not meant for loading them.
beforeAll(loadLibraries, 60_000);

const GENERIC = 'The lease could not be checked. Please try again later, or ask the operator.';
const DENIED = 'The external service denied the request.';

/** The log text for each fault, to tell it from the others. A 403 is a rejection, whatever follows. */
const CAUSES: Readonly<Record<string, RegExp | undefined>> = {
  'connection refused': /ECONNREFUSED/,
  silent: /no whole answer within 1 s/,
  'one byte a second': undefined,
  'headers, one byte a second': /no whole answer within 1 s/,
  reset: /ECONNRESET|other side closed/,
  'wrong status': /expected 204\b.*, got 200/,
  'endless body': undefined,
  'broken JSON': undefined,
  redirect: /expected 204\b.*, got 307/,
  'expired certificate': /expired/,
  'name that does not resolve': /ENOTFOUND|EAI_AGAIN|no whole answer within 1 s/,
};

/** A filter that calls a service with this fault, with a timeout of one second. */
async function asking(fault: string) {
  const start = FAULTS[fault];
  if (start === undefined) {
    throw new Error(`there is no fault ${fault}`);
  }
  const { url, options, stop } = await start();
  onTestFinished(stop);
  return loadValues({
    enabled_filters: ['ExternalServiceFilter'],
    external_service_base_endpoint: url,
    external_service_timeout: 1,
    ...options,
  });
}

it('an external service has exactly these faults', () => {
  expect(Object.keys(FAULTS)).toEqual(Object.keys(CAUSES));
});

it.each(Object.entries(CAUSES))(
  'with the fault "%s" refuses creates and updates, and reports ends as failed',
  async (fault, cause) => {
    const { enforcement, logger } = await asking(fault);
    const refusal =
      cause === undefined
        ? { allowed: false, failed: false, message: DENIED }
        : { allowed: false, failed: true, message: GENERIC };
    const [created, extended, ended] = await Promise.all([
      enforcement.checkCreate(createPhysicalHost()),
      enforcement.checkUpdate(updateExtend()),
      enforcement.onEnd(endActive()),
    ]);
    expect(created).toMatchObject(refusal);
    expect(extended).toMatchObject(refusal);
    expect(ended).toMatchObject({ failed: true });
    const causes = logger.lines
      .filter(({ message }) => message === 'filter failed')
      .flatMap(({ level, fields }) => (level === 'error' ? [fields.error] : []));
    if (cause !== undefined) {
      expect(causes).toEqual([
        expect.stringMatching(cause),
        expect.stringMatching(cause),
        expect.stringMatching(cause),
      ]);
    }
  },
);
