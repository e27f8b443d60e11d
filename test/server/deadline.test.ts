import { expect, it } from 'vitest';
import { filterSource } from '../support/filter-folder.ts';
import { capturedText } from '../support/requests.ts';
import { runService } from '../support/running-service.ts';

const never =
  'return new Promise((_, fail) => call.signal.addEventListener("abort", () => fail(call.signal.reason)));';
const silent = 'return new Promise(() => {});';

it.each([
  ['that gives up when it is told to', never],
  ['that never answers at all', silent],
])('a filter %s has failed when the deadline is over, and the lease is refused', async (_, hook) => {
  const { post, logger } = await runService({
    enforcement: { enabled_filters: ['NeverFilter'], max_lease_duration: undefined },
    filters: { 'never-filter.js': filterSource('NeverFilter', { create: hook, update: hook, end: hook }) },
    service: { deadline: 1 },
  });
  const answers = await Promise.all([
    post('/check-create', capturedText('check-create-physical-host.json')),
    post('/check-update', capturedText('check-update-extend.json')),
    post('/on-end', capturedText('on-end-active.json')),
  ]);
  const generic = 'The lease could not be checked. Please try again later, or ask the operator.';
  expect(answers.map(({ status, json }) => [status, json])).toEqual([
    [403, { message: generic }],
    [403, { message: generic }],
    [204, undefined],
  ]);
  expect(logger.lines.filter(({ level }) => level === 'error').map(({ fields }) => fields.error)).toEqual(
    Array(3).fill('no answer within 1 s'),
  );
});
