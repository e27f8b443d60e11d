import { expect, it } from 'vitest';

// `.ci/run` asks for the failure: where a test that fails does not fail the run, nothing is proven.
it('fails where it is told to', () => {
  expect(process.env.TEST_THAT_FAILS).toBeUndefined();
});
