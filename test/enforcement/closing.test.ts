import { describe, expect, it, vi } from 'vitest';
import { EnforcementClosedError } from '../../src/index.ts';
import { createPhysicalHost, endActive, updateExtend } from '../support/requests.ts';
import { withResolvers } from '../support/with-resolvers.ts';
import { chain, notes } from './chain.ts';

const CALLS_UNDER_WAY = 32;

describe('close', () => {
  it.each([
    ['throws', "throw new Error('stuck');", 'stuck'],
    ['never ends', 'return new Promise(() => {});', 'no answer within 60 s'],
  ])('closes every filter, even if that of one %s', async (_, body, error) => {
    const heard = notes();
    const { enforcement, logger } = await chain({
      AFilter: { extra: `close() { ${body} }` },
      BFilter: { extra: "async close() { notes.push('closed'); }" },
    });
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    const closing = [enforcement.close(), enforcement.close()];
    await vi.advanceTimersByTimeAsync(60_000);
    await Promise.all(closing);
    await enforcement.close();
    expect(heard).toEqual(['closed']);
    expect(logger.lines).toMatchObject([{ level: 'error', fields: { filter: 'AFilter', error } }]);
  });

  it.each([
    ['no filter', {}, {}],
    ['a filter that is asked', { AFilter: {} }, {}],
    ['an exempt project', { AFilter: {} }, { exempt_projects: [createPhysicalHost().context.project_id] }],
    ['a filter that commits', { AFilter: { extra: 'commitCreate() { return allow(); }' } }, {}],
  ])('makes every later call reject: %s', async (_, filters, options) => {
    const { enforcement } = await chain(filters, options);
    const closing = enforcement.close();
    for (const call of [
      () => enforcement.checkCreate(createPhysicalHost()),
      () => enforcement.checkUpdate(updateExtend()),
      () => enforcement.commitCreate(createPhysicalHost()),
      () => enforcement.commitUpdate(updateExtend()),
      () => enforcement.onEnd(endActive()),
      () => enforcement.checkCreate({} as never),
    ]) {
      await expect(call()).rejects.toThrow(new EnforcementClosedError());
      await closing;
    }
  });

  it(`waits until ${CALLS_UNDER_WAY} running calls are answered before it closes a filter`, async () => {
    const heard = notes();
    const { promise: opened, resolve: open } = withResolvers();
    vi.stubGlobal('gate', opened);
    const { enforcement } = await chain({
      AFilter: {
        create: 'return globalThis.gate.then(() => allow());',
        end: 'return globalThis.gate;',
        extra: "close() { notes.push('closed'); }",
      },
    });
    const answered = Array.from({ length: CALLS_UNDER_WAY }, (_, index) =>
      (index % 2 === 0 ? enforcement.checkCreate(createPhysicalHost()) : enforcement.onEnd(endActive())).then(
        ({ failed }) => heard.push(failed),
      ),
    );
    const closed = enforcement.close();
    await expect(enforcement.checkCreate(createPhysicalHost())).rejects.toThrow('closed');
    expect(heard).toEqual([]);
    open();
    await closed;
    expect(heard).toEqual([...Array(CALLS_UNDER_WAY).fill(false), 'closed']);
    await Promise.all(answered);
  });

  it('is not blocked by a call that has failed', async () => {
    const { enforcement } = await chain({});
    const failed = enforcement.checkCreate({} as never).catch((thrown: unknown) => thrown);
    await enforcement.close();
    expect(String(await failed)).toContain('InvalidRequestError');
  });
});
