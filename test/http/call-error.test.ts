import { describe, expect, it } from 'vitest';
import { callError, HttpCallError } from '../../src/http/call-error.ts';

const url = new URL('https://user:password@policy.example:8443/v1/check-create?key=secret#fragment');

describe('callError', () => {
  it('names the address, without credentials and query, and the reason', () => {
    const error = callError('timeout', { method: 'POST', url }, 'no whole answer within 10 s');
    expect(error).toBeInstanceOf(HttpCallError);
    expect(error.message).toBe(
      'POST https://policy.example:8443/v1/check-create: no whole answer within 10 s',
    );
    expect(error.cause).toBeUndefined();
  });

  it('keeps name, message and code of the cause, and nothing else', () => {
    const thrown = Object.assign(new TypeError('bad'), { code: 'EBAD', config: { headers: 'secret' } });
    const { message, cause } = callError('transport', { method: 'POST', url }, 'no usable answer', thrown);
    expect(message).toMatch(/: no usable answer: bad$/);
    expect({ ...(cause as Error) }).toEqual({ name: 'TypeError', code: 'EBAD' });
  });

  it('has the failure of each address of a name', () => {
    const thrown = new AggregateError([
      new Error('connect ECONNREFUSED ::1:80'),
      new Error('connect ETIMEDOUT 127.0.0.1:80'),
    ]);
    expect(callError('connect', { method: 'POST', url }, 'nothing was sent', thrown).message).toMatch(
      /: connect ECONNREFUSED ::1:80; connect ETIMEDOUT 127\.0\.0\.1:80$/,
    );
  });

  it.each([
    ['a reason', ': a reason'],
    [Object.create(null), ': a thrown object'],
    [Symbol('s'), ': a thrown symbol'],
    [null, ': a thrown object'],
  ])('copes with %j in place of an error', (thrown, end) => {
    expect(callError('aborted', { method: 'POST', url }, 'aborted by the caller', thrown).message).toContain(
      `caller${end}`,
    );
  });
});
