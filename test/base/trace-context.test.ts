/** W3C Trace Context, with the API of OpenTelemetry and a tracer of the test: no SDK is registered in this process. */

import * as api from '@opentelemetry/api';
import { context, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { callersContext, traceHeaders, traceId } from '../../src/base/trace-context.ts';
import { inSpan, isTraced } from '../../src/base/tracing.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const tracing = { api, tracer: trace.getTracer('test') };
const callerOf = (headers: Record<string, string>) => trace.getSpanContext(callersContext(tracing, headers));

describe('the trace of a caller', () => {
  it('is the one that it names, with its state', () => {
    const caller = callerOf({ traceparent: `00-${TRACE}-${PARENT}-01`, tracestate: 'a=1,b=2' });
    expect(caller).toMatchObject({ traceId: TRACE, spanId: PARENT, traceFlags: 1, isRemote: true });
    expect(caller?.traceState?.serialize()).toBe('a=1,b=2');
  });

  it('is read also in a later version, which may say more', () => {
    expect(callerOf({ traceparent: `01-${TRACE}-${PARENT}-00-more` })).toMatchObject({ traceFlags: 0 });
    expect(callerOf({ traceparent: `cc-${TRACE}-${PARENT}-ff` })).toMatchObject({ traceFlags: 1 });
  });

  it.each([
    ['', 'empty'],
    [`00-${TRACE}-${PARENT}`, 'cut off'],
    [`00-${TRACE}-${PARENT}-01-`, 'longer than its version allows'],
    [`00-${TRACE}-${PARENT}-01,00-${TRACE}-${PARENT}-01`, 'sent twice'],
    [`ff-${TRACE}-${PARENT}-01`, 'of the version that is none'],
    [`00-${'0'.repeat(32)}-${PARENT}-01`, 'without a trace'],
    [`00-${TRACE}-${'0'.repeat(16)}-01`, 'without a parent'],
    [`00-${TRACE.toUpperCase()}-${PARENT}-01`, 'in capitals'],
    [` 00-${TRACE}-${PARENT}-01`, 'behind a blank'],
    [`01-${TRACE}-${PARENT}-01-${'x'.repeat(300)}`, 'too long'],
  ])('is none for %s: %s', (traceparent) => {
    expect(callersContext(tracing, { traceparent, tracestate: 'a=1' })).toBe(ROOT_CONTEXT);
  });

  it('has no state that is too long, or not one', () => {
    const traceparent = `00-${TRACE}-${PARENT}-01`;
    for (const tracestate of ['x', `a=${'1'.repeat(600)}`, 'A=1,=,__proto__=\u0000']) {
      expect(callerOf({ traceparent, tracestate })?.traceState?.serialize() ?? '').toBe('');
    }
  });

  it('is never anything but hexadecimal digits, whatever comes', () => {
    const part = fc.oneof(
      fc.constantFrom('00', '01', 'ff', TRACE, PARENT, '-', ',', '__proto__', '\u2028'),
      fc.string(),
    );
    const header = fc.array(part, { maxLength: 6 }).map((parts) => parts.join('-'));
    fc.assert(
      fc.property(header, header, (traceparent, tracestate) => {
        const { traceId: id = TRACE, spanId = PARENT } = callerOf({ traceparent, tracestate }) ?? {};
        expect([id, spanId].join()).toMatch(/^[0-9a-f]{32},[0-9a-f]{16}$/);
      }),
    );
  });
});

describe('without an SDK', () => {
  it('work is called as it is, and belongs to no trace', () => {
    expect(isTraced()).toBe(false);
    const result = {};
    const facts = { name: 'work', attributes: {} };
    expect(inSpan(facts, () => result)).toBe(result);
    const thrown = new Error('broken');
    const broken = () => {
      throw thrown;
    };
    expect(() => inSpan(facts, broken)).toThrow(thrown);
    expect([traceHeaders(), traceId(), context.active()]).toEqual([{}, undefined, ROOT_CONTEXT]);
  });
});
