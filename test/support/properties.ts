/**
 * Every run uses the same samples, so no test is flaky. `PROPERTY_SEED=random`, or a number: other samples.
 */
import fc from 'fast-check';

const { PROPERTY_SEED: asked = '20261122' } = process.env;

fc.configureGlobal(asked === 'random' ? {} : { seed: Number(asked) });

/** Objects with some of these members. */
export const optional = <Value>(members: { [Name in keyof Value]: fc.Arbitrary<Value[Name]> }) =>
  fc.record(members, { requiredKeys: [] });
